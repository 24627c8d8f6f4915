//! Answers a browser that speaks HTTP without TLS at the port of the page with TLS: with a sentence that has the page's address.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

/// The longest time in which the browser reads the answer and closes the connection.
const PATIENCE: Duration = Duration::from_secs(2);
/// The largest part of the request that is read, in bytes. A connection that is closed with unread bytes may lose its answer.
const MAX_REQUEST: u64 = 64 * 1024;

/// Returns whether the first byte begins a request without TLS, of which it takes none: the methods of HTTP are capital letters, and a TLS
/// handshake begins with 0x16.
///
/// # Errors
/// Returns an error when the connection fails.
pub(super) async fn is_plain_http(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    let read = stream.peek(&mut first).await?;
    Ok(read == 1 && first[0].is_ascii_uppercase())
}

/// Answers with the page's address.
///
/// # Errors
/// Returns an error when the connection fails.
pub(super) async fn refuse(mut stream: TcpStream, url: &str) -> io::Result<()> {
    let sentence = format!("Regatta's live page is only served over HTTPS: open {url}/\n");
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n{sentence}",
        sentence.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    let mut rest = stream.take(MAX_REQUEST);
    let mut part = [0; 1024];
    let drained = async { while rest.read(&mut part).await.is_ok_and(|read| read > 0) {} };
    // The answer was sent: a browser that stays connected loses nothing.
    let _ = timeout(PATIENCE, drained).await;
    Ok(())
}
