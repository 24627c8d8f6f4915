//! Limits wrong tokens per address and overall. A token has 256 bits, so that this only bounds work and logs. Other addresses than the
//! guessing one keep their login: the overall limit is that of more than 200 guessing addresses.

use std::net::{IpAddr, SocketAddr};

use crate::{
    handshake_limiter::network,
    token_bucket::{Rate, TokenBuckets},
};

/// Wrong tokens of one address.
const PER_ADDRESS: Rate = Rate {
    burst: 10,
    per_second: 0.2,
};
/// Wrong tokens of all addresses.
const OVERALL: Rate = Rate {
    burst: 2_048,
    per_second: 50.0,
};

/// The address of a request's connection.
#[derive(Debug, Clone, Copy)]
pub(in crate::dashboard) struct Peer(pub(in crate::dashboard) SocketAddr);

/// The wrong tokens of the last minutes.
pub(super) struct Guesses {
    addresses: TokenBuckets<IpAddr>,
    overall: TokenBuckets<()>,
}

impl Guesses {
    pub(super) fn new() -> Self {
        Self {
            addresses: TokenBuckets::new(PER_ADDRESS),
            overall: TokenBuckets::new(OVERALL),
        }
    }

    /// Whether an address may try a token.
    pub(super) fn may_try(&self, from: Peer) -> bool {
        self.addresses.has_one(network(from.0.ip())) && self.overall.has_one(())
    }

    /// Counts a wrong token.
    pub(super) fn failed(&self, from: Peer) {
        let is_counted = self.addresses.try_take(network(from.0.ip()));
        self.overall.try_take(());
        if is_counted {
            tracing::warn!(from = %from.0.ip(), "a wrong token for the live page");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guessing_blocks_the_guessing_address_and_no_other() {
        let guesses = Guesses::new();
        let peer = |number: u32| {
            let [_, b, c, d] = number.to_be_bytes();
            Peer(SocketAddr::from(([10, b, c, d], 4_000)))
        };
        let tried = (0..100).filter(|_| {
            let may = guesses.may_try(peer(0));
            guesses.failed(peer(0));
            may
        });
        assert_eq!(tried.count(), 10);
        assert!(guesses.may_try(peer(1)));
        for number in 0..200 {
            for _ in 0..10 {
                guesses.failed(peer(number));
            }
        }
        assert!(!guesses.may_try(peer(7)));
    }
}
