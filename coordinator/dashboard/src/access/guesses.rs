//! Limits wrong tokens per address and overall, and ended ones per token. A token has 256 bits, so that this only bounds work and logs. Right
//! tokens are not limited. A new token that is sent at once is, but the overall limit is that of more than 200 guessing addresses.

use std::net::{IpAddr, SocketAddr};

use crate::page_error::TOKEN_PAUSE_S;
use regatta_lab_net::{
    handshake_limiter::network,
    token_bucket::{Rate, TokenBuckets},
};

/// Wrong tokens of one address.
const PER_ADDRESS: Rate = Rate {
    burst: 10,
    per_second: 1.0 / TOKEN_PAUSE_S as f64,
};
/// Attempts with one token that has expired or was revoked.
const PER_ENDED_TOKEN: Rate = PER_ADDRESS;
/// Wrong tokens of all addresses.
const OVERALL: Rate = Rate {
    burst: 2_048,
    per_second: 50.0,
};

/// The address of a request's connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// The wrong tokens of the last minutes.
pub(super) struct Guesses {
    addresses: TokenBuckets<IpAddr>,
    ended_tokens: TokenBuckets<i64>,
    overall: TokenBuckets<()>,
}

impl Guesses {
    pub(super) fn new() -> Self {
        Self {
            addresses: TokenBuckets::new(PER_ADDRESS),
            ended_tokens: TokenBuckets::new(PER_ENDED_TOKEN),
            overall: TokenBuckets::new(OVERALL),
        }
    }

    /// Lets an address try a token, and counts the attempt. Returns `false` when it had too many.
    pub(super) fn try_one(&self, from: Peer) -> bool {
        self.addresses.try_take(network(from.0.ip())) && self.overall.try_take(())
    }

    /// Lets somebody try a token that has ended, and counts the attempt. Returns `false` when there were too many.
    pub(super) fn try_ended_token(&self, number: i64) -> bool {
        self.ended_tokens.try_take(number)
    }

    /// Forgets an attempt, because its token was not wrong.
    pub(super) fn forget_one(&self, from: Peer) {
        self.addresses.put_back(network(from.0.ip()));
        self.overall.put_back(());
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
        assert_eq!((0..100).filter(|_| guesses.try_one(peer(0))).count(), 10);
        for _ in 0..100 {
            assert!(guesses.try_one(peer(1)), "right tokens are not limited");
            guesses.forget_one(peer(1));
        }
        for number in 2..150 {
            assert_eq!((0..20).filter(|_| guesses.try_one(peer(number))).count(), 10);
        }
        assert!(guesses.try_one(peer(1)));
    }
}
