//! The agent's end: one connection for one run. While it is open the state holds; when it closes, for whatever reason, the
//! helper puts everything back.

use std::{
    fmt,
    io::{self, BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    knob::Knob,
    message::{KnobLine, Line, Request},
    wish::Wish,
};

/// Where the package's socket is.
pub const SOCKET: &str = "/run/regatta-state.sock";
/// nvpmodel may take seconds, twice.
const PATIENCE: Duration = Duration::from_secs(150);

/// Why the helper was of no use.
#[derive(Debug)]
pub enum HelperError {
    /// Nobody is there.
    Missing {
        /// Where it was looked for.
        socket: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It went away in the middle.
    Lost(io::Error),
    /// It said something that this program does not understand.
    Foreign,
    /// It refused; what it read goes with it.
    Refused {
        /// Its sentence.
        why: String,
        /// What was wanted and read.
        knobs: Vec<KnobLine>,
    },
}

impl fmt::Display for HelperError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { socket, .. } => write!(
                f,
                "the helper that sets the device's state is not there ({}): install the regatta-agent package as root, \
                 or ask for the state as-is",
                socket.display()
            ),
            Self::Lost(_) => f.write_str("the helper that holds the device's state was lost"),
            Self::Foreign => f.write_str(
                "the helper that sets the device's state is of another version: install agent and helper from one package",
            ),
            Self::Refused { why, .. } => f.write_str(why),
        }
    }
}

impl std::error::Error for HelperError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Missing { source, .. } | Self::Lost(source) => Some(source),
            _ => None,
        }
    }
}

/// A connection to the helper.
#[derive(Debug)]
pub struct Helper {
    stream: BufReader<UnixStream>,
}

impl Helper {
    /// Connects.
    ///
    /// # Errors
    /// [`HelperError::Missing`] when nobody listens, or this user may not.
    pub fn connect(socket: &Path) -> Result<Self, HelperError> {
        let missing = |source| HelperError::Missing {
            socket: socket.to_owned(),
            source,
        };
        let stream = UnixStream::connect(socket).map_err(missing)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(missing)?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Sets a state.
    ///
    /// # Errors
    /// [`HelperError::Refused`] with the board as it was before; or the helper is of no use.
    pub fn apply(&mut self, wish: &Wish) -> Result<Vec<KnobLine>, HelperError> {
        self.ask(&Request::Apply(wish.clone()))
    }

    /// Puts back what was found before, also what an earlier helper has left.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn restore(&mut self) -> Result<Vec<KnobLine>, HelperError> {
        self.ask(&Request::Restore)
    }

    /// What these knobs are at; all of them, when none is named.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn read(&mut self, knobs: &[Knob]) -> Result<Vec<KnobLine>, HelperError> {
        self.ask(&Request::Read(knobs.to_vec()))
    }

    fn ask(&mut self, request: &Request) -> Result<Vec<KnobLine>, HelperError> {
        let words = format!("{request}\n");
        self.stream
            .get_mut()
            .write_all(words.as_bytes())
            .map_err(HelperError::Lost)?;
        let mut knobs = Vec::new();
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).map_err(HelperError::Lost)? == 0 {
                return Err(HelperError::Lost(io::ErrorKind::UnexpectedEof.into()));
            }
            match line.trim_end_matches('\n').parse() {
                Ok(Line::Knob(knob)) => knobs.push(knob),
                Ok(Line::Done) => return Ok(knobs),
                Ok(Line::Refused(why)) => return Err(HelperError::Refused { why, knobs }),
                Err(()) => return Err(HelperError::Foreign),
            }
        }
    }
}
