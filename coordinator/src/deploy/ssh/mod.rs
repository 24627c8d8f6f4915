//! The link to a board by SSH, over libssh2: where to connect ([`Access`]), whose key is trusted ([`known_hosts`]), how the login is
//! proven ([`login`]), and commands over it ([`Session`]). Nothing of what is done on the board.

mod config;
mod destination;
mod jump;
mod known_hosts;
mod login;
mod session;

use std::path::PathBuf;

pub(crate) use config::{Over, SshConfig};
pub(crate) use destination::{Destination, DestinationError};
pub(crate) use session::{Session, SshError};

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

impl std::fmt::Display for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}", self.user, self.host)?;
        if self.port != 22 {
            write!(f, " port {}", self.port)?;
        }
        Ok(())
    }
}

/// What a user at a terminal, or a file in place of one, is asked.
pub(crate) trait Prompt: Sync {
    /// A password, or the phrase of a key. `again` after one that was wrong. `None` when nobody is there to ask, or nothing
    /// more is known.
    fn secret(&self, what: &str, again: bool) -> Option<Secret>;
    /// Whether an unknown host key is accepted. `fingerprint` is as `ssh-keygen -l` prints it.
    fn accepts(&self, host: &str, kind: &str, fingerprint: &str) -> bool;
}
