//! A server that answers every request at once: with a fixed list of tokens as one document, or as an event each. It reads requests as far as
//! their length.

use std::{
    error::Error,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread,
};

/// The option with which the benchmark's own program is the server.
pub(crate) const OPTION: &str = "--null-server";
pub(crate) const TOKENS: usize = 128;

/// Serves a port until the process is ended.
pub(crate) fn serve(port: u16) -> Result<(), Box<dyn Error>> {
    for connection in TcpListener::bind(("127.0.0.1", port))?.incoming() {
        let connection = connection?;
        thread::spawn(move || {
            // A client may go at any time.
            let _ = answer_all(connection);
        });
    }
    Ok(())
}

fn answer_all(mut connection: TcpStream) -> std::io::Result<()> {
    connection.set_nodelay(true)?;
    let (document, events) = (answer(), events());
    let mut requests = BufReader::new(connection.try_clone()?);
    loop {
        let (mut line, mut length) = (String::new(), 0);
        if requests.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let is_health = line.starts_with("GET");
        loop {
            line.clear();
            requests.read_line(&mut line)?;
            let field = line.trim_end().to_ascii_lowercase();
            if field.is_empty() {
                break;
            }
            if let Some(value) = field.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or_default();
            }
        }
        let mut body = vec![0; length];
        requests.read_exact(&mut body)?;
        let streams = body.windows(13).any(|part| part == b"\"stream\":true");
        if is_health {
            connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
        } else if streams {
            for event in &events {
                connection.write_all(event)?;
            }
        } else {
            connection.write_all(&document)?;
        }
    }
}

/// Returns the bytes of an answer that is not a stream.
pub(crate) fn answer() -> Vec<u8> {
    let tokens: Vec<String> = (0..TOKENS).map(|token| (token + 10_000).to_string()).collect();
    let text = "word ".repeat(TOKENS);
    let body = format!(
        "{{\"id\":\"1\",\"object\":\"text_completion\",\"choices\":[{{\"index\":0,\"text\":\"{text}\",\"token_ids\":[{}],\
         \"finish_reason\":\"length\"}}],\"usage\":{{\"completion_tokens\":{TOKENS}}}}}",
        tokens.join(",")
    );
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    (head + &body).into_bytes()
}

/// Returns the pieces of a stream: its head, an event per token, and the end.
fn events() -> Vec<Vec<u8>> {
    let chunk = |data: &str| format!("{:x}\r\n{data}\r\n", data.len()).into_bytes();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut pieces = vec![head.as_bytes().to_vec()];
    pieces.extend((0..TOKENS).map(|token| {
        chunk(&format!(
            "data: {{\"id\":\"1\",\"choices\":[{{\"index\":0,\"text\":\"word\",\"token_ids\":[{}]}}]}}\n\n",
            token + 10_000
        ))
    }));
    pieces.push(chunk("data: [DONE]\n\n"));
    pieces.push(b"0\r\n\r\n".to_vec());
    pieces
}
