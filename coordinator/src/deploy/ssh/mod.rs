//! The SSH link to a board, with libssh2: where to connect ([`Access`]), trusted host keys ([`known_hosts`]), authentication ([`login`]),
//! commands ([`Session`]), long-running programs and files. It has no knowledge of a deployment.

mod config;
mod destination;
mod error;
mod files;
mod jump;
mod known_hosts;
mod login;
mod program;
mod session;

use std::{
    fmt,
    path::{Path, PathBuf},
};

pub(crate) use config::{AccessOptions, SshConfig};
pub(crate) use destination::{Destination, DestinationError};
pub(crate) use error::SshError;
pub(crate) use files::RemoteFiles;
pub(crate) use program::{RemoteEnd, RemoteProgram};
pub(crate) use session::Session;

use super::Secret;

/// The address and login of a board, from the command line and `~/.ssh/config`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Access {
    /// The login's user.
    pub(crate) user: String,
    /// Name or address to resolve.
    pub(crate) host: String,
    /// TCP port.
    pub(crate) port: u16,
    /// Key files to try first.
    pub(crate) identities: Vec<PathBuf>,
    /// The jump host.
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

/// A secret to prompt for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Question<'a> {
    /// The password of a login.
    Password(&'a Access),
    /// The passphrase of a key file.
    Phrase(&'a Path),
    /// The password of a login's user for sudo.
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

/// Asks the user at a terminal, or reads from a file instead.
pub(crate) trait Prompt: Sync {
    /// Prompts for a secret. `again` is true after a wrong one. Returns `None` without a terminal to prompt on and without another known
    /// secret.
    fn secret(&self, question: &Question<'_>, again: bool) -> Option<Secret>;
    /// Asks whether to accept an unknown host key. `fingerprint` has the format of `ssh-keygen -l`.
    fn accepts(&self, host: &str, kind: &str, fingerprint: &str) -> bool;
}

/// The result of asking for a secret and trying it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A secret was right.
    Right,
    /// Every secret was wrong.
    Wrong,
    /// No secret was entered.
    None,
}

/// The maximum number of attempts at a terminal.
const TRIES: usize = 3;

/// Prompts until the answer is right, at most [`TRIES`] times. The argument of `next_password` is whether the previous answer was wrong.
/// `is_right` tries the answer.
///
/// # Errors
/// Returns the error of `is_right`.
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
