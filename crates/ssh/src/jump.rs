//! Connects through a jump host: a channel of the first connection becomes the socket of the second. A thread copies the bytes.

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    thread,
    time::Duration,
};

use ssh2::{Channel, Session};

/// The interval between two polls of an idle connection. libssh2 cannot wait for a channel and a socket at once. Few connections
/// have a jump host, so polling is cheap enough.
const PAUSE: Duration = Duration::from_millis(2);

/// Connects to `host:port` through `through`, and returns the local end.
///
/// # Errors
/// Returns an error when the jump host refuses, or the system has no sockets or threads left.
pub(super) fn open(through: Session, host: &str, port: u16) -> io::Result<UnixStream> {
    let channel = through.channel_direct_tcpip(host, port, None)?;
    let (near, far) = UnixStream::pair()?;
    far.set_nonblocking(true)?;
    through.set_blocking(false);
    thread::Builder::new().name("jump".to_owned()).spawn(move || {
        // The session lives as long as the channel. When either ends, the local end is closed too.
        let _through = through;
        carry(channel, far);
    })?;
    Ok(near)
}

/// Copies bytes in both directions until either end closes.
fn carry(mut channel: Channel, mut socket: UnixStream) {
    let (mut out, mut back) = (Flow::default(), Flow::default());
    loop {
        let moved = out
            .step(&mut socket, &mut channel)
            .and_then(|out| Ok(out | back.step(&mut channel, &mut socket)?));
        match moved {
            Ok(true) => {}
            Ok(false) => thread::sleep(PAUSE),
            Err(_) => return,
        }
    }
}

/// Bytes in transit in one direction.
#[derive(Default)]
struct Flow {
    bytes: Vec<u8>,
    gone: usize,
}

impl Flow {
    /// Reads available bytes and writes pending ones. Returns whether any byte moved.
    fn step(&mut self, from: &mut impl Read, to: &mut impl Write) -> io::Result<bool> {
        let mut moved = false;
        if self.gone == self.bytes.len() {
            self.bytes.resize(32 * 1024, 0);
            self.gone = 0;
            let read = would_block(from.read(&mut self.bytes));
            let length = match &read {
                Ok(Some(length)) => *length,
                _ => 0,
            };
            self.bytes.truncate(length);
            match read? {
                Some(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Some(_) => moved = true,
                None => {}
            }
        }
        while let Some(rest) = self.bytes.get(self.gone..).filter(|rest| !rest.is_empty()) {
            match would_block(to.write(rest))? {
                Some(0) | None => break,
                Some(written) => {
                    self.gone += written;
                    moved = true;
                }
            }
        }
        Ok(moved)
    }
}

/// Returns `None` where the call would block.
fn would_block(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(count) => Ok(Some(count)),
        Err(error)
            if error.kind() == io::ErrorKind::WouldBlock || error.kind() == io::ErrorKind::Interrupted =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
