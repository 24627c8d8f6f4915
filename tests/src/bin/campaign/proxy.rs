//! The fault proxy: a relay to the broker that delays, stalls, resets, half-closes and reorders. It relays bytes and does not know MQTT.
//! It simulates a bad network on top of the real one.

use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::AsRawFd as _,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

/// The maximum number of pieces in transit in one direction of a connection. Beyond it the sender is blocked.
const UNDER_WAY: usize = 16;
const PIECE: usize = 16 * 1024;
/// The interval at which a blocked writer checks whether it may continue.
const LOOK: Duration = Duration::from_millis(5);
const CONNECT_PATIENCE: Duration = Duration::from_secs(2);

/// A relay to one broker.
pub(crate) struct Proxy {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    delay_ms: AtomicU64,
    stalled: AtomicBool,
    connections: Mutex<Vec<Weak<Connection>>>,
}

/// A relayed connection.
struct Connection {
    client: TcpStream,
    broker: TcpStream,
    /// Whether the client's bytes are held back.
    held: AtomicBool,
    /// Whether further bytes are accepted and discarded.
    swallows: AtomicBool,
}

/// The end of a half-open connection that stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The client's end. The broker's is closed.
    Client,
    /// The broker's end. The client's is closed.
    Broker,
}

impl Proxy {
    /// Listens at `listen` and relays to `broker` until the process ends.
    pub(crate) fn start(listen: SocketAddr, broker: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(listen)?;
        let shared = Arc::new(Shared::default());
        let proxy = Self {
            shared: Arc::clone(&shared),
        };
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                // Connecting may take long while a link is down, and must not delay the next client.
                thread::spawn(move || relay(client, broker, &shared));
            }
        });
        Ok(proxy)
    }

    /// Sets the delay of all bytes.
    pub(crate) fn delay(&self, delay: Duration) {
        let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.shared.delay_ms.store(millis, Ordering::Relaxed);
    }

    /// Sets whether all traffic is stalled.
    pub(crate) fn stall(&self, stalled: bool) {
        self.shared.stalled.store(stalled, Ordering::Relaxed);
    }

    /// Resets both ends of every connection.
    pub(crate) fn reset(&self) {
        for connection in self.connections() {
            reset(&connection.client);
            reset(&connection.broker);
        }
    }

    /// Resets one end of every connection. The other end stays open without knowing.
    pub(crate) fn half_open(&self, stays: End) {
        for connection in self.connections() {
            connection.swallows.store(true, Ordering::Relaxed);
            match stays {
                End::Client => reset(&connection.broker),
                End::Broker => reset(&connection.client),
            }
        }
    }

    /// Holds back the clients' bytes from now on.
    pub(crate) fn hold(&self) {
        for connection in self.connections() {
            connection.held.store(true, Ordering::Relaxed);
        }
    }

    /// Resets the client's end of every connection with held bytes. The client reconnects.
    pub(crate) fn reset_held_clients(&self) {
        for connection in self.connections() {
            if connection.held.load(Ordering::Relaxed) {
                reset(&connection.client);
            }
        }
    }

    /// Releases held bytes. They arrive on old connections after those of newer ones.
    pub(crate) fn release(&self) {
        for connection in self.connections() {
            connection.held.store(false, Ordering::Relaxed);
        }
    }

    fn connections(&self) -> Vec<Arc<Connection>> {
        self.shared.lock().iter().filter_map(Weak::upgrade).collect()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Connection>>> {
        // A list of weak references cannot be left half changed.
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn delay(&self) -> Duration {
        Duration::from_millis(self.delay_ms.load(Ordering::Relaxed))
    }
}

fn relay(client: TcpStream, broker: SocketAddr, shared: &Arc<Shared>) {
    let Ok(server) = TcpStream::connect_timeout(&broker, CONNECT_PATIENCE) else {
        reset(&client);
        return;
    };
    // Nagle's algorithm would add its own delay. This fails on a connection that is already gone.
    if client
        .set_nodelay(true)
        .and_then(|()| server.set_nodelay(true))
        .is_err()
    {
        return;
    }
    let connection = Arc::new(Connection {
        client,
        broker: server,
        held: AtomicBool::new(false),
        swallows: AtomicBool::new(false),
    });
    {
        let mut connections = shared.lock();
        connections.retain(|connection| connection.strong_count() > 0);
        connections.push(Arc::downgrade(&connection));
    }
    for upwards in [true, false] {
        let (sender, receiver) = sync_channel(UNDER_WAY);
        let reading = (Arc::clone(&connection), Arc::clone(shared));
        thread::spawn(move || read_pieces(&reading.0, upwards, &reading.1, &sender));
        let writing = (Arc::clone(&connection), Arc::clone(shared));
        thread::spawn(move || write_pieces(&writing.0, upwards, &writing.1, &receiver));
    }
}

type Piece = (Instant, Vec<u8>);

fn read_pieces(connection: &Connection, upwards: bool, shared: &Shared, pieces: &SyncSender<Piece>) {
    let mut from = if upwards {
        &connection.client
    } else {
        &connection.broker
    };
    let mut buffer = vec![0; PIECE];
    while let Ok(read) = from.read(&mut buffer) {
        if read == 0 {
            break;
        }
        if connection.swallows.load(Ordering::Relaxed) {
            continue;
        }
        let due = Instant::now() + shared.delay();
        if pieces.send((due, buffer[..read].to_vec())).is_err() {
            break;
        }
    }
}

/// Writes each piece at its time, and closes both ends after the last.
fn write_pieces(connection: &Connection, upwards: bool, shared: &Shared, pieces: &Receiver<Piece>) {
    let mut to = if upwards {
        &connection.broker
    } else {
        &connection.client
    };
    while let Ok((due, piece)) = pieces.recv() {
        let waits =
            || shared.stalled.load(Ordering::Relaxed) || (upwards && connection.held.load(Ordering::Relaxed));
        while Instant::now() < due || waits() {
            thread::sleep(LOOK);
        }
        if to.write_all(&piece).is_err() {
            break;
        }
    }
    if connection.swallows.load(Ordering::Relaxed) {
        // The remaining end is not closed. Its owner closes it after a timeout.
        return;
    }
    // The client's end stays open while its late bytes are held back.
    while !upwards && connection.held.load(Ordering::Relaxed) {
        thread::sleep(LOOK);
    }
    for end in [&connection.client, &connection.broker] {
        // It may be gone already.
        let _ = end.shutdown(std::net::Shutdown::Both);
    }
}

/// Ends a connection immediately with a RST. Bytes in transit are lost.
fn reset(stream: &TcpStream) {
    let nowhere = libc::sockaddr {
        sa_family: 0, // AF_UNSPEC
        sa_data: [0; 14],
    };
    let length = libc::socklen_t::try_from(size_of_val(&nowhere)).unwrap_or(0);
    // SAFETY: the descriptor is open while `stream` lives, and the address is a whole sockaddr of the stated length. The call fails only on
    // a connection that is gone, which is the intention.
    let _ = unsafe { libc::connect(stream.as_raw_fd(), &raw const nowhere, length) };
}
