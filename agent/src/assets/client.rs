//! A minimal HTTPS client: TLS 1.3 with the lab's authority as the only root, the device's certificate, and one
//! connection per request. The caller handles retries and files.

use std::{
    io::{self, Read as _, Write as _},
    net::{TcpStream, ToSocketAddrs as _},
    sync::Arc,
    time::Duration,
};

use regatta_text::escape;
use regatta_wire::enrollment::SERVER_NAME;
use rustls::{ClientConfig, ClientConnection, StreamOwned, pki_types::ServerName};

/// Longest time without network traffic.
const PATIENCE: Duration = Duration::from_secs(20);
/// Longest response head in bytes.
const MAX_HEAD: usize = 16 * 1024;
/// Longest error message that is read, in bytes.
const MAX_WHY: u64 = 300;

/// Why a request failed.
#[derive(Debug)]
pub(super) enum GetError {
    /// A network error. The caller may retry.
    Network(io::Error),
    /// The server rejected the request. A retry does not help.
    Refused {
        /// The HTTP status.
        status: u16,
        /// The server's message.
        why: String,
    },
}

impl From<io::Error> for GetError {
    fn from(error: io::Error) -> Self {
        Self::Network(error)
    }
}

/// A client of one server.
#[derive(Debug)]
pub(super) struct Client {
    server: String,
    tls: Arc<ClientConfig>,
}

/// The body of a response.
pub(super) struct Body {
    stream: StreamOwned<ClientConnection, TcpStream>,
    /// Bytes that arrived with the head.
    early: io::Cursor<Vec<u8>>,
    /// Bytes that remain.
    pub(super) left: u64,
}

impl Client {
    /// Returns a client of `server`, written `host:port`.
    pub(super) fn new(server: &str, tls: Arc<ClientConfig>) -> Self {
        let server = server.to_owned();
        Self { server, tls }
    }

    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// Requests the resource at `address`, starting at byte `from`.
    pub(super) fn get(&self, address: &str, from: u64) -> Result<Body, GetError> {
        let mut stream = self.connect()?;
        let range = match from {
            0 => String::new(),
            from => format!("Range: bytes={from}-\r\n"),
        };
        let request =
            format!("GET {address} HTTP/1.1\r\nHost: {SERVER_NAME}\r\n{range}Connection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        stream.flush()?;
        let (head, early) = read_head(&mut stream)?;
        let mut body = Body {
            stream,
            early: io::Cursor::new(early),
            left: head.length,
        };
        match (head.status, from) {
            (200, 0) => Ok(body),
            (206, from) if head.begins_at == Some(from) => Ok(body),
            (status @ 400..=499, _) => Err(GetError::Refused {
                status,
                why: body.text(),
            }),
            (status, _) => Err(io::Error::other(
                format!("it responds with status {status} {}", body.text()).trim_end(),
            )
            .into()),
        }
    }

    fn connect(&self) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
        let wrong = || {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                "the server must have the form host:port",
            )
        };
        let (host, port) = self.server.rsplit_once(':').ok_or_else(wrong)?;
        let port: u16 = port.parse().map_err(|_| wrong())?;
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in (host.trim_matches(['[', ']']), port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(socket) => {
                    socket.set_read_timeout(Some(PATIENCE))?;
                    socket.set_write_timeout(Some(PATIENCE))?;
                    let name = ServerName::try_from(SERVER_NAME).map_err(io::Error::other)?;
                    let connection =
                        ClientConnection::new(Arc::clone(&self.tls), name).map_err(io::Error::other)?;
                    return Ok(StreamOwned::new(connection, socket));
                }
                Err(e) => last = e,
            }
        }
        Err(last)
    }
}

/// The parts of a response head that are used.
#[derive(Debug, PartialEq, Eq)]
struct ResponseHead {
    status: u16,
    length: u64,
    begins_at: Option<u64>,
}

/// Reads a response head. Also returns the bytes of the body that were read with it.
fn read_head(stream: &mut impl io::Read) -> io::Result<(ResponseHead, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let read = stream.read(&mut piece)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(piece.get(..read).unwrap_or_default());
        if let Some((head, length)) = parse_head(&bytes)? {
            return Ok((head, bytes.split_off(length)));
        }
        if bytes.len() > MAX_HEAD {
            return Err(io::Error::other("the response's header does not end"));
        }
    }
}

/// Parses a response head at the start of `bytes`. Returns it with its length, or `None` if it is incomplete.
fn parse_head(bytes: &[u8]) -> io::Result<Option<(ResponseHead, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(length) = response.parse(bytes).map_err(io::Error::other)? else {
        return Ok(None);
    };
    let value = |name: &str| {
        let header = response
            .headers
            .iter()
            .find(|h| h.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(header.value).ok()
    };
    let content = value("content-length").and_then(|value| value.parse().ok());
    let begins_at = value("content-range")
        .and_then(|value| value.strip_prefix("bytes ")?.split_once('-')?.0.parse().ok());
    let head = ResponseHead {
        status: response.code.unwrap_or(0),
        length: content.ok_or_else(|| io::Error::other("the response has no length"))?,
        begins_at,
    };
    Ok(Some((head, length)))
}

impl Body {
    /// Reads some of the remaining bytes. An early end of the stream is an error.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(into.len());
        let Some(into) = into.get_mut(..most).filter(|into| !into.is_empty()) else {
            return Ok(0);
        };
        let mut read = self.early.read(into)?;
        if read == 0 {
            read = self.stream.read(into)?;
        }
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read as u64;
        Ok(read)
    }

    /// Returns the start of the body as text, as far as it can be read.
    fn text(&mut self) -> String {
        let mut bytes = vec![0; usize::try_from(self.left.min(MAX_WHY)).unwrap_or(0)];
        let mut filled = 0;
        while let Ok(read @ 1..) = self.read(bytes.get_mut(filled..).unwrap_or_default()) {
            filled += read;
        }
        bytes.truncate(filled);
        let text = String::from_utf8_lossy(&bytes);
        escape(&text).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn npy_header_is_read_from_pieces() {
        let answer =
            b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 17-19/20\r\ncontent-length: 3\r\n\r\nabc";
        let (head, early) = read_head(&mut answer.as_slice()).unwrap();
        let expected = ResponseHead {
            status: 206,
            length: 3,
            begins_at: Some(17),
        };
        assert_eq!((head, early.as_slice()), (expected, b"abc".as_slice()));
        for cut in 0..answer.len() - 3 {
            assert!(read_head(&mut answer.get(..cut).unwrap()).is_err(), "{cut}");
        }
        let endless = [b"HTTP/1.1 200 OK\r\nA: ".as_slice(), &[b'x'; 40_000]].concat();
        assert!(read_head(&mut endless.as_slice()).is_err());
        assert!(
            read_head(&mut b"HTTP/1.1 200 OK\r\n\r\n".as_slice()).is_err(),
            "no length"
        );
    }

    proptest! {
        #[test]
        fn garbage_is_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
            let _ = read_head(&mut bytes.as_slice());
        }
    }
}
