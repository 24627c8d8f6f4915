//! A model server that ran before the run: the process that listens at its address, as far as the system says, and whether it is still the same.
//! It is neither started nor stopped.

use std::{net::SocketAddr, path::PathBuf};

use super::{
    listener::{self, ListeningSocket},
    process_facts::{self, ProcessId},
    server_error::{LastLines, ServerError},
};

/// A server at an address.
#[derive(Debug)]
pub(super) struct FoundServer {
    pub(super) address: SocketAddr,
    /// The sockets that listened when it was found. Empty if the system does not say.
    sockets: Vec<ListeningSocket>,
    /// The process, or why it is not known.
    pub(super) process: Result<ProcessId, String>,
}

impl FoundServer {
    /// Looks for the process that listens at an address.
    pub(super) fn at(address: SocketAddr) -> Self {
        let sockets = listener::sockets_at(address);
        let process = match &sockets {
            Err(error) => Err(format!("the system's list of sockets cannot be read: {error}")),
            Ok(sockets) => listener::holder(sockets).ok_or_else(|| unknown(sockets)),
        };
        Self {
            address,
            sockets: sockets.unwrap_or_default(),
            process,
        }
    }

    /// Returns an error if the server has ended, or another one listens in its place.
    pub(super) fn check_runs(&self) -> Result<(), ServerError> {
        if let Ok(process) = self.process
            && ProcessId::running(process.pid) == Some(process)
        {
            return Ok(());
        }
        let now = listener::sockets_at(self.address).unwrap_or_default();
        // Another user's process that is started again has another socket.
        let is_same = self.process.is_err()
            && (self.sockets.is_empty() || self.sockets.iter().any(|socket| now.contains(socket)));
        match now.as_slice() {
            _ if is_same => Ok(()),
            [] => Err(ServerError::Ended(None, LastLines::NotKnown)),
            _ => Err(ServerError::Restarted(LastLines::NotKnown)),
        }
    }

    /// Returns the directory in which the paths of its arguments begin.
    pub(super) fn working_directory(&self) -> Option<PathBuf> {
        process_facts::working_directory(self.process.as_ref().ok()?.pid)
    }
}

/// Returns why the process of sockets is not known.
fn unknown(sockets: &[ListeningSocket]) -> String {
    match sockets {
        [] => "no socket of this machine listens there, so the server may be in a container with a network of its own".to_owned(),
        [socket, ..] => format!(
            "it is a process of the user with the id {}, which this process must not see",
            socket.user
        ),
    }
}
