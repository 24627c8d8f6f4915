//! The agent's end of the protocol: one connection for one run. The state lasts while the connection is open. When it
//! closes for any reason, the helper restores everything. This file does not decide which state to request.

use std::{
    fmt,
    io::{self, BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    device_control::DeviceControl,
    message::{ControlReport, HelperRequest, ResponseLine},
    state_request::StateRequest,
};

/// The path of the helper's socket, as the package's systemd unit creates it.
pub const SOCKET_PATH: &str = "/run/regatta-state.sock";
/// The time that a response may take: nvpmodel takes seconds, and a failed request runs it twice.
const TIMEOUT: Duration = Duration::from_secs(150);

/// The error of a request to the helper.
#[derive(Debug)]
pub enum HelperError {
    /// No connection to the helper can be opened.
    Unavailable {
        socket: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The connection broke during a request.
    ConnectionLost(io::Error),
    /// The helper's response is not of this protocol version.
    UnknownResponse,
    /// The helper refused the request.
    Refused {
        /// The helper's reason.
        reason: String,
        /// The controls that the helper had read by then.
        controls: Vec<ControlReport>,
    },
}

impl fmt::Display for HelperError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable { socket, .. } => write!(
                f,
                "the helper that sets the device's state cannot be reached at {} \
                 (hint: install the regatta-agent package as root, or run with --state as-is)",
                socket.display()
            ),
            Self::ConnectionLost(_) => {
                f.write_str("the connection to the helper that keeps the device's state was lost")
            }
            Self::UnknownResponse => f.write_str(
                "the helper that sets the device's state is of another version; \
                 hint: install agent and helper from one package",
            ),
            Self::Refused { reason, .. } => f.write_str(reason),
        }
    }
}

impl std::error::Error for HelperError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unavailable { source, .. } | Self::ConnectionLost(source) => Some(source),
            _ => None,
        }
    }
}

/// A connection to the helper. A state that it applied lasts until the connection is dropped.
#[derive(Debug)]
pub struct HelperConnection {
    stream: BufReader<UnixStream>,
}

impl HelperConnection {
    /// Connects to the helper's socket.
    ///
    /// # Errors
    /// [`HelperError::Unavailable`] when nothing listens, or this user may not connect.
    pub fn connect(socket: &Path) -> Result<Self, HelperError> {
        let unavailable = |source| HelperError::Unavailable {
            socket: socket.to_owned(),
            source,
        };
        let stream = UnixStream::connect(socket).map_err(unavailable)?;
        stream.set_read_timeout(Some(TIMEOUT)).map_err(unavailable)?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Applies a state and returns every control that was set.
    ///
    /// # Errors
    /// [`HelperError::Refused`] when the board cannot take the state, which is then restored; the other errors when the
    /// helper does not respond.
    pub fn apply(&mut self, request: &StateRequest) -> Result<Vec<ControlReport>, HelperError> {
        self.send(&HelperRequest::Apply(request.clone()))
    }

    /// Restores the earlier state, also when a helper that died had applied it. Returns every control that was restored.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn restore(&mut self) -> Result<Vec<ControlReport>, HelperError> {
        self.send(&HelperRequest::Restore)
    }

    /// Reads these controls, or all controls of the board when the list is empty.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn read(&mut self, controls: &[DeviceControl]) -> Result<Vec<ControlReport>, HelperError> {
        self.send(&HelperRequest::Read(controls.to_vec()))
    }

    fn send(&mut self, request: &HelperRequest) -> Result<Vec<ControlReport>, HelperError> {
        let line = format!("{request}\n");
        self.stream
            .get_mut()
            .write_all(line.as_bytes())
            .map_err(HelperError::ConnectionLost)?;
        let mut controls = Vec::new();
        loop {
            let mut line = String::new();
            if self
                .stream
                .read_line(&mut line)
                .map_err(HelperError::ConnectionLost)?
                == 0
            {
                return Err(HelperError::ConnectionLost(io::ErrorKind::UnexpectedEof.into()));
            }
            match line.trim_end_matches('\n').parse() {
                Ok(ResponseLine::Control(control)) => controls.push(control),
                Ok(ResponseLine::Done) => return Ok(controls),
                Ok(ResponseLine::Refused(reason)) => return Err(HelperError::Refused { reason, controls }),
                Err(()) => return Err(HelperError::UnknownResponse),
            }
        }
    }
}
