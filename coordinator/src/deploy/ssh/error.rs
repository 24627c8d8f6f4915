//! Why a board is not reached over SSH, or a command there fails, with what the user can do about it.

use std::io;

use super::Access;

/// A connection that cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SshError {
    /// Nobody answers there.
    #[error("cannot reach {to}")]
    Network {
        /// Where.
        to: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// What answers is no SSH server as we know it, or breaks off.
    #[error("{doing} at {to}: {why}")]
    Protocol {
        /// Where.
        to: String,
        /// What was going on.
        doing: &'static str,
        /// What libssh2 says.
        why: String,
    },
    /// The known hosts cannot be read or written.
    #[error("the known hosts cannot be used")]
    KnownHosts(#[source] io::Error),
    /// The host is unknown, and nobody accepted its key.
    #[error("{to} is unknown, and its {kind} key {fingerprint} was not accepted")]
    Unknown {
        /// Where.
        to: String,
        /// The key's kind.
        kind: String,
        /// Its fingerprint.
        fingerprint: String,
    },
    /// The host has another key than before.
    #[error(
        "{to} has another host key than {place} says: its {kind} key is {fingerprint} now, and somebody may be in between"
    )]
    Changed {
        /// Where.
        to: String,
        /// Where the other key stands.
        place: String,
        /// The key's kind.
        kind: String,
        /// Its fingerprint.
        fingerprint: String,
        /// The name under which it is known, for ssh-keygen.
        name: String,
    },
    /// The key is known to be bad.
    #[error("the host key of {to} is revoked by {place}")]
    Revoked {
        /// Where.
        to: String,
        /// Where that stands.
        place: String,
    },
    /// The host has ended the connection while the login was still tried.
    #[error("{to} has ended the connection before anybody was logged in: {why}")]
    Ended {
        /// Where.
        to: String,
        /// What libssh2 says.
        why: String,
    },
    /// The login was not accepted.
    #[error("{to} does not let us in; tried: {tried}")]
    Login {
        /// Where.
        to: String,
        /// What was tried.
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

    /// What the user can do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown { fingerprint, .. } => Some(format!(
                "compare it with `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` on the board, then --accept-host-key {fingerprint}"
            )),
            Self::Changed { name, .. } => Some(format!(
                "if the board was flashed anew, `ssh-keygen -R '{name}'` forgets the old key"
            )),
            Self::Login { .. } => {
                Some("--identity FILE names a key; --password-stdin reads a password".to_owned())
            }
            Self::Ended { .. } => Some(
                "it does so after some wrong passwords, and when nobody answers for two minutes: run the same command again"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}
