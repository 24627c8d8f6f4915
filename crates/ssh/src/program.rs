//! A program at the other end of a connection that is read and written while it runs. One thread uses a connection; other commands of
//! that thread over the same connection may come in between.

use std::io::{self, Read as _, Write as _};

use ssh2::{Channel, ExtendedData};

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

    /// Returns the complete lines that have arrived, and at the end also an incomplete one. Does not wait.
    pub fn new_lines(&mut self) -> Vec<String> {
        if self.end.is_none() {
            self.session.set_blocking(false);
            let ended = self.read();
            self.session.set_blocking(true);
            self.end = ended.unwrap_or_else(|error| Some(RemoteEnd::Lost(error.to_string())));
        }
        let complete = match self.end {
            Some(_) => self.rest.len(),
            None => self
                .rest
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |at| at + 1),
        };
        let bytes: Vec<u8> = self.rest.drain(..complete).collect();
        let text = String::from_utf8_lossy(&bytes);
        text.lines().map(|line| line.trim_end().to_owned()).collect()
    }

    /// Reads the output that has arrived. Returns how the program ended, once it has.
    fn read(&mut self) -> io::Result<Option<RemoteEnd>> {
        let mut piece = vec![0; 32 * 1024];
        loop {
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

impl Drop for RemoteProgram {
    fn drop(&mut self) {
        if self.end.is_none() {
            self.close_input();
        }
    }
}
