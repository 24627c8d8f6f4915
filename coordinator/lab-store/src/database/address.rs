//! The place of a lab's database: a file, or a database of a PostgreSQL server.

use std::{
    fmt,
    net::IpAddr,
    path::{Path, PathBuf},
    str::FromStr,
};

use postgres::config::Host;

use super::error::with_causes;

/// The place of a lab's database.
#[derive(Debug, Clone)]
pub enum DatabaseAddress {
    /// An SQLite database.
    File(PathBuf),
    /// A database of a PostgreSQL server, which contains this lab only.
    Server(Box<ServerAddress>),
}

/// A database of a PostgreSQL server, and how to connect to it.
#[derive(Clone)]
pub struct ServerAddress {
    pub(super) config: postgres::Config,
    /// The file with the certificates of the server's authority, in PEM. `None` for a server on this machine.
    pub(super) ca: Option<PathBuf>,
}

/// A setting that does not name a database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The text cannot be parsed.
    #[error(
        "`database` is not an address of PostgreSQL: {0}; hint: it has the form postgresql://USER@HOST/DATABASE, or \
         host=/run/postgresql user=USER dbname=DATABASE"
    )]
    Form(String),
    /// The address has no database.
    #[error(
        "`database` names no database; hint: `createdb lab` on the server, and /lab at the end of the address"
    )]
    NoDatabase,
    /// The connection would cross a network unencrypted.
    #[error(
        "`database` is on another machine, and `database_ca` is missing; hint: name the file with the certificate of the server's authority"
    )]
    InTheOpen,
}

impl ServerAddress {
    /// Parses an address. Connections to another machine use TLS, and its server must have a certificate of `ca`.
    ///
    /// # Errors
    /// Returns [`AddressError`] when the address is invalid or names another machine without `ca`.
    pub fn new(text: &str, ca: Option<PathBuf>) -> Result<Self, AddressError> {
        let config =
            postgres::Config::from_str(text).map_err(|error| AddressError::Form(with_causes(&error)))?;
        if config.get_dbname().is_none_or(str::is_empty) {
            return Err(AddressError::NoDatabase);
        }
        // `hostaddr` is where the connection goes, whatever `host` is.
        let addresses = config.get_hostaddrs();
        let is_on_this_machine = match addresses {
            [] => config.get_hosts().iter().all(is_local),
            addresses => addresses.iter().all(IpAddr::is_loopback),
        };
        if ca.is_none() && !is_on_this_machine {
            return Err(AddressError::InTheOpen);
        }
        Ok(Self { config, ca })
    }

    /// Makes the file of the authority relative to a directory.
    pub fn in_directory(mut self, directory: &Path) -> Self {
        self.ca = self.ca.map(|ca| directory.join(ca));
        self
    }
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback()),
    }
}

impl fmt::Display for ServerAddress {
    /// Names server and database, without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(name)) => name.clone(),
            Some(Host::Unix(path)) => path.display().to_string(),
            None => "localhost".to_owned(),
        };
        let port = self.config.get_ports().first().map_or(5432, |port| *port);
        let database = self.config.get_dbname().unwrap_or_default();
        write!(f, "database `{database}` of PostgreSQL at {host}, port {port}")
    }
}

impl fmt::Debug for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => fmt::Display::fmt(&path.display(), f),
            Self::Server(server) => fmt::Display::fmt(server, f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_database_and_crosses_no_network_in_the_open() {
        let new = |text: &str, ca: Option<&str>| ServerAddress::new(text, ca.map(PathBuf::from));
        let local = new("postgresql://regatta:secret@127.0.0.1:5433/lab", None).unwrap();
        assert_eq!(
            format!("{local:?}"),
            "database `lab` of PostgreSQL at 127.0.0.1, port 5433",
            "without the password"
        );
        assert!(new("host=/run/postgresql dbname=lab", None).is_ok());
        let remote = "postgresql://regatta@db.example/lab";
        assert_eq!(new(remote, None).unwrap_err(), AddressError::InTheOpen);
        assert!(new(remote, Some("ca.pem")).is_ok());
        let disguised = "host=localhost hostaddr=10.0.0.5 dbname=lab";
        assert_eq!(new(disguised, None).unwrap_err(), AddressError::InTheOpen);
        assert_eq!(
            new("postgresql://regatta@localhost", None).unwrap_err(),
            AddressError::NoDatabase
        );
        assert!(matches!(
            new("mysql://localhost/lab", None),
            Err(AddressError::Form(_))
        ));
    }
}
