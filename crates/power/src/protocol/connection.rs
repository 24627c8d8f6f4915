//! A TCP connection that carries lines: bounded, with a limit on silence, and with regular calls while it waits.
//!
//! A line ends with `\n`; `\r` before it is dropped, and invalid UTF-8 is replaced. There is no encryption and no login.

use std::{
    io::{self, Read as _, Write as _},
    net::{Shutdown, TcpStream},
    time::{Duration, Instant},
};

use socket2::{SockRef, TcpKeepalive};

/// How often a waiting reader looks around.
const TICK: Duration = Duration::from_millis(100);
/// A peer that takes no byte for this long is lost.
const MAX_WRITE: Duration = Duration::from_secs(30);
/// A dead peer is noticed after about 22 s, as by the official programs.
const KEEPALIVE: Duration = Duration::from_secs(2);
const KEEPALIVE_PROBES: u32 = 10;
const BLOCK: usize = 16 << 10;

/// A connection that brings no further line.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The peer has closed it.
    #[error("the connection was closed at the other end")]
    Closed,
    /// The system reports an error.
    #[error("the connection was lost")]
    Lost(#[source] io::Error),
    /// The peer sends nothing.
    #[error("nothing was received for {} s", .0.as_secs())]
    Silent(Duration),
    /// A line is longer than any of the protocol.
    #[error("received a line of more than {0} bytes")]
    LongLine(usize),
}

/// The limits of an expected line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineLimits {
    /// The largest length in bytes.
    pub(crate) length: usize,
    /// The longest wait. `None`: a dead peer is noticed by TCP.
    pub(crate) silence: Option<Duration>,
}

#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    /// Bytes that came and were not taken.
    buffer: Vec<u8>,
}

impl Connection {
    /// Takes over a connected stream.
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        // A stream of a listener that does not block may not block either.
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TICK))?;
        stream.set_write_timeout(Some(MAX_WRITE))?;
        let keepalive = TcpKeepalive::new()
            .with_time(KEEPALIVE)
            .with_interval(KEEPALIVE)
            .with_retries(KEEPALIVE_PROBES);
        SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
        Ok(Self {
            stream,
            buffer: Vec::new(),
        })
    }

    pub(crate) fn send(&mut self, line: &str) -> Result<(), ConnectionError> {
        self.send_bytes(format!("{line}\r\n").as_bytes())
    }

    /// Sends bytes.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), ConnectionError> {
        self.stream.write_all(bytes).map_err(ConnectionError::Lost)
    }

    /// Receives a line. Calls `watch` about ten times per second; its error ends the wait.
    pub(crate) fn receive<E: From<ConnectionError>>(
        &mut self,
        limits: LineLimits,
        watch: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<String, E> {
        let begun = Instant::now();
        let mut searched = 0;
        loop {
            if let Some(end) = self.buffer[searched..].iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=searched + end).collect();
                let text = String::from_utf8_lossy(&line[..line.len() - 1]);
                return Ok(text.trim_end_matches('\r').to_owned());
            }
            searched = self.buffer.len();
            if searched > limits.length {
                return Err(ConnectionError::LongLine(limits.length).into());
            }
            self.fill(begun, limits.silence, watch)?;
        }
    }

    /// Receives exactly `length` bytes, block by block.
    pub(crate) fn receive_bytes<E: From<ConnectionError>>(
        &mut self,
        mut length: usize,
        silence: Duration,
        take: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        while length > 0 {
            if self.buffer.is_empty() {
                self.fill(Instant::now(), Some(silence), &mut || Ok::<(), E>(()))?;
            }
            let here = length.min(self.buffer.len());
            take(&self.buffer[..here])?;
            self.buffer.drain(..here);
            length -= here;
        }
        Ok(())
    }

    /// Waits until more bytes are there.
    fn fill<E: From<ConnectionError>>(
        &mut self,
        begun: Instant,
        silence: Option<Duration>,
        watch: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let mut block = [0; BLOCK];
        loop {
            if let Some(silence) = silence.filter(|silence| begun.elapsed() > *silence) {
                return Err(ConnectionError::Silent(silence).into());
            }
            match self.stream.read(&mut block) {
                Ok(0) => return Err(ConnectionError::Closed.into()),
                Ok(length) => {
                    self.buffer.extend_from_slice(&block[..length]);
                    return Ok(());
                }
                Err(error) if is_no_byte_yet(&error) => watch()?,
                Err(error) => return Err(ConnectionError::Lost(error).into()),
            }
        }
    }

    /// Whether the peer has closed the connection. Unread bytes may hide that until they are read.
    pub(crate) fn is_closed(&self) -> bool {
        if self.stream.set_nonblocking(true).is_err() {
            return true;
        }
        let peeked = self.stream.peek(&mut [0]);
        let blocks_again = self.stream.set_nonblocking(false);
        match peeked {
            Ok(length) => length == 0 || blocks_again.is_err(),
            Err(error) => !is_no_byte_yet(&error) || blocks_again.is_err(),
        }
    }

    /// Ends the connection so that the peer still receives what was sent: unread bytes would reset it.
    pub(crate) fn close_politely(mut self, longest: Duration) {
        let _ = self.stream.shutdown(Shutdown::Write);
        let begun = Instant::now();
        let mut block = [0; BLOCK];
        while begun.elapsed() < longest {
            match self.stream.read(&mut block) {
                Ok(0) => return,
                Err(error) if !is_no_byte_yet(&error) => return,
                Ok(_) | Err(_) => {}
            }
        }
    }
}

/// Whether a read only found that nothing came in time.
fn is_no_byte_yet(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const LIMITS: LineLimits = LineLimits {
        length: 100,
        silence: Some(Duration::from_millis(300)),
    };

    fn pair() -> (Connection, TcpStream) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (Connection::new(listener.accept().unwrap().0).unwrap(), peer)
    }

    fn receive(connection: &mut Connection) -> Result<String, ConnectionError> {
        connection.receive(LIMITS, &mut || Ok(()))
    }

    #[test]
    fn lines_come_one_by_one_and_end_as_they_like() {
        let (mut connection, mut peer) = pair();
        peer.write_all(b"one\r\ntwo\n\nfo\xffr\r\r\nrest").unwrap();
        for line in ["one", "two", "", "fo\u{fffd}r"] {
            assert_eq!(receive(&mut connection).unwrap(), line);
        }
        assert!(matches!(
            receive(&mut connection),
            Err(ConnectionError::Silent(_))
        ));
        assert!(!connection.is_closed());
        drop(peer);
        assert!(connection.is_closed());
        assert!(matches!(receive(&mut connection), Err(ConnectionError::Closed)));
    }

    #[test]
    fn a_line_without_an_end_is_refused() {
        let (mut connection, mut peer) = pair();
        peer.write_all(&[b'x'; 200]).unwrap();
        assert!(matches!(
            receive(&mut connection),
            Err(ConnectionError::LongLine(100))
        ));
    }

    #[test]
    fn a_watcher_ends_the_wait() {
        #[derive(Debug)]
        struct Ended;
        impl From<ConnectionError> for Ended {
            fn from(_: ConnectionError) -> Self {
                panic!("the watcher is first")
            }
        }
        let (mut connection, _peer) = pair();
        let limits = LineLimits {
            silence: None,
            ..LIMITS
        };
        let result: Result<String, Ended> = connection.receive(limits, &mut || Err(Ended));
        assert!(result.is_err());
    }
}
