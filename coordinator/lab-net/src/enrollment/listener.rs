//! The listener for enrollments. Each connection has one request and one response. `EnrollmentService` decides on the response.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use regatta_wire::{
    enrollment::{EXPORTER_LABEL, EXPORTER_LEN, EnrollRequest, EnrollResponse, MAX_REQUEST_LEN},
    frame,
    message::Message as _,
};
use rustls::ServerConfig;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinHandle,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::{EnrollmentError, EnrollmentService};
use crate::{
    descriptors::DescriptorBudget,
    handshake_limiter::HandshakeLimiter,
    token_bucket::{Rate, TokenBuckets},
};

/// The rate at which refusals are logged.
const REFUSED_IN_WORDS: Rate = Rate {
    burst: 32,
    per_second: 0.1,
};

/// A running listener, which takes enrollments until it is stopped.
pub struct Listener {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Listener {
    /// Binds the socket.
    ///
    /// # Errors
    /// Returns [`EnrollmentError`].
    pub async fn bind(listen: SocketAddr) -> Result<TcpListener, EnrollmentError> {
        TcpListener::bind(listen)
            .await
            .map_err(|source| match source.kind() {
                io::ErrorKind::AddrInUse => {
                    EnrollmentError::PortInUse(listen, crate::port_holder::PortHolder::of(listen))
                }
                _ => EnrollmentError::Listen {
                    address: listen,
                    source,
                },
            })
    }

    /// Starts to answer requests.
    pub fn start(
        listener: TcpListener,
        tls: Arc<ServerConfig>,
        service: EnrollmentService,
        budget: DescriptorBudget,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let shared = ListenerState {
            acceptor: TlsAcceptor::from(tls),
            service: Arc::new(service),
            turn: Arc::new(Semaphore::new(1)),
            limiter: HandshakeLimiter::new(budget.handshakes),
            sent: TokenBuckets::new(REFUSED_IN_WORDS),
        };
        let task = tokio::spawn(accept(listener, Arc::new(shared)));
        Ok(Self { address, task })
    }

    /// Returns the address on which it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops taking enrollments.
    pub fn stop(self) {
        self.task.abort();
    }
}

/// State that all connections share.
struct ListenerState {
    acceptor: TlsAcceptor,
    service: Arc<EnrollmentService>,
    /// One request is decided at a time, so that unknown clients cannot occupy all blocking threads.
    turn: Arc<Semaphore>,
    limiter: HandshakeLimiter,
    /// Limits the logged refusals, because unknown clients may connect in any number.
    sent: TokenBuckets<()>,
}

async fn accept(listener: TcpListener, shared: Arc<ListenerState>) {
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("the enrollment cannot accept a connection: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        if !shared.limiter.lets_in(from.ip()) {
            continue;
        }
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            if let Err(error) = shared.limiter.admit(from.ip(), serve(stream, &shared)).await {
                tracing::debug!(%from, "an enrollment failed: {error}");
            }
        });
    }
}

async fn serve(stream: TcpStream, shared: &ListenerState) -> io::Result<()> {
    let mut stream = shared.acceptor.accept(stream).await?;
    let request = read_request(&mut stream).await?;
    let connection = stream
        .get_ref()
        .1
        .export_keying_material([0; EXPORTER_LEN], EXPORTER_LABEL, None)
        .map_err(io::Error::other)?;
    let turn = Arc::clone(&shared.turn).acquire_owned().await;
    let turn = turn.map_err(io::Error::other)?;
    let service = Arc::clone(&shared.service);
    // SQLite waits for the disk, so this runs on a blocking thread.
    let judge = move || {
        let answer = service.answer(&request, &connection);
        drop(turn);
        answer
    };
    let answer = tokio::task::spawn_blocking(judge)
        .await
        .map_err(io::Error::other)?;
    if let Some(why) = refusal(&answer)
        && shared.sent.try_take(())
    {
        tracing::warn!("refused an enrollment: {why}");
    }
    let frame = answer.to_frame().map_err(io::Error::other)?;
    stream.write_all(&frame).await?;
    stream.shutdown().await
}

/// Returns the reason of a refusal, for the log.
fn refusal(answer: &EnrollResponse) -> Option<String> {
    match answer {
        EnrollResponse::Accepted(_) => None,
        EnrollResponse::Refused(why) | EnrollResponse::NotNow(why) => Some(why.clone()),
        EnrollResponse::OtherName { enrolled, token } => Some(format!(
            "a device that is enrolled as {enrolled} used the token of {token}"
        )),
        EnrollResponse::Removed { name } => {
            Some(format!("the device that was removed as {name} used a token"))
        }
    }
}

/// Reads one frame, up to the maximum length of a request.
async fn read_request(stream: &mut TlsStream<TcpStream>) -> io::Result<EnrollRequest> {
    let mut bytes = vec![0; frame::HEADER_LEN];
    stream.read_exact(&mut bytes).await?;
    let length = frame::stated_length(&bytes).map_err(io::Error::other)?;
    if length + frame::HEADER_LEN > MAX_REQUEST_LEN {
        return Err(io::Error::other("the request is larger than any can be"));
    }
    bytes.resize(frame::HEADER_LEN + length, 0);
    stream
        .read_exact(bytes.get_mut(frame::HEADER_LEN..).unwrap_or_default())
        .await?;
    EnrollRequest::from_frame(&bytes).map_err(io::Error::other)
}
