//! Errors of an SSH connection, each with a hint for the user.

use std::io;

use crate::access::Access;

/// An error of an SSH connection.
#[derive(Debug, thiserror::Error)]
pub enum SshError {
    /// The host cannot be reached.
    #[error("cannot reach {to}")]
    Network {
        /// The host.
        to: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The peer is not a usable SSH server, or closes the connection.
    #[error("{doing} at {to}: {why}")]
    Protocol {
        /// The host.
        to: String,
        /// The failed action.
        doing: &'static str,
        /// libssh2's message.
        why: String,
    },
    /// The known hosts cannot be read or written.
    #[error("the known hosts cannot be used")]
    KnownHosts(#[source] io::Error),
    /// The host is unknown and its key was not accepted.
    #[error("{to} is unknown, and its {kind} key {fingerprint} was not accepted")]
    Unknown {
        /// The host.
        to: String,
        /// The key type.
        kind: String,
        fingerprint: String,
    },
    /// The host's key has changed.
    #[error(
        "{to} has another host key than {place}: its {kind} key is {fingerprint} now; another machine may intercept the connection"
    )]
    Changed {
        /// The host.
        to: String,
        /// The location of the known key.
        place: String,
        /// The key type.
        kind: String,
        fingerprint: String,
        /// The host's name in the file, for ssh-keygen.
        name: String,
    },
    /// The key is revoked.
    #[error("the host key of {to} is revoked by {place}")]
    Revoked {
        /// The host.
        to: String,
        /// The location of the revocation.
        place: String,
    },
    /// The host closed the connection during the login.
    #[error("{to} has ended the connection before the login: {why}")]
    Ended {
        /// The host.
        to: String,
        /// libssh2's message.
        why: String,
    },
    /// The login failed.
    #[error("{to} refuses the login; tried: {tried}")]
    Login {
        /// The host.
        to: String,
        /// The attempted methods.
        tried: String,
    },
}

impl SshError {
    pub(super) fn protocol(access: &Access, doing: &'static str, error: &ssh2::Error) -> Self {
        Self::Protocol {
            to: access.to_string(),
            doing,
            why: error.message().to_owned(),
        }
    }

    pub(super) fn ended(access: &Access, error: &ssh2::Error) -> Self {
        Self::Ended {
            to: access.to_string(),
            why: error.message().to_owned(),
        }
    }
}
