//! Where to connect and as whom. It resolves no name and reads no file.

use std::{fmt, path::PathBuf};

/// The address and login of a board, from the command line and `~/.ssh/config`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The login's user.
    pub user: String,
    /// Name or address to resolve.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Key files to try first.
    pub identities: Vec<PathBuf>,
    /// The jump host.
    pub jump: Option<Box<Access>>,
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
