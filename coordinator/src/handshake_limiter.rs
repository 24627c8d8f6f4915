//! Limits connections that have not proven their identity: a bounded number of them, each for a bounded time. When the limit is
//! reached, the address with the most connections loses its oldest one. An honest client takes milliseconds and connects once, so
//! slow and greedy clients go first.

use std::{
    io,
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};

use tokio::time::timeout;

use crate::{
    fair_slots::{Eviction, FairSlots, Slot},
    token_bucket::{Rate, TokenBuckets},
};

/// The longest time that a handshake may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The rate of new connections from one address. A fleet behind one router reconnects at the same time after a restart.
const ARRIVALS: Rate = Rate {
    burst: 1024,
    per_second: 256.0,
};

/// The unproven connections of one port.
#[derive(Debug)]
pub(crate) struct HandshakeLimiter {
    places: Arc<FairSlots<IpAddr>>,
    arrivals: TokenBuckets<IpAddr>,
}

/// The slot of an unproven connection.
pub(crate) type Place = Slot<IpAddr>;

impl HandshakeLimiter {
    /// Creates a limiter with this many slots.
    pub(crate) fn new(places: usize) -> Self {
        Self {
            places: FairSlots::new(places, places),
            arrivals: TokenBuckets::new(ARRIVALS),
        }
    }

    /// Returns whether a new connection from an address is within its rate.
    pub(crate) fn lets_in(&self, from: IpAddr) -> bool {
        self.arrivals.try_take(network(from))
    }

    /// Takes a slot for an unproven connection.
    pub(crate) fn enter(&self, from: IpAddr) -> (Place, Eviction) {
        self.places.take(network(from))
    }

    /// Runs `work` of an unproven connection within its slot and time limit.
    ///
    /// # Errors
    /// Returns the error of `work`, or an error when it timed out or the slot was evicted.
    pub(crate) async fn admit<T>(
        &self,
        from: IpAddr,
        work: impl Future<Output = io::Result<T>>,
    ) -> io::Result<T> {
        let (_place, mut eviction) = self.enter(from);
        tokio::select! {
            done = in_time(work) => done,
            () = eviction.wait() => Err(evicted()),
        }
    }
}

/// Runs `work` of an unproven connection within its time limit.
///
/// # Errors
/// Returns the error of `work`, or an error when it timed out.
pub(crate) async fn in_time<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(PATIENCE, work)
        .await
        .unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "it timed out")))
}

/// The error of an evicted connection.
pub(crate) fn evicted() -> io::Error {
    io::Error::other("others came, and this one had waited longest")
}

/// The network of one owner: an IPv4 address, or the first 64 bits of an IPv6 one.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    const PLACES: usize = 16;
    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[tokio::test]
    async fn the_oldest_handshake_is_evicted_when_the_limiter_is_full() {
        let limiter = Arc::new(HandshakeLimiter::new(PLACES));
        let slow: Vec<_> = (0..PLACES)
            .map(|_| {
                let limiter = Arc::clone(&limiter);
                tokio::spawn(async move { limiter.admit(HERE, pending::<io::Result<()>>()).await })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(
            limiter.admit(HERE, async { Ok(7) }).await.unwrap(),
            7,
            "a quick one gets in"
        );
        while !slow.iter().any(tokio::task::JoinHandle::is_finished) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(slow.iter().filter(|task| task.is_finished()).count(), 1);
        assert!(
            slow.first().is_some_and(|first| first.is_finished()),
            "the oldest"
        );
        slow.iter().for_each(|task| task.abort());
    }

    #[test]
    fn one_address_uses_up_nobody_elses_arrivals() {
        let limiter = HandshakeLimiter::new(PLACES);
        let greedy = (0..5000).filter(|_| limiter.lets_in(HERE)).count();
        assert!((1024..2000).contains(&greedy), "{greedy}");
        assert!(limiter.lets_in("10.0.0.7".parse().unwrap()));
    }

    #[test]
    fn an_owner_of_many_ipv6_addresses_is_one() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.7"), of("10.0.0.7"));
        assert_ne!(of("10.0.0.7"), of("10.0.0.8"));
    }
}
