//! Limits connections that have not proven their identity: a bounded number at once, a bounded queue, each for a bounded time.
//!
//! Simultaneous arrivals wait for each other: a rack that powers on, or a lab behind one address. A handshake that makes progress keeps its
//! slot. One whose client is silent for `slots::STALLED` loses it to the next in the queue, so slow and greedy clients go first.

mod slots;

use std::{
    io,
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::Interest,
    net::TcpStream,
    time::{sleep, timeout},
};

use self::slots::HandshakeSlots;
pub use self::slots::{HandshakeEviction, HandshakeSlot};
use crate::token_bucket::{Rate, TokenBuckets};

/// The longest time that a handshake may take, and the longest wait for its begin.
const PATIENCE: Duration = Duration::from_secs(10);
/// The interval in which a waiting connection looks whether its client has closed it.
const CLOSED_CHECK: Duration = Duration::from_secs(1);
/// The rate of new connections from one address. A fleet behind one router reconnects at the same time after a restart.
const ARRIVALS: Rate = Rate {
    burst: 1024,
    per_second: 256.0,
};
/// The number of unproven connections for each slot: one has it and the others wait.
const CONNECTIONS_PER_SLOT: usize = 4;

/// The unproven connections of one port.
#[derive(Debug)]
pub struct HandshakeLimiter {
    slots: Arc<HandshakeSlots>,
    arrivals: TokenBuckets<IpAddr>,
}

impl HandshakeLimiter {
    /// Creates a limiter for this many connections. A part of them waits.
    pub fn new(connections: usize) -> Self {
        let slots = connections.div_ceil(CONNECTIONS_PER_SLOT);
        Self {
            slots: HandshakeSlots::new(slots, connections - slots),
            arrivals: TokenBuckets::new(ARRIVALS),
        }
    }

    /// Returns whether a new connection from an address is within its rate.
    pub fn lets_in(&self, from: IpAddr) -> bool {
        self.arrivals.try_take(network(from))
    }

    /// Waits for a slot for an unproven connection.
    ///
    /// # Errors
    /// Returns an error when the queue is full, or the wait was too long.
    pub async fn enter(&self, from: IpAddr) -> io::Result<(HandshakeSlot, HandshakeEviction)> {
        let entered = in_time(async { Ok(self.slots.enter(network(from)).await) }).await?;
        entered.ok_or_else(|| io::Error::other("too many connections wait for their handshake"))
    }

    /// As [`Self::enter`], for a connection that is dropped when its client has closed it meanwhile.
    ///
    /// # Errors
    /// As [`Self::enter`]; also when the client has closed the connection.
    pub async fn enter_while_open(
        &self,
        from: IpAddr,
        stream: &TcpStream,
    ) -> io::Result<(HandshakeSlot, HandshakeEviction)> {
        let entered = tokio::select! {
            () = closed_by_client(stream) => return Err(closed()),
            entered = self.enter(from) => entered?,
        };
        if is_closed_by_client(stream).await {
            return Err(closed());
        }
        Ok(entered)
    }

    /// Runs `work` of an unproven connection within its slot and time limit.
    ///
    /// # Errors
    /// Returns the error of `work`, or an error when it got no slot, timed out or was evicted.
    pub async fn admit<T>(&self, from: IpAddr, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        let (_slot, eviction) = self.enter(from).await?;
        eviction.or(in_time(work)).await.unwrap_or_else(|| Err(evicted()))
    }
}

/// Runs `work` of an unproven connection within its time limit.
///
/// # Errors
/// Returns the error of `work`, or an error when it timed out.
pub async fn in_time<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(PATIENCE, work)
        .await
        .unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "it timed out")))
}

/// Waits until the client has closed the connection. Its first bytes may be unread, so that the socket stays readable.
async fn closed_by_client(stream: &TcpStream) {
    while !stream
        .ready(Interest::READABLE)
        .await
        .is_ok_and(|ready| ready.is_read_closed())
    {
        sleep(CLOSED_CHECK).await;
    }
}

async fn is_closed_by_client(stream: &TcpStream) -> bool {
    tokio::select! {
        biased;
        ready = stream.ready(Interest::READABLE) => ready.is_ok_and(|ready| ready.is_read_closed()),
        () = std::future::ready(()) => false,
    }
}

fn closed() -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "the client closed the connection while it waited for its handshake",
    )
}

/// Returns the error of an evicted connection.
pub fn evicted() -> io::Error {
    io::Error::other("others wait, and this one made no progress or its network has the most connections")
}

/// Returns the network of one owner: an IPv4 address, or the first 64 bits of an IPv6 one.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use std::{future::pending, time::Instant};

    use super::*;

    const PLACES: usize = 16;
    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[tokio::test]
    async fn stalled_handshakes_lose_their_slots_to_a_waiting_one_after_a_bounded_time() {
        let limiter = Arc::new(HandshakeLimiter::new(PLACES));
        let stalled: Vec<_> = (0..PLACES / CONNECTIONS_PER_SLOT)
            .map(|_| {
                let limiter = Arc::clone(&limiter);
                tokio::spawn(async move { limiter.admit(HERE, pending::<io::Result<()>>()).await })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(10)).await;
        let began = Instant::now();
        assert_eq!(limiter.admit(HERE, async { Ok(7) }).await.unwrap(), 7);
        assert!(began.elapsed() >= slots::STALLED / 2, "it waited");
        assert!(
            began.elapsed() < PATIENCE,
            "no longer than an honest client waits"
        );
        stalled.iter().for_each(|task| task.abort());
    }

    /// A device that gives up sends what it has and closes: its socket waits in CLOSE-WAIT.
    #[tokio::test]
    async fn connections_that_their_clients_closed_leave_the_queue() {
        let listener = tokio::net::TcpListener::bind((HERE, 0)).await.unwrap();
        let limiter = HandshakeLimiter::new(PLACES);
        let mut held = Vec::new();
        for _ in 0..PLACES / CONNECTIONS_PER_SLOT {
            let (slot, eviction) = limiter.enter(HERE).await.unwrap();
            held.push((slot, eviction.or(steady_for(Duration::from_secs(20)))));
        }
        let mut slots = Vec::new();
        let holders: Vec<_> = held
            .into_iter()
            .map(|(slot, work)| {
                slots.push(slot);
                tokio::spawn(work)
            })
            .collect();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut client, b"hello")
            .await
            .unwrap();
        let began = Instant::now();
        let close = async {
            sleep(Duration::from_millis(100)).await;
            drop(client);
        };
        let (entered, ()) = tokio::join!(limiter.enter_while_open(HERE, &stream), close);
        assert_eq!(entered.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
        holders.iter().for_each(|task| task.abort());
    }

    async fn steady_for(time: Duration) {
        let began = Instant::now();
        while began.elapsed() < time {
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// A process that gets no processor time for seconds has no stalled clients.
    #[tokio::test]
    async fn a_starved_process_evicts_no_handshake_that_makes_progress() {
        let limiter = Arc::new(HandshakeLimiter::new(PLACES));
        let all: Vec<_> = (0..2 * PLACES / CONNECTIONS_PER_SLOT)
            .map(|_| {
                let limiter = Arc::clone(&limiter);
                tokio::spawn(async move { limiter.admit(HERE, steady()).await })
            })
            .collect();
        let starving = tokio::spawn(async {
            loop {
                std::thread::sleep(slots::STALLED + Duration::from_millis(200));
                tokio::task::yield_now().await;
            }
        });
        let mut evictions = 0;
        for handshake in all {
            evictions += usize::from(handshake.await.unwrap().is_err());
        }
        starving.abort();
        assert_eq!(evictions, 0);
    }

    #[tokio::test]
    async fn another_network_does_not_wait_for_one_that_has_all_slots() {
        let limiter = Arc::new(HandshakeLimiter::new(PLACES));
        let greedy: Vec<_> = (0..PLACES)
            .map(|_| {
                let limiter = Arc::clone(&limiter);
                let dribble = async {
                    loop {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                };
                tokio::spawn(async move { limiter.admit::<()>(HERE, dribble).await })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(10)).await;
        let began = Instant::now();
        let elsewhere = "10.0.0.7".parse().unwrap();
        assert_eq!(limiter.admit(elsewhere, async { Ok(7) }).await.unwrap(), 7);
        assert!(began.elapsed() < slots::STALLED / 2);
        greedy.iter().for_each(|task| task.abort());
    }

    /// Performs a handshake that the client continues after each of some pauses.
    async fn steady() -> io::Result<()> {
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    #[tokio::test]
    async fn all_of_many_simultaneous_handshakes_from_one_address_end_well() {
        let limiter = Arc::new(HandshakeLimiter::new(8 * PLACES));
        let all: Vec<_> = (0..8 * PLACES)
            .map(|_| {
                let limiter = Arc::clone(&limiter);
                tokio::spawn(async move { limiter.admit(HERE, steady()).await })
            })
            .collect();
        for handshake in all {
            handshake.await.unwrap().unwrap();
        }
    }

    #[test]
    fn handshake_limit_is_per_address() {
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
