//! Turns an accepted socket into an authenticated peer by the TLS handshake and the client certificate.

use std::{io, sync::Arc};

use regatta_types::DeviceId;
use rustls::ServerConfig;
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::rights::Peer;
use crate::{handshake_limiter::in_time, keys};

/// The broker's method of accepting connections.
pub enum Acceptor {
    /// Plain TCP. By default the configuration allows this only on loopback.
    Plain,
    /// TLS 1.3 with client certificates of the lab.
    Tls {
        /// The server's TLS configuration.
        config: Arc<ServerConfig>,
        /// The coordinator's Ed25519 public key.
        coordinator_key: [u8; 32],
    },
}

/// Performs the TLS handshake and returns the peer.
///
/// # Errors
/// Returns an error when the client has no certificate of the lab, does not speak TLS 1.3, or takes too long.
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
        .ok_or_else(|| io::Error::other("the certificate has no Ed25519 key"))?;
    let peer = if key == *coordinator_key {
        Peer::Coordinator
    } else {
        let id = DeviceId::of_public_key(&key);
        Peer::Device(id)
    };
    Ok((stream, peer))
}
