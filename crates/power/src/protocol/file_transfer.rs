//! Files over a connection, in chunks: a line with the chunk's length, then its bytes. A chunk of length 0 ends a file.

use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use regatta_fsutil::regular_file;

use super::{
    connection::{Connection, ConnectionError, LineLimits},
    file_error::FileError,
};

/// The chunks that are sent.
const CHUNK: usize = 1 << 20;
/// The largest chunk that is received.
const MAX_CHUNK: usize = 16 << 20;
/// The largest file that is received. PTDaemon's log of a day is smaller.
const MAX_FILE: usize = 1 << 30;
/// The longest line: a length, or the peer's error.
const MAX_LINE: usize = 4 << 10;
/// The longest wait for the next bytes.
const SILENCE: Duration = Duration::from_secs(60);

/// A file that was not transferred.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The connection brings nothing more.
    #[error("the transfer was interrupted")]
    Connection(#[from] ConnectionError),
    /// The file here.
    #[error(transparent)]
    File(#[from] FileError),
    /// The peer sends no file.
    #[error("received `{0}` instead of a file")]
    Refused(String),
    /// The peer sends more than a session has.
    #[error("the file is larger than {0} bytes")]
    TooLarge(usize),
}

pub(crate) fn send_file(connection: &mut Connection, path: &Path) -> Result<(), TransferError> {
    let mut file = regular_file::open(path).map_err(FileError::at("read", path))?;
    let mut chunk = Vec::with_capacity(CHUNK);
    loop {
        chunk.clear();
        let read = (&mut file).take(CHUNK as u64).read_to_end(&mut chunk);
        let length = read.map_err(FileError::at("read", path))?;
        connection.send(&length.to_string())?;
        if length == 0 {
            return Ok(());
        }
        connection.send_bytes(&chunk)?;
    }
}

/// Receives a file. Nothing is at `path` when it is not complete.
pub(crate) fn receive_file(connection: &mut Connection, path: &Path) -> Result<(), TransferError> {
    let partial = PathBuf::from(format!("{}.tmp", path.display()));
    let received = receive_chunks(connection, &partial).and_then(|()| {
        fs::rename(&partial, path).map_err(|error| FileError::at("write", path)(error).into())
    });
    if received.is_err() {
        // It may not exist; the error that is returned matters more.
        let _ = fs::remove_file(&partial);
    }
    received
}

fn receive_chunks(connection: &mut Connection, path: &Path) -> Result<(), TransferError> {
    let limits = LineLimits {
        length: MAX_LINE,
        silence: Some(SILENCE),
    };
    let mut file = File::create(path).map_err(FileError::at("write", path))?;
    let mut whole = 0;
    loop {
        let line = connection.receive(limits, &mut || Ok::<(), TransferError>(()))?;
        let length: usize = line.trim().parse().map_err(|_| TransferError::Refused(line))?;
        if length == 0 {
            return file
                .sync_all()
                .map_err(|error| FileError::at("write", path)(error).into());
        }
        whole += length.min(MAX_FILE);
        if length > MAX_CHUNK || whole > MAX_FILE {
            return Err(TransferError::TooLarge(length.max(MAX_FILE)));
        }
        connection.receive_bytes(length, SILENCE, &mut |bytes| {
            file.write_all(bytes)
                .map_err(|error| TransferError::from(FileError::at("write", path)(error)))
        })?;
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::{TcpListener, TcpStream},
        thread,
    };

    use super::*;

    fn pair() -> (Connection, TcpStream) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (Connection::new(listener.accept().unwrap().0).unwrap(), peer)
    }

    #[test]
    fn a_file_arrives_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        let bytes: Vec<u8> = (0..3 * CHUNK + 17).map(|at| (at % 251) as u8).collect();
        for bytes in [&bytes[..], b""] {
            fs::write(&from, bytes).unwrap();
            let (mut connection, peer) = pair();
            let sender = {
                let from = from.clone();
                thread::spawn(move || send_file(&mut Connection::new(peer).unwrap(), &from))
            };
            receive_file(&mut connection, &to).unwrap();
            sender.join().unwrap().unwrap();
            assert!(fs::read(&to).unwrap() == bytes);
        }
    }

    #[test]
    fn hostile_lengths_leave_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let to = directory.path().join("to");
        for (sent, words) in [
            (&b"-1\r\n"[..], "received `-1` instead of a file"),
            (b"99999999999999999999999\r\n", "instead of a file"),
            (b"9223372036854775807\r\n", "larger than"),
            (b"Error: exception\r\n", "received `Error: exception`"),
            (b"5\r\nab", "interrupted"),
        ] {
            let (mut connection, mut peer) = pair();
            peer.write_all(sent).unwrap();
            drop(peer);
            let error = receive_file(&mut connection, &to).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        }
    }
}
