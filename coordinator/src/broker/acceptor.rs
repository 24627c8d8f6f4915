//! Turns an accepted socket into a proven peer: the TLS handshake, and the certificate that names the peer.

use std::{io, sync::Arc};

use regatta_types::DeviceId;
use rustls::ServerConfig;
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::rights::Peer;
use crate::{handshake_limiter::in_time, keys};

/// How connections are accepted.
pub(crate) enum Acceptor {
    /// Without TLS. The configuration limits this to loopback by default.
    Plain,
    /// Over TLS 1.3, with a certificate of the lab.
    Tls {
        /// The broker's side of TLS.
        config: Arc<ServerConfig>,
        /// The key by which the coordinator is known.
        coordinator_key: [u8; 32],
    },
}

/// Does the handshake and returns the peer.
///
/// # Errors
/// When the client shows no certificate of the lab, speaks no TLS 1.3, or takes too long.
pub(super) async fn handshake(
    stream: TcpStream,
    config: &Arc<ServerConfig>,
    coordinator_key: &[u8; 32],
) -> io::Result<(TlsStream<TcpStream>, Peer)> {
    let acceptor = TlsAcceptor::from(Arc::clone(config));
    let stream = in_time(async { acceptor.accept(stream).await }).await?;
    let certificates = stream.get_ref().1.peer_certificates();
    let key = certificates
        .and_then(|chain| chain.first())
        .and_then(keys::public_key_of)
        .ok_or_else(|| io::Error::other("the certificate holds no Ed25519 key"))?;
    let peer = if key == *coordinator_key {
        Peer::Coordinator
    } else {
        let id = DeviceId::of_public_key(&key);
        Peer::Device(id)
    };
    Ok((stream, peer))
}
