//! A program at the other end of a connection that is read and written while it runs. One thread uses a connection; other commands of
//! that thread over the same connection may come in between.

use std::io::{self, Read as _, Write as _};

use ssh2::{Channel, ExtendedData};

/// The bytes of one reading. A program that prints without end must not keep its reader from everything else.
const MAX_READ: usize = 1 << 20;
/// The longest line. A longer one is passed on in parts.
const MAX_LINE: usize = 64 << 10;

/// The end of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteEnd {
    /// It exited with this code.
    Code(i32),
    /// It was killed by this signal.
    Signal(String),
    /// Unknown: the connection failed.
    Lost(String),
}

/// A running program. Dropping it closes its standard input.
pub struct RemoteProgram {
    session: ssh2::Session,
    channel: Channel,
    /// The beginning of a line that is not complete.
    rest: Vec<u8>,
    end: Option<RemoteEnd>,
}

impl RemoteProgram {
    /// Starts a command line in the login shell. Standard error is part of the output.
    ///
    /// # Errors
    /// Returns an error when the connection fails, or the server refuses.
    pub(super) fn start(session: &ssh2::Session, line: &str) -> Result<Self, ssh2::Error> {
        let mut channel = session.channel_session()?;
        channel.handle_extended_data(ExtendedData::Merge)?;
        channel.exec(line)?;
        Ok(Self {
            session: session.clone(),
            channel,
            rest: Vec::new(),
            end: None,
        })
    }

    /// Returns the complete lines that have arrived, and at the end also an incomplete one. Does not wait, and returns 1 MiB at most.
    pub fn new_lines(&mut self) -> Vec<String> {
        if self.end.is_none() {
            self.session.set_blocking(false);
            let ended = self.read();
            self.session.set_blocking(true);
            self.end = ended.unwrap_or_else(|error| Some(RemoteEnd::Lost(error.to_string())));
        }
        let complete = match self.end {
            Some(_) => self.rest.len(),
            None => complete_length(&self.rest),
        };
        let bytes: Vec<u8> = self.rest.drain(..complete).collect();
        let text = String::from_utf8_lossy(&bytes);
        text.lines().map(|line| line.trim_end().to_owned()).collect()
    }

    /// Reads the output that has arrived. Returns how the program ended, once it has.
    fn read(&mut self) -> io::Result<Option<RemoteEnd>> {
        let mut piece = vec![0; 32 * 1024];
        let most = self.rest.len() + MAX_READ;
        loop {
            if self.rest.len() >= most {
                return Ok(None);
            }
            match self.channel.read(&mut piece) {
                Ok(0) => break,
                Ok(length) => self
                    .rest
                    .extend_from_slice(piece.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        if !self.channel.eof() {
            return Ok(None);
        }
        self.session.set_blocking(true);
        self.channel.close()?;
        self.channel.wait_close()?;
        // The code is 0 when a signal has ended the program.
        let signal = self.channel.exit_signal()?.exit_signal;
        Ok(Some(match signal {
            Some(signal) => RemoteEnd::Signal(signal),
            None => RemoteEnd::Code(self.channel.exit_status()?),
        }))
    }

    /// Writes a line to its standard input.
    ///
    /// # Errors
    /// Returns an error when the connection fails, or the program reads no more.
    pub fn write_line(&mut self, line: &str) -> io::Result<()> {
        // Not flushed: libssh2 sends at once, and its flush discards what has arrived and was not read.
        self.channel.write_all(format!("{line}\n").as_bytes())
    }

    /// Closes its standard input.
    pub fn close_input(&mut self) {
        // A connection that fails has closed it, too.
        let _ = self.channel.send_eof();
    }

    /// Returns the end, as far as its output was read.
    pub const fn end(&self) -> Option<&RemoteEnd> {
        self.end.as_ref()
    }
}

/// Returns the length of the complete lines at the beginning of `bytes`, or of everything when the rest is longer than a line may be.
fn complete_length(bytes: &[u8]) -> usize {
    let complete = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    if bytes.len() - complete > MAX_LINE {
        bytes.len()
    } else {
        complete
    }
}

impl Drop for RemoteProgram {
    fn drop(&mut self) {
        if self.end.is_none() {
            self.close_input();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_an_end_is_passed_on_in_parts() {
        assert_eq!(complete_length(b"one\ntwo"), 4);
        assert_eq!(complete_length(b"two"), 0);
        let endless = vec![b'y'; MAX_LINE + 1];
        assert_eq!(complete_length(&endless), endless.len());
    }
}
