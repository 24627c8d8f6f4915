//! The files of a test as their publishers have them: archives, checksums, and a server.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    process::Command,
    thread,
};

use regatta_tests::succeed_output;
use sha2::{Digest as _, Sha256};

/// Returns a checksum as benchmarks' files have it.
pub(crate) fn sha256(content: &[u8]) -> String {
    let digits = Sha256::digest(content)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<String>();
    format!("sha256:{digits}")
}

/// Makes or extends an archive of files in a directory.
pub(crate) fn tar(how: &str, archive: &Path, directory: &Path, names: &[String]) {
    let _ = succeed_output(
        Command::new("tar")
            .arg(how)
            .arg(archive)
            .arg("-C")
            .arg(directory)
            .args(names),
    );
}

/// Serves files by their names over HTTP, and returns the address.
pub(crate) fn serve(files: BTreeMap<&'static str, Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            answer(stream.unwrap(), &files);
        }
    });
    address
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
