//! What stands between an accepted socket and the broker: the TLS handshake, and the certificate that says who comes.
//!
//! Handshakes wait in a room of bounded size. When it is full, whoever has waited longest has to leave: an honest client
//! takes milliseconds, so that slow ones are the first to go, however many come.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rustls::ServerConfig;
use tokio::{net::TcpStream, sync::oneshot, time::timeout};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::rights::Peer;
use crate::keys;

/// Handshakes under way at once.
const ROOM: usize = 256;
/// The longest that a handshake may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How connections are accepted.
pub(crate) enum Front {
    /// As they come. The configuration keeps this on loopback unless told otherwise.
    Plain,
    /// Over TLS 1.3, with a certificate of the lab.
    Tls {
        /// What the broker answers with.
        config: Arc<ServerConfig>,
        /// The key by which the coordinator is known.
        coordinator_key: [u8; 32],
    },
}

/// The handshakes under way.
#[derive(Default)]
pub(super) struct WaitingRoom {
    inner: Mutex<Room>,
}

#[derive(Default)]
struct Room {
    next: u64,
    waiting: VecDeque<(u64, oneshot::Sender<()>)>,
}

impl WaitingRoom {
    /// Enters; whoever is asked to leave for it hears so.
    fn enter(&self) -> (u64, oneshot::Receiver<()>) {
        let (sender, receiver) = oneshot::channel();
        let mut room = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if room.waiting.len() >= ROOM {
            // Its sender goes, which is the sign.
            room.waiting.pop_front();
        }
        let number = room.next;
        room.next += 1;
        room.waiting.push_back((number, sender));
        (number, receiver)
    }

    fn leave(&self, number: u64) {
        let mut room = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        room.waiting.retain(|(waiting, _)| *waiting != number);
    }

    /// Does the handshake and says who came.
    ///
    /// # Errors
    /// When the client shows no certificate of the lab, speaks no TLS 1.3, or takes too long.
    pub(super) async fn handshake(
        &self,
        stream: TcpStream,
        config: &Arc<ServerConfig>,
        coordinator_key: &[u8; 32],
    ) -> io::Result<(TlsStream<TcpStream>, Peer)> {
        let (number, must_leave) = self.enter();
        let accepted = tokio::select! {
            accepted = timeout(PATIENCE, TlsAcceptor::from(Arc::clone(config)).accept(stream)) => accepted,
            _ = must_leave => Ok(Err(io::Error::other("others came, and this one had waited longest"))),
        };
        self.leave(number);
        let stream = accepted.map_err(|_| io::Error::other("the TLS handshake took too long"))??;
        let certificates = stream.get_ref().1.peer_certificates();
        let key = certificates
            .and_then(|chain| chain.first())
            .and_then(keys::public_key_of)
            .ok_or_else(|| io::Error::other("the certificate holds no Ed25519 key"))?;
        let peer = if key == *coordinator_key {
            Peer::Coordinator
        } else {
            let id = keys::device_id(&key).ok_or_else(|| io::Error::other("the key has no fingerprint"))?;
            Peer::Device(id)
        };
        Ok((stream, peer))
    }
}
