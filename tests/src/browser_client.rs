//! A minimal HTTP/1.1 client for the live page: one request per connection, any header, and server-sent events as they arrive.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

/// An answer of the page.
#[derive(Debug)]
pub struct PageAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The header lines.
    pub head: String,
    pub body: String,
}

impl PageAnswer {
    /// Returns the value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }
}

/// Sends a GET for a path of the page at `url`.
///
/// # Panics
/// Panics when the page does not answer within 20 s.
#[must_use]
pub fn get_page(url: &str, path: &str) -> PageAnswer {
    let host = url.trim_start_matches("http://");
    request_page(url, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n"))
}

/// Sends a request of these lines, each with its line end.
///
/// # Panics
/// Panics when the page does not answer within 20 s.
#[must_use]
pub fn request_page(url: &str, lines: &str) -> PageAnswer {
    let mut stream = connect(url, &format!("{lines}Connection: close\r\n\r\n"));
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let answer = String::from_utf8(answer).expect("the page is UTF-8");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    PageAnswer {
        status: status.expect("a status"),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

/// An open stream of server-sent events.
pub struct PageEvents(BufReader<TcpStream>);

impl PageEvents {
    /// Opens a stream.
    ///
    /// # Panics
    /// Panics when the page does not answer.
    #[must_use]
    pub fn open(url: &str, path: &str) -> Self {
        let host = url.trim_start_matches("http://");
        Self(BufReader::new(connect(
            url,
            &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        )))
    }

    /// Returns the next event's data.
    ///
    /// # Panics
    /// Panics when none comes within 20 s of silence.
    pub fn next_data(&mut self) -> String {
        loop {
            let mut line = String::new();
            let read = self.0.read_line(&mut line).expect("an event");
            assert!(read > 0, "the stream ended");
            if let Some(data) = line.strip_prefix("data: ") {
                return data.trim_end().to_owned();
            }
        }
    }
}

fn connect(url: &str, request: &str) -> TcpStream {
    let address = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).expect("the page listens");
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("a time limit");
    stream.write_all(request.as_bytes()).expect("the page reads");
    stream
}
