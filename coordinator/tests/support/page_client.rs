//! A client of the live page, over TLS with the lab's certificate or without. It sends one request per connection, with any
//! header.

use std::{
    fs,
    io::{self, Read, Write},
    net::{IpAddr, SocketAddr, TcpStream},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject as _},
    version::TLS13,
};

/// The type of forms.
pub const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");

/// A client with the address from which it connects.
#[derive(Clone)]
pub struct PageClient {
    address: SocketAddr,
    from: IpAddr,
    /// The name in the certificate and in the header, with its port.
    pub host: String,
    tls: Option<Arc<ClientConfig>>,
}

/// An answer of the page.
#[derive(Debug)]
pub struct PageAnswer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// A connection over which bytes are sent and read.
pub trait Channel: Read + Write {}
impl<T: Read + Write> Channel for T {}

impl PageClient {
    /// A client of the page at a URL, which trusts a certificate if the URL has TLS.
    pub fn new(url: &str, certificate: &Path) -> Self {
        let (scheme, host) = url.split_once("://").unwrap();
        let tls = (scheme == "https").then(|| {
            let pem = fs::read(certificate).unwrap();
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(&pem).unwrap()).unwrap();
            let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
                .with_protocol_versions(&[&TLS13])
                .unwrap()
                .with_root_certificates(roots)
                .with_no_client_auth();
            Arc::new(config)
        });
        let port = host.rsplit_once(':').unwrap().1.parse().unwrap();
        Self {
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            from: [127, 0, 0, 1].into(),
            host: host.to_owned(),
            tls,
        }
    }

    /// The same client at another address of the loopback network.
    pub fn from(&self, last: u8) -> Self {
        Self {
            from: [127, 0, 0, last].into(),
            ..self.clone()
        }
    }

    /// The same client of another address of the server.
    pub fn at(&self, address: IpAddr) -> Self {
        Self {
            address: SocketAddr::new(address, self.address.port()),
            from: address,
            ..self.clone()
        }
    }

    /// The page's origin.
    pub fn origin(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.host)
    }

    /// Opens a connection below TLS.
    pub fn socket(&self) -> TcpStream {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let stream = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind(SocketAddr::new(self.from, 0)).unwrap();
            socket.connect(self.address).await.unwrap().into_std().unwrap()
        });
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Opens a connection.
    pub fn connect(&self) -> Box<dyn Channel> {
        let stream = self.socket();
        let Some(tls) = &self.tls else {
            return Box::new(stream);
        };
        let name = self.host.rsplit_once(':').unwrap().0.to_owned();
        let connection = ClientConnection::new(Arc::clone(tls), name.try_into().unwrap()).unwrap();
        Box::new(StreamOwned::new(connection, stream))
    }

    /// Sends a request and returns the answer. Of a live stream it returns the head.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> PageAnswer {
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n",
            self.host
        );
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if method == "POST" {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        let mut channel = self.connect();
        channel.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        let mut answer = Vec::new();
        let mut part = [0; 4_096];
        loop {
            let read = match channel.read(&mut part) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => 0,
                read => read.unwrap(),
            };
            answer.extend(&part[..read]);
            if read == 0 {
                break;
            }
            let text = String::from_utf8_lossy(&answer);
            if text.contains("text/event-stream") && text.contains("\r\n\r\n") {
                break;
            }
        }
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        PageAnswer {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    /// Sends a GET.
    pub fn get(&self, path: &str, headers: &[(&str, &str)]) -> PageAnswer {
        self.send("GET", path, headers, "")
    }

    /// Sends a form of the page's own.
    pub fn post(&self, path: &str, cookie: &str, body: &str) -> PageAnswer {
        let origin = self.origin();
        let headers = [FORM, ("Origin", origin.as_str()), ("Cookie", cookie)];
        self.send("POST", path, &headers, body)
    }

    /// Logs in and returns the session's cookie and form token.
    pub fn log_in(&self, token: &str) -> (String, String) {
        let answer = self.post("/login", "", &format!("token={token}&next=/runs"));
        assert_eq!(answer.status, 303, "{answer:?}");
        assert_eq!(answer.header("location"), Some("/runs"));
        let cookie = answer.header("set-cookie").unwrap();
        let cookie = cookie.split(';').next().unwrap().to_owned();
        let page = self.get("/", &[("Cookie", &cookie)]);
        assert_eq!(page.status, 200);
        let form_token = page.body.split("name=\"csrf\" value=\"").nth(1).unwrap();
        (cookie, form_token.split('"').next().unwrap().to_owned())
    }
}

/// Reads until a text arrives. Returns `false` if it does not arrive within a minute, or the connection ends first.
pub fn receives(live: &mut Box<dyn Channel>, text: &str) -> bool {
    let begun = Instant::now();
    let mut received = Vec::new();
    let mut part = [0; 4_096];
    loop {
        let read = match live.read(&mut part) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => 0,
            read => read.unwrap(),
        };
        if read == 0 {
            return false;
        }
        received.extend(&part[..read]);
        if String::from_utf8_lossy(&received).contains(text) {
            return true;
        }
        // A live view also sends comments.
        if begun.elapsed() > Duration::from_secs(60) {
            return false;
        }
    }
}

impl PageAnswer {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }
}
