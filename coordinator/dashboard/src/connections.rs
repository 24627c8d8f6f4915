//! The connections of browsers: their number, their headers and their time are limited. Over TLS, handshakes have separate slots.
//! When no slot is free, the oldest connection of the address with the most connections is closed, so that one address cannot occupy all slots.

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tower_service::Service as _;

use super::{access::Peer, plain_http};
use regatta_lab_net::{
    fair_slots::FairSlots,
    handshake_limiter::{HandshakeLimiter, network},
};

/// The longest time for receiving a request's header.
const HEADER_PATIENCE: Duration = Duration::from_secs(10);
/// The largest header of a request in bytes.
const MAX_HEADER: usize = 32 * 1024;
/// The longest connection over TLS. Live streams end earlier.
const MAX_CONNECTION: Duration = Duration::from_hours(2);

/// Accepts connections of this machine. They end with this task.
pub(super) async fn accept_plain(listener: TcpListener, router: axum::Router, most: usize) {
    let slots = Arc::new(Semaphore::new(most));
    let mut connections = JoinSet::new();
    loop {
        // The semaphore is never closed. Further browsers wait in the socket's queue.
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
            return;
        };
        while connections.try_join_next().is_some() {}
        let Some((stream, from)) = accept(&listener).await else {
            continue;
        };
        let router = router.clone();
        connections.spawn(async move {
            serve(stream, from, router).await;
            drop(slot);
        });
    }
}

/// Accepts connections of other machines to the page at `url`, at most `most` with their handshakes. They end with this task.
pub(super) async fn accept_tls(
    listener: TcpListener,
    config: Arc<ServerConfig>,
    router: axum::Router,
    url: String,
    most: usize,
) {
    let acceptor = TlsAcceptor::from(config);
    let url: Arc<str> = url.into();
    let limiter = Arc::new(HandshakeLimiter::new(most.div_ceil(2)));
    let served = (most / 2).max(1);
    let slots = FairSlots::new(served, served.div_ceil(2));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Some((stream, from)) = accept(&listener).await else {
            continue;
        };
        if !limiter.lets_in(from.ip()) {
            continue;
        }
        let (acceptor, router, url) = (acceptor.clone(), router.clone(), Arc::clone(&url));
        let (limiter, slots) = (Arc::clone(&limiter), Arc::clone(&slots));
        connections.spawn(async move {
            let handshake = Box::pin(accept_handshake(stream, acceptor, &url));
            let stream = match limiter.admit(from.ip(), handshake).await {
                Ok(stream) => stream,
                Err(error) => {
                    tracing::debug!(%from, "a TLS handshake with the live page failed: {error}");
                    return;
                }
            };
            let (_slot, mut evicted) = slots.take(network(from.ip()));
            tokio::select! {
                served = timeout(MAX_CONNECTION, Box::pin(serve(stream, from, router))) => drop(served),
                () = evicted.wait() => tracing::debug!(%from, "its address has newer connections to the live page"),
            }
        });
    }
}

/// Performs the TLS handshake. A browser without TLS gets a sentence within its handshake slot.
async fn accept_handshake(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    url: &str,
) -> io::Result<TlsStream<TcpStream>> {
    if plain_http::is_plain_http(&stream).await? {
        plain_http::refuse(stream, url).await?;
        return Err(io::Error::other("the client spoke HTTP without TLS"));
    }
    acceptor.accept(stream).await
}

async fn accept(listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    match listener.accept().await {
        Ok(accepted) => Some(accepted),
        Err(error) => {
            tracing::warn!("the live page cannot accept a connection: {error}");
            tokio::time::sleep(Duration::from_millis(100)).await;
            None
        }
    }
}

/// Serves HTTP/1.1 on a connection until it ends.
async fn serve<S>(stream: S, from: SocketAddr, router: axum::Router)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let answer = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(Peer(from));
        let answering = router.clone().call(request);
        async move { Ok::<_, Infallible>(answering.await.unwrap_or_else(|never| match never {})) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_PATIENCE)
        .max_buf_size(MAX_HEADER)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
    if let Err(error) = served {
        tracing::debug!(%from, "a connection to the live page ended: {error}");
    }
}
