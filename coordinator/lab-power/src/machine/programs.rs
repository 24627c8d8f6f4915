//! The power programs that make a session on a machine: the official ones, or Regatta's own.

use std::{ffi::OsString, io};

use regatta_power::power_dev::PowerDev;

/// The power programs of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Programs {
    /// The official ones, in this copy of power-dev.
    Official(String),
    /// Regatta's own, which are this program. Their sessions are informative.
    Own,
}

impl Programs {
    /// Returns the copy of power-dev.
    pub fn power_dev(&self) -> Option<&str> {
        match self {
            Self::Official(copy) => Some(copy),
            Self::Own => None,
        }
    }

    /// Returns the server's command on this machine.
    ///
    /// # Errors
    /// Returns an error when this program's own file is not known.
    pub fn server(&self, python: &str) -> io::Result<Vec<OsString>> {
        self.command(python, "server", |copy| copy.server().into())
    }

    /// Returns the client's command on this machine.
    ///
    /// # Errors
    /// As [`Self::server`].
    pub fn client(&self, python: &str) -> io::Result<Vec<OsString>> {
        self.command(python, "client", |copy| copy.client().into())
    }

    fn command(
        &self,
        python: &str,
        role: &str,
        official: impl Fn(&PowerDev) -> OsString,
    ) -> io::Result<Vec<OsString>> {
        Ok(match self {
            Self::Official(copy) => {
                let copy = PowerDev::elsewhere(copy.as_ref(), Default::default(), Vec::new());
                vec![python.into(), official(&copy)]
            }
            Self::Own => vec![
                regatta_fsutil::own_program::own_program()?.into(),
                "power".into(),
                role.into(),
            ],
        })
    }
}
