//! The link to a board by SSH, over libssh2: where to connect ([`Access`]), whose key is trusted ([`known_hosts`]), how the login is
//! proven ([`login`]), and commands over it ([`Session`]). Nothing of what is done on the board.

mod config;
mod destination;
mod error;
mod jump;
mod known_hosts;
mod login;
mod session;

use std::{
    fmt,
    path::{Path, PathBuf},
};

pub(crate) use config::{AccessOptions, SshConfig};
pub(crate) use destination::{Destination, DestinationError};
pub(crate) use error::SshError;
pub(crate) use session::Session;

use super::Secret;

/// Where a board is and as whom to log in, with everything that the command line and `~/.ssh/config` say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Access {
    /// The login.
    pub(crate) user: String,
    /// Name or address, as it is looked up.
    pub(crate) host: String,
    /// TCP port.
    pub(crate) port: u16,
    /// Key files to try before all else.
    pub(crate) identities: Vec<PathBuf>,
    /// The host to go through.
    pub(crate) jump: Option<Box<Access>>,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.user, self.host)?;
        if self.port != 22 {
            write!(f, " port {}", self.port)?;
        }
        Ok(())
    }
}

/// A secret that is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Question<'a> {
    /// The password of a login.
    Password(&'a Access),
    /// The phrase of a key file.
    Phrase(&'a Path),
    /// The password for sudo, of a login.
    Sudo(&'a Access),
}

impl fmt::Display for Question<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Password(access) => write!(f, "password of {access}"),
            Self::Phrase(path) => write!(f, "phrase of the key {}", path.display()),
            Self::Sudo(access) => write!(f, "sudo password of {access}"),
        }
    }
}

/// What a user at a terminal, or a file in place of one, is asked.
pub(crate) trait Prompt: Sync {
    /// A secret. `again` after one that was wrong. `None` when nobody is there to ask, or nothing more is known.
    fn secret(&self, question: &Question<'_>, again: bool) -> Option<Secret>;
    /// Whether an unknown host key is accepted. `fingerprint` is as `ssh-keygen -l` prints it.
    fn accepts(&self, host: &str, kind: &str, fingerprint: &str) -> bool;
}

/// What came of asking for a secret and trying it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It was right.
    Right,
    /// All that were given were wrong.
    Wrong,
    /// None was given.
    None,
}

/// How often somebody at a terminal may try.
const TRIES: usize = 3;

/// Asks until the answer is right, [`TRIES`] times at most. `ask` is told whether it is asked again, `is_right` tries the answer.
///
/// # Errors
/// What `is_right` gave.
pub(crate) fn retry_password<E>(
    mut next_password: impl FnMut(bool) -> Option<Secret>,
    mut is_right: impl FnMut(Secret) -> Result<bool, E>,
) -> Result<Answer, E> {
    let mut answer = Answer::None;
    for _ in 0..TRIES {
        let Some(secret) = next_password(answer == Answer::Wrong) else {
            break;
        };
        if is_right(secret)? {
            return Ok(Answer::Right);
        }
        answer = Answer::Wrong;
    }
    Ok(answer)
}
