//! Serves assets over HTTPS, with TLS 1.3, the lab's authority and client certificates of admitted devices. It has two kinds of URLs and
//! no listing.
//!
//! ```text
//! GET /v1/file/SHA256    a file, or a tree's manifest
//! GET /v1/tree/SHA256    the content of the tree with this manifest
//! Range: bytes=N-        from byte N on
//! ```

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, RANGE},
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use regatta_types::{DeviceId, assets::AssetKind};
use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinHandle,
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::{
    asset_store::AssetStore,
    body::{Content, Recipient},
    tree::{self, FileRange},
};
use crate::{
    descriptors::DescriptorBudget, fair_slots::FairSlots, fleet::Admission,
    handshake_limiter::HandshakeLimiter, keys, port_holder::PortHolder,
};

/// Concurrent connections of one device: the current one, and broken ones that are not noticed yet.
const CONNECTIONS_PER_DEVICE: usize = 4;
/// The maximum number of concurrent transfers. Other requests wait for a while.
const TURNS: usize = 64;
/// The longest wait for a transfer. A device considers 20 s of silence a lost connection. After an explicit refusal it tries again.
const TURN_PATIENCE: Duration = Duration::from_secs(10);
/// The longest time for receiving a request's header.
const HEADER_PATIENCE: Duration = Duration::from_secs(10);

/// The reason why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Another program uses the port.
    #[error("assets cannot be served at {0}: {1} has that port")]
    PortInUse(SocketAddr, PortHolder),
    /// The server cannot listen on the address.
    #[error("assets cannot be served at {address}")]
    Listen {
        address: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// A running server.
pub struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

/// State that all connections share.
struct AssetServerState {
    asset_store: AssetStore,
    admission: Arc<Admission>,
    handshake_limiter: HandshakeLimiter,
    /// The slots for the connections of each device.
    devices: Arc<FairSlots<DeviceId>>,
    turns: Arc<Semaphore>,
}

impl Server {
    /// Listens and serves until [`Self::stop`].
    ///
    /// # Errors
    /// Returns [`ServerError`] when the server cannot listen on the address.
    pub async fn start(
        listen: SocketAddr,
        tls: Arc<ServerConfig>,
        admission: Arc<Admission>,
        asset_store: AssetStore,
        budget: DescriptorBudget,
    ) -> Result<Self, ServerError> {
        let refused = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => ServerError::PortInUse(listen, PortHolder::of(listen)),
            _ => ServerError::Listen {
                address: listen,
                source,
            },
        };
        let listener = TcpListener::bind(listen).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let shared = Arc::new(AssetServerState {
            asset_store,
            admission,
            handshake_limiter: HandshakeLimiter::new(budget.handshakes),
            devices: FairSlots::new(budget.asset_connections, CONNECTIONS_PER_DEVICE),
            turns: Arc::new(Semaphore::new(TURNS.min(budget.asset_connections))),
        });
        let task = tokio::spawn(accept(listener, TlsAcceptor::from(tls), shared));
        Ok(Self { address, task })
    }

    /// Returns the address on which the server listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting connections.
    pub fn stop(self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, shared: Arc<AssetServerState>) {
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("the store of assets cannot accept a connection: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        if !shared.handshake_limiter.lets_in(from.ip()) {
            continue;
        }
        let (acceptor, shared) = (acceptor.clone(), Arc::clone(&shared));
        tokio::spawn(async move {
            if let Err(error) = serve(stream, from, acceptor, shared).await {
                tracing::debug!(%from, "a connection for assets ended: {error:#}");
            }
        });
    }
}

async fn serve(
    stream: TcpStream,
    from: SocketAddr,
    acceptor: TlsAcceptor,
    shared: Arc<AssetServerState>,
) -> anyhow::Result<()> {
    let known = shared
        .handshake_limiter
        .admit(from.ip(), Box::pin(meet(stream, acceptor, &shared)))
        .await?;
    let Some((stream, device)) = known else {
        return Ok(());
    };
    let (_slot, mut lost) = shared.devices.take(device.clone());
    tokio::select! {
        served = speak(stream, &device, &shared, KeepAlive(true)) => served?,
        () = lost.wait() => tracing::debug!(%device, "it has newer connections for assets"),
    }
    Ok(())
}

/// Performs the TLS handshake and returns the device. A device that is not admitted gets a refusal within its handshake slot, and the
/// result is `None`.
async fn meet(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    shared: &Arc<AssetServerState>,
) -> io::Result<Option<(TlsStream<TcpStream>, DeviceId)>> {
    let stream = acceptor.accept(stream).await?;
    let certificates = stream.get_ref().1.peer_certificates();
    let key = certificates
        .and_then(|chain| chain.first())
        .and_then(keys::public_key_of);
    let device = key
        .map(|key| DeviceId::of_public_key(&key))
        .ok_or_else(|| io::Error::other("the certificate does not belong to a device"))?;
    if shared.admission.admits(&device) {
        return Ok(Some((stream, device)));
    }
    speak(stream, &device, shared, KeepAlive(false))
        .await
        .map_err(io::Error::other)?;
    Ok(None)
}

/// The permission of a connection to carry more than one request.
struct KeepAlive(bool);

/// Serves HTTP on a connection until it ends.
async fn speak(
    stream: TlsStream<TcpStream>,
    device: &DeviceId,
    shared: &Arc<AssetServerState>,
    keep_alive: KeepAlive,
) -> hyper::Result<()> {
    let service = service_fn(|request| {
        let response = answer(&request, device, shared);
        async { Ok::<_, std::convert::Infallible>(response.await) }
    });
    hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_PATIENCE)
        .keep_alive(keep_alive.0)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

fn answer(
    request: &Request<Incoming>,
    device: &DeviceId,
    shared: &Arc<AssetServerState>,
) -> impl Future<Output = Response<Content>> + use<> {
    let (admitted, is_get) = (shared.admission.admits(device), request.method() == Method::GET);
    let requested = requested(request.uri().path());
    let from = request
        .headers()
        .get(RANGE)
        .map(|range| first_byte(range.as_bytes()));
    let (shared, device) = (Arc::clone(shared), device.clone());
    async move {
        if !admitted {
            return refusal(StatusCode::FORBIDDEN, "this device is not enrolled here");
        }
        let (true, Some((kind, sha256))) = (is_get, requested) else {
            return refusal(StatusCode::NOT_FOUND, "unknown address");
        };
        let from = match from {
            None => None,
            Some(Some(from)) => Some(from),
            Some(None) => return refusal(StatusCode::BAD_REQUEST, "only `Range: bytes=N-` is known here"),
        };
        let bytes = match length(&shared, kind, &sha256).await {
            Ok(bytes) => bytes,
            Err(error) => return unreadable(&device, &error),
        };
        let begin = from.unwrap_or(0);
        if begin > bytes || (from.is_some() && begin == bytes) {
            return refusal(StatusCode::RANGE_NOT_SATISFIABLE, "it is shorter");
        }
        let Some(parts) = parts(&shared.asset_store, kind, &sha256, begin, bytes) else {
            return refusal(StatusCode::NOT_FOUND, "the coordinator has no such asset");
        };
        let Some(turn) = turn(&shared).await else {
            return refusal(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many devices are downloading assets: try again",
            );
        };
        let to = Recipient {
            device,
            admission: Arc::clone(&shared.admission),
            _turn: turn,
        };
        let mut response = Response::builder()
            .header(ACCEPT_RANGES, "bytes")
            .header(CONTENT_LENGTH, bytes - begin);
        if from.is_some() {
            response = response
                .status(StatusCode::PARTIAL_CONTENT)
                .header(CONTENT_RANGE, format!("bytes {begin}-{}/{bytes}", bytes - 1));
        }
        tracing::debug!(device = %to.device, kind = kind.as_str(), sha256, from = begin, bytes, "sending an asset");
        let content = Content::of(parts, bytes - begin, to);
        response
            .body(content)
            .unwrap_or_else(|_| refusal(StatusCode::INTERNAL_SERVER_ERROR, "a header that cannot be"))
    }
}

/// Waits for a transfer permit. Returns `None` after the longest wait.
async fn turn(shared: &AssetServerState) -> Option<OwnedSemaphorePermit> {
    timeout(TURN_PATIENCE, Arc::clone(&shared.turns).acquire_owned())
        .await
        .ok()?
        .ok()
}

/// Returns the length of the requested content in bytes. A manifest may be long, so it is read on a blocking thread.
async fn length(shared: &Arc<AssetServerState>, kind: AssetKind, sha256: &str) -> io::Result<u64> {
    let (shared, sha256) = (Arc::clone(shared), sha256.to_owned());
    let look = move || match kind {
        AssetKind::File => shared.asset_store.bytes_of(&sha256),
        AssetKind::Tree => tree::bytes_of(&shared.asset_store, &sha256),
    };
    tokio::task::spawn_blocking(look).await?
}

/// Returns the response for an asset that cannot be sent. A device retries only after an error of the coordinator's disk.
fn unreadable(device: &DeviceId, error: &io::Error) -> Response<Content> {
    match error.kind() {
        io::ErrorKind::NotFound => refusal(StatusCode::NOT_FOUND, "the coordinator has no such asset"),
        io::ErrorKind::InvalidData => {
            tracing::error!(%device, "a tree's manifest is none: {error}");
            let why = "the coordinator's asset of that name is not a directory: add it again";
            refusal(StatusCode::NOT_FOUND, why)
        }
        _ => {
            tracing::error!(%device, "an asset cannot be read: {error}");
            let why = format!("the coordinator cannot read it: {error}");
            refusal(StatusCode::INTERNAL_SERVER_ERROR, &why)
        }
    }
}

type Parts = Box<dyn Iterator<Item = io::Result<FileRange>> + Send>;

fn parts(asset_store: &AssetStore, kind: AssetKind, sha256: &str, from: u64, bytes: u64) -> Option<Parts> {
    match kind {
        AssetKind::File => {
            let path = asset_store.place(sha256)?;
            Some(Box::new(std::iter::once(Ok(FileRange { path, from, bytes }))))
        }
        AssetKind::Tree => Some(Box::new(tree::parts(asset_store, sha256, from).ok()?)),
    }
}

/// Parses the asset kind and SHA-256 from a URL path.
fn requested(path: &str) -> Option<(AssetKind, String)> {
    let (kind, sha256) = path.strip_prefix("/v1/")?.split_once('/')?;
    Some((kind.parse().ok()?, sha256.to_owned()))
}

/// Parses N from `bytes=N-`.
fn first_byte(range: &[u8]) -> Option<u64> {
    let range = std::str::from_utf8(range).ok()?;
    range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
}

fn refusal(status: StatusCode, why: &str) -> Response<Content> {
    let mut response = Response::new(Content::text(why));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_ranges_are_parsed_strictly() {
        let hash = "0f".repeat(32);
        assert_eq!(
            requested(&format!("/v1/file/{hash}")),
            Some((AssetKind::File, hash.clone()))
        );
        assert_eq!(
            requested(&format!("/v1/tree/{hash}")),
            Some((AssetKind::Tree, hash))
        );
        for path in ["/", "/v1/file", "/v2/file/x", "/v1/files/x", "v1/file/x"] {
            assert_eq!(requested(path), None, "{path}");
        }
        assert_eq!(first_byte(b"bytes=17-"), Some(17));
        for range in ["bytes=1-2", "bytes=-5", "bytes=1-,3-", "lines=1-", "bytes=x-"] {
            assert_eq!(first_byte(range.as_bytes()), None, "{range}");
        }
    }

    #[test]
    fn asset_paths_accept_only_hashes() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = regatta_lab_store::workspace::Workspace::create(dir.path(), "schema = 1\n").unwrap();
        let asset_store = AssetStore::of(&workspace);
        for name in ["../../keys/ca.key", "", "0F", &"0F".repeat(32), &"/".repeat(64)] {
            assert_eq!(asset_store.place(name), None, "{name}");
        }
    }
}
