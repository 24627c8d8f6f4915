//! Assets over HTTPS: TLS 1.3 with the lab's authority, a certificate of an admitted device or nothing, and two kinds of
//! addresses. What is not on the shelf does not exist; there is no listing.
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
use regatta_rules::{DeviceId, assets::AssetKind};
use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

use super::{
    body::{Content, Recipient},
    shelf::Shelf,
    tree::{self, Part},
};
use crate::{fleet::Admission, keys, waiting_room::WaitingRoom};

/// Connections that are served at once; others wait for their turn.
const CONNECTIONS: usize = 64;
/// How long a device may take to say what it wants.
const HEADER_PATIENCE: Duration = Duration::from_secs(10);

/// Why assets are not served.
#[derive(Debug, thiserror::Error)]
#[error("assets cannot be served at {address} (assets_listen)")]
pub(crate) struct ServerError {
    address: SocketAddr,
    #[source]
    source: io::Error,
}

/// A running server.
pub(crate) struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

/// What every connection shares.
struct Shared {
    shelf: Shelf,
    admission: Arc<Admission>,
    waiting_room: WaitingRoom,
    turns: Semaphore,
}

impl Server {
    /// Listens and serves until [`Self::stop`].
    ///
    /// # Errors
    /// [`ServerError`] when the address cannot be listened on.
    pub(crate) async fn start(
        listen: SocketAddr,
        tls: Arc<ServerConfig>,
        admission: Arc<Admission>,
        shelf: Shelf,
    ) -> Result<Self, ServerError> {
        let refused = |source| ServerError {
            address: listen,
            source,
        };
        let listener = TcpListener::bind(listen).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let shared = Arc::new(Shared {
            shelf,
            admission,
            waiting_room: WaitingRoom::default(),
            turns: Semaphore::new(CONNECTIONS),
        });
        let task = tokio::spawn(accept(listener, TlsAcceptor::from(tls), shared));
        Ok(Self { address, task })
    }

    /// Where it listens.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more connections.
    pub(crate) fn stop(self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("the store of assets cannot accept a connection: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (acceptor, shared) = (acceptor.clone(), Arc::clone(&shared));
        tokio::spawn(async move {
            if let Err(error) = serve(stream, acceptor, shared).await {
                tracing::debug!(%from, "a connection for assets ended: {error:#}");
            }
        });
    }
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, shared: Arc<Shared>) -> anyhow::Result<()> {
    let stream = shared
        .waiting_room
        .admit(async { acceptor.accept(stream).await })
        .await?;
    let certificates = stream.get_ref().1.peer_certificates();
    let key = certificates
        .and_then(|chain| chain.first())
        .and_then(keys::public_key_of);
    let device = key
        .map(|key| DeviceId::of_public_key(&key))
        .ok_or_else(|| anyhow::anyhow!("its certificate is no device's"))?;
    let _turn = shared.turns.acquire().await?;
    let service = service_fn(|request| {
        let response = answer(&request, &device, &shared);
        async { Ok::<_, std::convert::Infallible>(response.await) }
    });
    hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_PATIENCE)
        .serve_connection(TokioIo::new(stream), service)
        .await?;
    Ok(())
}

fn answer(
    request: &Request<Incoming>,
    device: &DeviceId,
    shared: &Arc<Shared>,
) -> impl Future<Output = Response<Content>> + use<> {
    let (admitted, is_get) = (shared.admission.admits(device), request.method() == Method::GET);
    let wanted = wanted(request.uri().path());
    let from = request
        .headers()
        .get(RANGE)
        .map(|range| first_byte(range.as_bytes()));
    let (shared, device) = (Arc::clone(shared), device.clone());
    async move {
        if !admitted {
            return refusal(StatusCode::FORBIDDEN, "this device is not enrolled here");
        }
        let (true, Some((kind, sha256))) = (is_get, wanted) else {
            return refusal(StatusCode::NOT_FOUND, "no such address");
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
            return refusal(StatusCode::RANGE_NOT_SATISFIABLE, "it is not that long");
        }
        let Some(parts) = parts(&shared.shelf, kind, &sha256, begin, bytes) else {
            return refusal(StatusCode::NOT_FOUND, "the coordinator has no such asset");
        };
        let to = Recipient {
            device,
            admission: Arc::clone(&shared.admission),
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

/// Bytes of what is asked for. A manifest may be long: it is read off the network's threads.
async fn length(shared: &Arc<Shared>, kind: AssetKind, sha256: &str) -> io::Result<u64> {
    let (shared, sha256) = (Arc::clone(shared), sha256.to_owned());
    let look = move || match kind {
        AssetKind::File => shared.shelf.bytes_of(&sha256),
        AssetKind::Tree => tree::bytes_of(&shared.shelf, &sha256),
    };
    tokio::task::spawn_blocking(look).await?
}

/// The answer about an asset that cannot be sent. A device tries again what is the disk's fault, and nothing else.
fn unreadable(device: &DeviceId, error: &io::Error) -> Response<Content> {
    match error.kind() {
        io::ErrorKind::NotFound => refusal(StatusCode::NOT_FOUND, "the coordinator has no such asset"),
        io::ErrorKind::InvalidData => {
            tracing::error!(%device, "a tree's manifest is none: {error}");
            let why = "what the coordinator has under that name is no tree: add it there again";
            refusal(StatusCode::NOT_FOUND, why)
        }
        _ => {
            tracing::error!(%device, "an asset cannot be read: {error}");
            let why = format!("the coordinator cannot read it: {error}");
            refusal(StatusCode::INTERNAL_SERVER_ERROR, &why)
        }
    }
}

type Parts = Box<dyn Iterator<Item = io::Result<Part>> + Send>;

fn parts(shelf: &Shelf, kind: AssetKind, sha256: &str, from: u64, bytes: u64) -> Option<Parts> {
    match kind {
        AssetKind::File => {
            let path = shelf.place(sha256)?;
            Some(Box::new(std::iter::once(Ok(Part { path, from, bytes }))))
        }
        AssetKind::Tree => Some(Box::new(tree::parts(shelf, sha256, from).ok()?)),
    }
}

/// What an address names.
fn wanted(path: &str) -> Option<(AssetKind, String)> {
    let (kind, sha256) = path.strip_prefix("/v1/")?.split_once('/')?;
    Some((kind.parse().ok()?, sha256.to_owned()))
}

/// N of `bytes=N-`.
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
    fn addresses_and_ranges_are_read_to_the_letter() {
        let hash = "0f".repeat(32);
        assert_eq!(
            wanted(&format!("/v1/file/{hash}")),
            Some((AssetKind::File, hash.clone()))
        );
        assert_eq!(wanted(&format!("/v1/tree/{hash}")), Some((AssetKind::Tree, hash)));
        for path in ["/", "/v1/file", "/v2/file/x", "/v1/files/x", "v1/file/x"] {
            assert_eq!(wanted(path), None, "{path}");
        }
        assert_eq!(first_byte(b"bytes=17-"), Some(17));
        for range in ["bytes=1-2", "bytes=-5", "bytes=1-,3-", "lines=1-", "bytes=x-"] {
            assert_eq!(first_byte(range.as_bytes()), None, "{range}");
        }
    }

    #[test]
    fn what_is_no_hash_has_no_place() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = crate::workspace::Workspace::create(dir.path(), "schema = 1\n").unwrap();
        let shelf = Shelf::of(&workspace);
        for name in ["../../keys/ca.key", "", "0F", &"0F".repeat(32), &"/".repeat(64)] {
            assert_eq!(shelf.place(name), None, "{name}");
        }
    }
}
