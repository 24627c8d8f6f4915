//! A server of published files: plain HTTP, one request per connection.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// Serves files by their path below `/`, and counts the requests. It ends with the test's process.
pub struct FileServer {
    /// The address, `http://HOST:PORT`.
    pub address: String,
    requests: Arc<AtomicUsize>,
}

impl FileServer {
    /// Starts a server on a free port.
    ///
    /// # Panics
    /// Panics when no port can be had.
    #[must_use]
    pub fn start(files: BTreeMap<&'static str, Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming() {
                counted.fetch_add(1, Ordering::Relaxed);
                answer(stream.unwrap(), &files);
            }
        });
        Self { address, requests }
    }

    /// Returns the number of requests so far.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }
}

fn answer(mut stream: TcpStream, files: &BTreeMap<&'static str, Vec<u8>>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let request = lines.next().unwrap().unwrap();
    lines.find(|line| line.as_ref().is_ok_and(String::is_empty));
    let name = request.split(' ').nth(1).unwrap().trim_start_matches('/');
    let (status, body) = match files.get(name) {
        Some(content) => ("200 OK", content.as_slice()),
        None => ("404 Not Found", &b""[..]),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
}
