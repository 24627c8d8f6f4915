//! Tests that a fleet can reconnect at once to a coordinator that is short of processor time. The handshake limiter is the real one, over real
//! connections; devices and the coordinator's work are modelled. The tests check how much work is wasted, not how long it takes.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use regatta_lab_net::handshake_limiter::{HandshakeLimiter, in_time};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
    time::{sleep, timeout},
};

/// The number of devices. They share one address, as behind a router.
const DEVICES: usize = 200;
/// The number of messages of each side in a handshake, and the coordinator's processor time for the first one, as in TLS. All handshakes together
/// take 12 s, three times as long as a device waits.
const MESSAGES: usize = 3;
const WORK: Duration = Duration::from_millis(60);
/// The number of connections without an identity. A quarter of them have a slot at any time; the others wait longer than their devices do.
const CONNECTIONS: usize = 100;
/// The time that a device waits for the end of its handshake, and its first and its longest pause before the next attempt.
const PATIENCE: Duration = Duration::from_secs(4);
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));
/// The time after which a test gives up.
const LIMIT: Duration = Duration::from_secs(120);

#[derive(Debug, Default)]
struct Counts {
    /// Handshakes that got a slot.
    begun: AtomicUsize,
    /// Devices whose handshake succeeded on their side.
    connected: AtomicUsize,
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Accepts connections, and runs the handshake of each. One thread does all the work, so work for one connection delays all others.
async fn serve(listener: TcpListener, counts: Arc<Counts>) {
    let limiter = Arc::new(HandshakeLimiter::new(CONNECTIONS));
    loop {
        let (stream, from) = listener.accept().await.unwrap();
        let (limiter, counts) = (Arc::clone(&limiter), Arc::clone(&counts));
        tokio::spawn(async move {
            let Ok((slot, eviction)) = limiter.enter_while_open(from.ip(), &stream).await else {
                return;
            };
            counts.begun.fetch_add(1, Ordering::Relaxed);
            let mut stream = stream;
            let handshake = in_time(answer(&mut stream));
            if let Some(Ok(())) = eviction.or(handshake).await
                && slot.free()
            {
                // The connection stays open until the device closes it.
                let _ = stream.read_u8().await;
            }
        });
    }
}

async fn answer(stream: &mut TcpStream) -> io::Result<()> {
    for message in 0..MESSAGES {
        stream.read_u8().await?;
        if message == 0 {
            thread::sleep(WORK);
        }
        stream.write_u8(0).await?;
    }
    Ok(())
}

/// Connects until a handshake succeeds in time. Returns the connection.
async fn connect(address: SocketAddr, counts: Arc<Counts>) -> TcpStream {
    let mut pause = PAUSES.0;
    loop {
        if let Ok(Ok(stream)) = timeout(PATIENCE, shake_hands(address)).await {
            counts.connected.fetch_add(1, Ordering::Relaxed);
            return stream;
        }
        sleep(pause).await;
        pause = (2 * pause).min(PAUSES.1);
    }
}

async fn shake_hands(address: SocketAddr) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    for _ in 0..MESSAGES {
        stream.write_u8(0).await?;
        stream.read_u8().await?;
    }
    Ok(stream)
}

#[test]
fn fleet_reconnects_to_a_coordinator_without_much_work_in_vain() {
    let counts = Arc::new(Counts::default());
    let server = runtime();
    let listener = server.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let of_server = Arc::clone(&counts);
    thread::spawn(move || server.block_on(serve(listener, of_server)));
    let of_devices = Arc::clone(&counts);
    thread::spawn(move || {
        runtime().block_on(async move {
            let devices: Vec<_> = (0..DEVICES)
                .map(|_| tokio::spawn(connect(address, Arc::clone(&of_devices))))
                .collect();
            let mut connections = Vec::new();
            for device in devices {
                connections.push(device.await.unwrap());
            }
            // They stay open until the test ends.
            std::future::pending::<()>().await;
        });
    });
    let begun = Instant::now();
    let count = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    while count(&counts.connected) < DEVICES && begun.elapsed() < LIMIT {
        thread::sleep(Duration::from_millis(50));
    }
    println!("{counts:?} after {:?}", begun.elapsed());
    assert_eq!(count(&counts.connected), DEVICES, "{counts:?}");
    // A limiter that does not notice closed connections and always serves the oldest one needs more than three handshakes per device.
    let in_vain = count(&counts.begun) - DEVICES;
    assert!(in_vain <= 5 * DEVICES / 2, "{counts:?}");
}
