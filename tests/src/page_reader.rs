//! A program that reads the live page over TLS with a token: one request per connection, and requests that are abandoned.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::Path,
    sync::Arc,
    time::Duration,
};

use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    version::TLS13,
};
use socket2::{Domain, Socket, Type};

use crate::browser_client::PageAnswer;

/// A reader with its token.
#[derive(Clone)]
pub struct PageReader {
    /// The address and port.
    address: String,
    /// The last number of its own address, 127.0.0.N. The page limits the connections of an address.
    own: u8,
    token: String,
    tls: Arc<ClientConfig>,
}

/// A connection of a reader.
pub type PageConnection = StreamOwned<ClientConnection, TcpStream>;

impl PageReader {
    /// Creates a reader at 127.0.0.`own` of the page at `url`, which trusts the authority of `workspace`.
    ///
    /// # Panics
    /// Panics when the workspace has no authority of the page.
    #[must_use]
    pub fn new(url: &str, workspace: &Path, own: u8, token: &str) -> Self {
        let pem = fs::read(workspace.join("keys/page-ca.pem")).expect("the page's authority");
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(&pem).expect("a certificate"))
            .expect("an authority");
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13])
            .expect("TLS 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            address: url.trim_start_matches("https://").to_owned(),
            own,
            token: token.to_owned(),
            tls: Arc::new(tls),
        }
    }

    /// Sends a GET and returns the connection without reading.
    ///
    /// # Errors
    /// Returns an error when the connection ends first.
    ///
    /// # Panics
    /// Panics when the URL has no address.
    pub fn request(&self, path: &str) -> io::Result<PageConnection> {
        let host = self.address.rsplit_once(':').expect("a port").0;
        let name = ServerName::try_from(host.to_owned()).expect("a name");
        let connection = ClientConnection::new(Arc::clone(&self.tls), name).map_err(io::Error::other)?;
        let page: SocketAddr = self.address.parse().expect("an address and a port");
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.bind(&SocketAddr::from(([127, 0, 0, self.own], 0)).into())?;
        socket.connect(&page.into())?;
        let socket = TcpStream::from(socket);
        socket.set_read_timeout(Some(Duration::from_secs(60)))?;
        socket.set_write_timeout(Some(Duration::from_secs(10)))?;
        let mut stream = StreamOwned::new(connection, socket);
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
            self.address, self.token
        );
        stream.write_all(request.as_bytes())?;
        stream.flush()?;
        Ok(stream)
    }

    /// Sends a GET and reads the answer to its end.
    ///
    /// # Errors
    /// Returns an error when the connection ends without an answer.
    pub fn get(&self, path: &str) -> io::Result<PageAnswer> {
        read_answer(self.request(path)?)
    }
}

/// Reads the answer to a request to its end.
///
/// # Errors
/// Returns an error when the connection ends without an answer.
pub fn read_answer(mut connection: PageConnection) -> io::Result<PageAnswer> {
    let mut answer = Vec::new();
    let read = connection.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let Some((head, body)) = answer.split_once("\r\n\r\n") else {
        return Err(read.err().unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into()));
    };
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    Ok(PageAnswer {
        status: status.ok_or_else(|| io::Error::other("no status"))?,
        head: head.to_owned(),
        body: body.to_owned(),
    })
}
