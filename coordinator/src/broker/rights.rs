//! What one connection may do in the embedded broker. Every connection has a provider of its own, so that its rights
//! come from how it was accepted and not from what it says of itself.

use std::{future::Future, net::SocketAddr, pin::Pin};

use mqtt5::{
    broker::{AuthProvider, AuthResult},
    error::Result,
    packet::connect::ConnectPacket,
};
use regatta_wire::topic::{ROOT, Topic};

/// Who is at the other end, as the acceptor knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    /// Somebody on a plain connection: a user of this machine, since plain TCP stays on loopback. May play any part.
    Unproven,
}

/// A connection's rights.
#[derive(Debug)]
pub(super) struct Rights {
    peer: Peer,
}

impl Rights {
    pub(super) const fn of(peer: Peer) -> Self {
        Self { peer }
    }

    fn may_publish(&self, topic: &str) -> bool {
        match self.peer {
            Peer::Unproven => Topic::parse(topic).is_ok(),
        }
    }

    fn may_subscribe(&self, filter: &str) -> bool {
        match self.peer {
            Peer::Unproven => filter
                .strip_prefix(ROOT)
                .is_some_and(|rest| rest.starts_with('/')),
        }
    }
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl AuthProvider for Rights {
    fn authenticate<'a>(&'a self, _: &'a ConnectPacket, _: SocketAddr) -> Answer<'a, Result<AuthResult>> {
        Box::pin(async { Ok(AuthResult::success()) })
    }

    fn authorize_publish<'a>(&'a self, _: &str, _: Option<&'a str>, topic: &'a str) -> Answer<'a, bool> {
        Box::pin(async move { self.may_publish(topic) })
    }

    fn authorize_subscribe<'a>(&'a self, _: &str, _: Option<&'a str>, filter: &'a str) -> Answer<'a, bool> {
        Box::pin(async move { self.may_subscribe(filter) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unproven_peer_stays_within_our_topics() {
        let rights = Rights::of(Peer::Unproven);
        let device = "0123456789abcdef0123456789abcdef";
        assert!(rights.may_publish(&format!("regatta/v1/{device}/hello")));
        for topic in [
            "regatta/v1/x/hello",
            "home/light",
            "regatta/v1",
            "$SYS/broker/version",
        ] {
            assert!(!rights.may_publish(topic), "{topic}");
        }
        assert!(rights.may_subscribe("regatta/v1/+/hello"));
        for filter in ["#", "+/v1/#", "regatta/v1", "$SYS/#", "regatta/v11/#"] {
            assert!(!rights.may_subscribe(filter), "{filter}");
        }
    }
}
