//! HTTP/1.1 requests to a model server on this machine, one at a time per connection, blocking: a thread waits for each answer anyway. Answers
//! are bounded. Knows nothing of what is asked.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// The maximum size of an answer's head in bytes.
const MAX_HEAD: usize = 32 << 10;
/// The maximum size of an answer, of an event, and of a chunk, in bytes.
const MAX_BODY: usize = 64 << 20;
/// The maximum size of the tensors in an answer. Its head has a part of the limit.
pub(super) const MAX_ANSWER: usize = MAX_BODY - (1 << 20);
const MAX_HEADERS: usize = 64;
/// How long a connection may take to open. The server is on this machine.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// The bytes of an answer with an error that are kept.
const KEPT_OF_ERROR: usize = 500;

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    #[error("the server does not accept a connection")]
    Connect(#[source] io::Error),
    #[error("the connection to the server broke")]
    Broken(#[source] io::Error),
    #[error("the server did not answer within {} s", .0.as_secs())]
    Silent(Duration),
    #[error("the server's answer is not HTTP: {0}")]
    NotHttp(String),
    #[error("the server answered with status {status}: {text}")]
    Status { status: u16, text: String },
    #[error("the server's answer is larger than {} MiB", MAX_BODY >> 20)]
    TooLarge,
}

/// A connection that is opened again when the server has closed it.
#[derive(Debug)]
pub(super) struct Connection {
    address: SocketAddr,
    /// How long the server may be silent.
    patience: Duration,
    open: Option<BufReader<TcpStream>>,
}

/// How an answer's body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyEnd {
    Length(usize),
    Chunked,
    Closed,
}

/// The head of an answer.
#[derive(Debug)]
pub(super) struct Head {
    status: u16,
    pub(super) end: BodyEnd,
    closes: bool,
    /// The bytes of the JSON document at the beginning of a body with binary tensors.
    pub(super) json_bytes: Option<usize>,
}

impl Connection {
    pub(super) const fn new(address: SocketAddr, patience: Duration) -> Self {
        Self {
            address,
            patience,
            open: None,
        }
    }

    /// Checks that a GET is answered with status 200.
    pub(super) fn get(&mut self, path: &str) -> Result<(), HttpError> {
        self.get_document(path).map(drop)
    }

    /// Returns a document.
    pub(super) fn get_document(&mut self, path: &str) -> Result<Vec<u8>, HttpError> {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAccept: */*\r\n\r\n",
            self.address
        );
        let mut document = Vec::new();
        self.exchange(request.as_bytes(), &mut |part| document.extend_from_slice(part))?;
        Ok(document)
    }

    /// Posts a JSON document. Passes on the answer's body as it arrives, and returns how it ended.
    pub(super) fn post(
        &mut self,
        path: &str,
        document: &[u8],
        receive: &mut dyn FnMut(&[u8]),
    ) -> Result<BodyEnd, HttpError> {
        self.post_as("application/json", path, document, receive)
    }

    /// As [`post`](Self::post), with a body of another type.
    pub(super) fn post_as(
        &mut self,
        content_type: &str,
        path: &str,
        body: &[u8],
        receive: &mut dyn FnMut(&[u8]),
    ) -> Result<BodyEnd, HttpError> {
        let mut request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
            self.address,
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(body);
        self.exchange(&request, receive).map(|head| head.end)
    }

    /// Writes the head of a request whose body is a JSON document and binary tensors.
    pub(super) fn write_head(
        &self,
        path: &str,
        json_bytes: usize,
        binary_bytes: usize,
        request: &mut Vec<u8>,
    ) {
        // Writing to memory cannot fail.
        let _ = write!(
            request,
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/octet-stream\r\nInference-Header-Content-Length: {json_bytes}\r\n\
             Content-Length: {}\r\n\r\n",
            self.address,
            json_bytes + binary_bytes
        );
    }

    /// Sends a request. Passes on the answer's body as it arrives, and returns its head.
    pub(super) fn exchange(
        &mut self,
        request: &[u8],
        receive: &mut dyn FnMut(&[u8]),
    ) -> Result<Head, HttpError> {
        // A server may close an idle connection at any time; some announce that they keep it and close it. A request that no byte of
        // an answer has followed is then sent once more.
        let kept = self
            .open
            .take()
            .filter(|connection| is_alive(connection.get_ref()));
        if let Some(mut connection) = kept
            && let Some(head) = self.send_request(&mut connection, request)?
        {
            return self.receive(connection, head, receive);
        }
        let mut connection = self.connect()?;
        match self.send_request(&mut connection, request)? {
            Some(head) => self.receive(connection, head, receive),
            None => Err(HttpError::Broken(io::ErrorKind::UnexpectedEof.into())),
        }
    }

    fn connect(&self) -> Result<BufReader<TcpStream>, HttpError> {
        let stream = TcpStream::connect_timeout(&self.address, CONNECT_LIMIT).map_err(HttpError::Connect)?;
        let set_up = stream
            .set_nodelay(true)
            .and_then(|()| stream.set_read_timeout(Some(self.patience)))
            .and_then(|()| stream.set_write_timeout(Some(self.patience)));
        set_up.map_err(HttpError::Connect)?;
        Ok(BufReader::with_capacity(64 << 10, stream))
    }

    /// Sends a request and reads the head of its answer. `None` when the server closed the connection before it answered.
    fn send_request(
        &self,
        connection: &mut BufReader<TcpStream>,
        request: &[u8],
    ) -> Result<Option<Head>, HttpError> {
        if let Err(error) = connection.get_mut().write_all(request) {
            return match error.kind() {
                io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Ok(None),
                _ => Err(self.broken(error)),
            };
        }
        let mut head = Vec::new();
        loop {
            let before = head.len();
            let mut limited = connection.by_ref().take((MAX_HEAD - before) as u64 + 1);
            match limited.read_until(b'\n', &mut head) {
                Ok(0) if before == 0 => return Ok(None),
                Err(error) if before == 0 && error.kind() == io::ErrorKind::ConnectionReset => {
                    return Ok(None);
                }
                Ok(0) => return Err(HttpError::Broken(io::ErrorKind::UnexpectedEof.into())),
                Err(error) => return Err(self.broken(error)),
                Ok(_) if head.len() > MAX_HEAD => {
                    return Err(HttpError::NotHttp("its head is too long".to_owned()));
                }
                Ok(_) => {}
            }
            if matches!(&head[before..], b"\r\n" | b"\n") {
                return parse_head(&head).map(Some);
            }
        }
    }

    /// Reads the body, and keeps the connection if the server does.
    fn receive(
        &mut self,
        mut connection: BufReader<TcpStream>,
        head: Head,
        receive: &mut dyn FnMut(&[u8]),
    ) -> Result<Head, HttpError> {
        if head.status != 200 {
            let mut text = Vec::new();
            // What arrived of it is enough.
            let _ = self.read_body(&mut connection, head.end, &mut |part| {
                text.extend_from_slice(&part[..part.len().min(KEPT_OF_ERROR - text.len())]);
            });
            return Err(HttpError::Status {
                status: head.status,
                text: String::from_utf8_lossy(&text).trim().to_owned(),
            });
        }
        self.read_body(&mut connection, head.end, receive)?;
        if !head.closes && head.end != BodyEnd::Closed {
            self.open = Some(connection);
        }
        Ok(head)
    }

    fn read_body(
        &self,
        connection: &mut BufReader<TcpStream>,
        end: BodyEnd,
        receive: &mut dyn FnMut(&[u8]),
    ) -> Result<(), HttpError> {
        match end {
            BodyEnd::Length(length) => self.read_part(connection, length, receive),
            BodyEnd::Chunked => {
                let mut total = 0;
                loop {
                    let line = self.read_line(connection)?;
                    let size = line.split(';').next().unwrap_or_default().trim();
                    let size = usize::from_str_radix(size, 16)
                        .map_err(|_| HttpError::NotHttp("a chunk has no size".to_owned()))?;
                    total += size.min(MAX_BODY + 1);
                    if total > MAX_BODY {
                        return Err(HttpError::TooLarge);
                    }
                    if size == 0 {
                        while !self.read_line(connection)?.is_empty() {}
                        return Ok(());
                    }
                    self.read_part(connection, size, receive)?;
                    self.read_line(connection)?;
                }
            }
            BodyEnd::Closed => {
                let mut total = 0;
                loop {
                    let part = connection.fill_buf().map_err(|error| self.broken(error))?;
                    let length = part.len();
                    if length == 0 {
                        return Ok(());
                    }
                    total += length;
                    if total > MAX_BODY {
                        return Err(HttpError::TooLarge);
                    }
                    receive(part);
                    connection.consume(length);
                }
            }
        }
    }

    fn read_part(
        &self,
        connection: &mut BufReader<TcpStream>,
        mut length: usize,
        receive: &mut dyn FnMut(&[u8]),
    ) -> Result<(), HttpError> {
        if length > MAX_BODY {
            return Err(HttpError::TooLarge);
        }
        while length > 0 {
            let part = connection.fill_buf().map_err(|error| self.broken(error))?;
            if part.is_empty() {
                return Err(HttpError::Broken(io::ErrorKind::UnexpectedEof.into()));
            }
            let taken = part.len().min(length);
            receive(&part[..taken]);
            connection.consume(taken);
            length -= taken;
        }
        Ok(())
    }

    fn read_line(&self, connection: &mut BufReader<TcpStream>) -> Result<String, HttpError> {
        let mut line = Vec::new();
        let mut limited = connection.by_ref().take(MAX_HEAD as u64);
        limited
            .read_until(b'\n', &mut line)
            .map_err(|error| self.broken(error))?;
        if line.pop() != Some(b'\n') {
            return Err(HttpError::Broken(io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
    }

    fn broken(&self, error: io::Error) -> HttpError {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => HttpError::Silent(self.patience),
            _ => HttpError::Broken(error),
        }
    }
}

/// Returns whether a connection without an open request is still open. A server that closed it has sent its end, which can be seen.
fn is_alive(stream: &TcpStream) -> bool {
    let mut byte = [0];
    let is_quiet = stream.set_nonblocking(true).is_ok_and(
        |()| matches!(stream.peek(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock),
    );
    stream.set_nonblocking(false).is_ok() && is_quiet
}

fn parse_head(bytes: &[u8]) -> Result<Head, HttpError> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let parsed = response.parse(bytes);
    let not_http = |reason: &str| HttpError::NotHttp(reason.to_owned());
    let status = match (parsed, response.code) {
        (Ok(httparse::Status::Complete(_)), Some(status)) => status,
        (Err(error), _) => return Err(not_http(&error.to_string())),
        _ => return Err(not_http("its head ends early")),
    };
    let named = |name: &str| {
        let header = response
            .headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(name));
        header.map(|header| String::from_utf8_lossy(header.value).trim().to_ascii_lowercase())
    };
    let end = match (named("transfer-encoding"), named("content-length")) {
        (Some(encoding), _) if encoding == "chunked" => BodyEnd::Chunked,
        (Some(_), _) => return Err(not_http("its transfer encoding is not known")),
        (None, Some(length)) => {
            let length = length
                .parse()
                .map_err(|_| not_http("its length is not a number"))?;
            BodyEnd::Length(length)
        }
        (None, None) => BodyEnd::Closed,
    };
    let json_bytes = named("inference-header-content-length").and_then(|length| length.parse().ok());
    Ok(Head {
        status,
        end,
        json_bytes,
        closes: named("connection").as_deref() == Some("close"),
    })
}
