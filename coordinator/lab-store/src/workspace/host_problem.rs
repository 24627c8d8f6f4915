//! Checks the host by which boards reach this machine. A token with a host that no board can reach looks like any other, and fails on the
//! board only.

use std::{
    net::{IpAddr, ToSocketAddrs as _},
    sync::mpsc,
    thread,
    time::Duration,
};

/// The longest wait for the name service. A lab without one is not held up.
const MAX_LOOKUP: Duration = Duration::from_secs(2);

/// The reason why boards cannot reach this machine by a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostProblem {
    /// The host is this machine for every machine.
    #[error("no other machine can reach this one as {0}")]
    KnownOnlyHere(String),
    /// The name has no address.
    #[error("the name {0} has no address on this machine, so that boards may not find it either")]
    Unresolved(String),
}

impl HostProblem {
    /// Checks a host.
    pub(super) fn of(host: &str) -> Option<Self> {
        if is_known_only_here(host) {
            return Some(Self::KnownOnlyHere(host.to_owned()));
        }
        let is_name = host.parse::<IpAddr>().is_err();
        (is_name && !has_address(host)).then(|| Self::Unresolved(host.to_owned()))
    }
}

/// Returns whether only this machine knows itself by a host.
pub fn is_known_only_here(host: &str) -> bool {
    let address = host.parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback() || address.is_unspecified())
}

/// Returns whether a name has an address, or whether that is unknown because the name service does not answer in time.
fn has_address(host: &str) -> bool {
    let (found, answer) = mpsc::channel();
    let host = host.to_owned();
    thread::spawn(move || {
        let has_address = (host.as_str(), 0)
            .to_socket_addrs()
            .is_ok_and(|mut all| all.next().is_some());
        // Nobody waits any more after the longest lookup.
        let _ = found.send(has_address);
    });
    answer.recv_timeout(MAX_LOOKUP).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_no_board_can_reach_have_a_problem() {
        for host in ["127.0.0.1", "localhost", "0.0.0.0", "::1", "::"] {
            assert_eq!(
                HostProblem::of(host),
                Some(HostProblem::KnownOnlyHere(host.to_owned())),
                "{host}"
            );
        }
        for host in ["192.0.2.7", "2001:db8::7"] {
            assert_eq!(HostProblem::of(host), None, "{host}");
        }
        assert!(has_address("localhost"));
    }
}
