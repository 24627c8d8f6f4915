//! The embedded broker over `mqtt5`: our own acceptor in front of its routing.
//!
//! The acceptor is ours so that a connection's rights follow from how it was accepted; TLS and its certificates go
//! between accepting and handing over.

use std::{io, net::SocketAddr, sync::Arc};

use mqtt5::broker::{
    BrokerConfig, DynamicStorage, MemoryBackend, ResourceMonitor, client_handler::ClientHandler,
    router::MessageRouter, storage::QueueLimits, sys_topics::BrokerStats, transport::BrokerTransport,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::broadcast,
    task::{JoinHandle, JoinSet},
};

use super::{
    BrokerError, limits,
    rights::{Peer, Rights},
};

/// A running broker.
pub(crate) struct Broker {
    address: SocketAddr,
    shutdown: broadcast::Sender<()>,
    acceptor: JoinHandle<()>,
}

/// What every connection shares.
struct Shared {
    config: Arc<BrokerConfig>,
    router: Arc<MessageRouter>,
    storage: Arc<DynamicStorage>,
    stats: Arc<BrokerStats>,
    resources: Arc<ResourceMonitor>,
    shutdown: broadcast::Sender<()>,
}

impl Broker {
    /// Listens and serves until [`Self::stop`].
    ///
    /// # Errors
    /// [`BrokerError::PortInUse`] when another program listens there.
    pub(crate) async fn start(listen: SocketAddr) -> Result<Self, BrokerError> {
        let listener = TcpListener::bind(listen)
            .await
            .map_err(|source| match source.kind() {
                io::ErrorKind::AddrInUse => BrokerError::PortInUse(listen),
                _ => BrokerError::Listen {
                    address: listen,
                    source,
                },
            })?;
        let address = listener.local_addr().map_err(|source| BrokerError::Listen {
            address: listen,
            source,
        })?;
        if !address.ip().is_loopback() {
            tracing::warn!(%address, "plain TCP beyond loopback: anybody who reaches this port can play any device");
        }
        let (shutdown, _) = broadcast::channel(1);
        let shared = Shared::new(address, shutdown.clone());
        let acceptor = tokio::spawn(accept(listener, shared));
        Ok(Self {
            address,
            shutdown,
            acceptor,
        })
    }

    /// Where it listens, with the port that port 0 became.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends every connection and frees the port.
    pub(crate) async fn stop(self) {
        // Fails only when nobody is left to tell.
        let _ = self.shutdown.send(());
        let _ = self.acceptor.await;
    }
}

impl Shared {
    fn new(address: SocketAddr, shutdown: broadcast::Sender<()>) -> Self {
        let config = limits::broker(address);
        let queues = QueueLimits {
            max_messages: config.storage_config.max_queued_messages_per_client,
            max_bytes: config.storage_config.max_queued_bytes_per_client,
        };
        let storage = Arc::new(DynamicStorage::Memory(MemoryBackend::with_queue_limits(queues)));
        let router = MessageRouter::with_storage(Arc::clone(&storage))
            .with_fallback_queue_limits(queues)
            .with_retained_limits(config.max_retained_messages, config.max_retained_message_size);
        Self {
            config: Arc::new(config),
            router: Arc::new(router),
            storage,
            stats: Arc::new(BrokerStats::new()),
            resources: Arc::new(ResourceMonitor::new(limits::resources())),
            shutdown,
        }
    }

    /// The library's handler for one accepted connection, with rights of its own.
    fn handler(&self, stream: TcpStream, from: SocketAddr, peer: Peer) -> ClientHandler {
        ClientHandler::new(
            BrokerTransport::tcp(stream),
            from,
            Arc::clone(&self.config),
            Arc::clone(&self.router),
            Arc::new(Rights::of(peer)),
            Some(Arc::clone(&self.storage)),
            Arc::clone(&self.stats),
            Arc::clone(&self.resources),
            self.shutdown.subscribe(),
        )
    }
}

async fn accept(listener: TcpListener, shared: Shared) {
    let mut shutdown = shared.shutdown.subscribe();
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
            _ = shutdown.recv() => break,
        };
        let (stream, from) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file descriptors or the like: wait, or this loop takes a whole core.
                tracing::warn!("the broker cannot accept a connection: {error}");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            }
        };
        if !shared.resources.can_accept_connection(from.ip()).await {
            continue;
        }
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%from, "cannot send without delay: {error}");
        }
        let handler = shared.handler(stream, from, Peer::Unproven);
        connections.spawn(async move {
            if let Err(error) = handler.run().await {
                tracing::debug!(%from, "a connection to the broker ended: {error}");
            }
        });
    }
    drop(listener);
    let deadline = tokio::time::sleep(std::time::Duration::from_secs(2));
    tokio::pin!(deadline);
    loop {
        tokio::select! {
            ended = connections.join_next() => if ended.is_none() { return },
            () = &mut deadline => return,
        }
    }
}
