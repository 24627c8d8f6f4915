//! Accepts clients: one at a time. A second one is refused with a sentence, which the official client prints.

use std::{
    io,
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use super::{PowerServer, conversation::Conversation, error::ServerError};
use crate::protocol::{
    ERROR,
    connection::{Connection, ConnectionError, LineLimits},
    session_log::SessionLog,
};

const TICK: Duration = Duration::from_millis(50);
/// How long a client waits for the one before, which may just leave.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a refused client may take to introduce itself and to read why.
const REFUSAL: Duration = Duration::from_secs(1);
const MAX_LINE: usize = 1 << 10;

/// Serves clients until one has asked the server to end, or until `interrupted` is set.
pub(super) fn serve(server: &PowerServer, interrupted: &AtomicBool) -> Result<(), ServerError> {
    let address = SocketAddr::from(server.conf.listen);
    let cannot_listen = |source| ServerError::Listen {
        address: address.to_string(),
        source,
    };
    let listener = TcpListener::bind(address).map_err(cannot_listen)?;
    listener.set_nonblocking(true).map_err(cannot_listen)?;
    let log = server.new_log();
    log.info(&format!("Ready to accept connections at {address}"));
    let ends = AtomicBool::new(false);
    let current: Mutex<Option<SocketAddr>> = Mutex::new(None);
    let holder = || *current.lock().unwrap_or_else(PoisonError::into_inner);
    let hold = |client| *current.lock().unwrap_or_else(PoisonError::into_inner) = client;
    thread::scope(|scope| {
        while !ends.load(Ordering::Relaxed) && !interrupted.load(Ordering::Relaxed) {
            let (stream, client) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(error) => {
                    if error.kind() != io::ErrorKind::WouldBlock {
                        log.warn(&format!("a connection was not accepted: {error}"));
                    }
                    thread::sleep(TICK);
                    continue;
                }
            };
            let begun = Instant::now();
            while holder().is_some() && begun.elapsed() < PATIENCE && !interrupted.load(Ordering::Relaxed) {
                thread::sleep(TICK);
            }
            if let Some(other) = holder() {
                refuse(stream, client, other, &log);
                continue;
            }
            if ends.load(Ordering::Relaxed) {
                break;
            }
            let connection = match Connection::new(stream) {
                Ok(connection) => connection,
                Err(error) => {
                    log.warn(&format!("client {client} was lost at once: {error}"));
                    continue;
                }
            };
            hold(Some(client));
            let (ends, hold) = (&ends, &hold);
            scope.spawn(move || {
                let release = Release(hold);
                if Conversation::new(server, connection, interrupted).run(client) {
                    ends.store(true, Ordering::Relaxed);
                }
                drop(release);
            });
        }
    });
    log.info("the server ends");
    Ok(())
}

/// Lets the next client in, also after a panic.
struct Release<'a, F: Fn(Option<SocketAddr>)>(&'a F);

impl<F: Fn(Option<SocketAddr>)> Drop for Release<'_, F> {
    fn drop(&mut self) {
        (self.0)(None);
    }
}

/// Tells a client that another one is served.
fn refuse(stream: TcpStream, client: SocketAddr, other: SocketAddr, log: &SessionLog) {
    log.warn(&format!("client {client} is refused: {other} is served"));
    let Ok(mut connection) = Connection::new(stream) else {
        return;
    };
    let limits = LineLimits {
        length: MAX_LINE,
        silence: Some(REFUSAL),
    };
    // The error is logged in any case, and a disconnected client needs no answer.
    let _ = connection.receive(limits, &mut || Ok::<(), ConnectionError>(()));
    let _ = connection.send(&format!(
        "{ERROR}: this server serves {}, and one client at a time; try again when that session has ended",
        other.ip()
    ));
    connection.close_politely(REFUSAL);
}
