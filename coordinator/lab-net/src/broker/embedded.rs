//! The embedded broker: Regatta's own acceptor in front of the routing of the `mqtt5` crate.
//!
//! The acceptor is Regatta's own because a connection's rights follow from how it was accepted. The TLS handshake and the certificate
//! check (`acceptor`) come before the connection is handed to `mqtt5`. `routing` chooses its router.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use jiff::Timestamp;
use mqtt5::broker::{
    BrokerConfig, DynamicStorage, MemoryBackend, ResourceMonitor, client_handler::ClientHandler,
    storage::QueueLimits, sys_topics::BrokerStats, tls_acceptor::TlsStreamWrapper,
    transport::BrokerTransport,
};
use regatta_types::DeviceId;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{broadcast, mpsc},
    task::{JoinHandle, JoinSet},
};

use super::{
    BrokerError,
    acceptor::{Acceptor, handshake},
    handshake_failure,
    hook::Hook,
    intake::Intake,
    limits,
    live::Live,
    pace::Pace,
    rights::{Peer, Rights},
    routing::Routing,
};
use crate::{
    descriptors::DescriptorBudget,
    fair_slots::FairSlots,
    fleet::Admission,
    handshake_limiter::{HandshakeLimiter, HandshakeSlot, evicted},
    link::{Inbound, LoopbackConnector},
    token_bucket::{Rate, TokenBuckets},
};

/// Concurrent connections of one device: the current one, and closed ones that the broker has not noticed yet.
const CONNECTIONS_PER_DEVICE: usize = 4;
/// The rate at which refused connections of each kind are logged.
const REFUSALS_LOGGED: Rate = Rate {
    burst: 16,
    per_second: 0.1,
};

/// A running broker.
pub struct Broker {
    address: SocketAddr,
    connector: LoopbackConnector,
    shutdown: broadcast::Sender<()>,
    acceptor: JoinHandle<()>,
}

/// A kind of refused connections. Clients without a certificate can cause one kind only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ConnectionRefusal {
    /// The TLS handshake failed.
    Handshake,
    /// All connections for devices are in use.
    Full,
}

/// State that all connections share.
struct BrokerState {
    config: Arc<BrokerConfig>,
    routing: Arc<Routing>,
    storage: Arc<DynamicStorage>,
    stats: Arc<BrokerStats>,
    resources: Arc<ResourceMonitor>,
    shutdown: broadcast::Sender<()>,
    acceptor: Acceptor,
    handshake_limiter: HandshakeLimiter,
    admission: Arc<Admission>,
    pace: Arc<Pace>,
    /// The slots for the connections of each device.
    devices: Arc<FairSlots<DeviceId>>,
    live: Live,
    /// The maximum number of concurrent connections, unproven ones included.
    most: usize,
    /// The rate limiter for logged refusals.
    refusals: TokenBuckets<ConnectionRefusal>,
}

impl Broker {
    /// Listens and serves until [`Self::stop`]. Log messages of devices go to `inbox`.
    ///
    /// # Errors
    /// Returns [`BrokerError::PortInUse`] when another program uses the port, and `BrokerError::Listen` for any other failure to
    /// listen.
    pub async fn start(
        listen: SocketAddr,
        acceptor: Acceptor,
        admission: Arc<Admission>,
        inbox: mpsc::Sender<Inbound>,
        budget: DescriptorBudget,
    ) -> Result<Self, BrokerError> {
        let listener = TcpListener::bind(listen)
            .await
            .map_err(|source| match source.kind() {
                io::ErrorKind::AddrInUse => {
                    BrokerError::PortInUse(listen, crate::port_holder::PortHolder::of(listen))
                }
                _ => BrokerError::Listen {
                    address: listen,
                    source,
                },
            })?;
        let address = listener.local_addr().map_err(|source| BrokerError::Listen {
            address: listen,
            source,
        })?;
        if matches!(acceptor, Acceptor::Plain) && !address.ip().is_loopback() {
            tracing::warn!(%address, "unencrypted MQTT on a non-loopback address: anyone who can reach it can impersonate any device");
        }
        let (shutdown, _) = broadcast::channel(1);
        let intake = Intake::new(inbox);
        let shared = BrokerState::new(address, shutdown.clone(), acceptor, admission, intake, budget);
        let shared = Arc::new(shared);
        let (connector, arrivals) = LoopbackConnector::new();
        let acceptor = tokio::spawn(accept(listener, arrivals, shared));
        Ok(Self {
            address,
            connector,
            shutdown,
            acceptor,
        })
    }

    /// Returns the address on which the broker listens. Port 0 is replaced by the actual port.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the connector for the coordinator's own connection.
    pub fn loopback_connector(&self) -> LoopbackConnector {
        self.connector.clone()
    }

    /// Closes every connection and frees the port.
    pub async fn stop(self) {
        // Sending fails only when the receiver is gone.
        let _ = self.shutdown.send(());
        let _ = self.acceptor.await;
    }
}

impl BrokerState {
    fn new(
        address: SocketAddr,
        shutdown: broadcast::Sender<()>,
        acceptor: Acceptor,
        admission: Arc<Admission>,
        intake: Intake,
        budget: DescriptorBudget,
    ) -> Self {
        let pace = Arc::new(Pace::default());
        let config = limits::broker(address);
        let queues = QueueLimits {
            max_messages: config.storage_config.max_queued_messages_per_client,
            max_bytes: config.storage_config.max_queued_bytes_per_client,
        };
        let storage = Arc::new(DynamicStorage::Memory(MemoryBackend::with_queue_limits(queues)));
        let routing = Arc::new(Routing::new(&storage, queues, &config));
        let hook = Hook::new(intake, Arc::clone(&pace), Arc::clone(&routing));
        Self {
            config: Arc::new(config.with_event_handler(Arc::new(hook))),
            routing,
            storage,
            stats: Arc::new(BrokerStats::new()),
            resources: Arc::new(ResourceMonitor::new(limits::resources())),
            shutdown,
            acceptor,
            handshake_limiter: HandshakeLimiter::new(budget.handshakes),
            admission,
            pace,
            devices: FairSlots::new(budget.broker_connections, CONNECTIONS_PER_DEVICE),
            live: Live::default(),
            most: budget.broker_connections + budget.handshakes,
            refusals: TokenBuckets::new(REFUSALS_LOGGED),
        }
    }

    /// Serves an external connection until it ends. The connection holds a slot of the handshake limiter until its CONNECT is accepted,
    /// and can be evicted only until then.
    async fn serve(&self, stream: TcpStream, from: SocketAddr) -> anyhow::Result<()> {
        let (slot, eviction) = self
            .handshake_limiter
            .enter_while_open(from.ip(), &stream)
            .await?;
        let served = eviction.or(self.serve_unproven(stream, from, slot)).await;
        served.unwrap_or_else(|| Err(evicted().into()))
    }

    async fn serve_unproven(
        &self,
        stream: TcpStream,
        from: SocketAddr,
        handshake_slot: HandshakeSlot,
    ) -> anyhow::Result<()> {
        let Acceptor::Tls {
            config,
            coordinator_key,
        } = &self.acceptor
        else {
            let transport = BrokerTransport::tcp(stream);
            return self
                .run(transport, from, Peer::Unproven, Some(handshake_slot))
                .await;
        };
        let shown = handshake(stream, config, coordinator_key).await;
        let (stream, peer) = shown.inspect_err(|error| self.tell_refused(from, error))?;
        let Peer::Device(id) = &peer else {
            let transport = BrokerTransport::tls(TlsStreamWrapper::new(stream));
            return self.run(transport, from, peer, Some(handshake_slot)).await;
        };
        let Some((_slot, mut lost)) = self.devices.take_surplus(id.clone()) else {
            let transport = BrokerTransport::tls(TlsStreamWrapper::new(stream));
            return self.refuse(transport, from, peer, handshake_slot).await;
        };
        let live = self.live.add(id.clone(), stream.get_ref().0)?;
        let transport = BrokerTransport::tls(TlsStreamWrapper::new(stream));
        let run = self.run(transport, from, peer, Some(handshake_slot));
        tokio::pin!(run);
        let ended = tokio::select! {
            ended = &mut run => ended,
            () = lost.wait() => {
                // The library still has to close the session.
                self.live.cut(live);
                run.await
            }
        };
        self.live.remove(live);
        ended
    }

    /// Logs a handshake that failed because of a certificate, such as a device that trusts another lab's authority. Failures are logged
    /// at the rate [`REFUSALS_LOGGED`], because anyone can cause them.
    fn tell_refused(&self, from: SocketAddr, error: &io::Error) {
        if let Some(why) = handshake_failure::describe(error, Timestamp::now())
            && self.refusals.try_take(ConnectionRefusal::Handshake)
        {
            tracing::warn!(%from, "the TLS handshake with the broker failed; {why}");
            tracing::debug!(%from, "the TLS handshake with the broker failed: {error}");
        }
    }

    /// Runs MQTT on a connection with its own rights.
    async fn run(
        &self,
        transport: BrokerTransport,
        from: SocketAddr,
        peer: Peer,
        handshake_slot: Option<HandshakeSlot>,
    ) -> anyhow::Result<()> {
        let rights = self.rights(peer, handshake_slot);
        // The library's future is large, so it is boxed.
        Ok(Box::pin(self.handler(transport, from, rights).run()).await?)
    }

    /// Answers a device's CONNECT that there is no free connection, so that it waits before it tries again.
    async fn refuse(
        &self,
        transport: BrokerTransport,
        from: SocketAddr,
        peer: Peer,
        handshake_slot: HandshakeSlot,
    ) -> anyhow::Result<()> {
        if self.refusals.try_take(ConnectionRefusal::Full) {
            tracing::warn!(
                %from,
                "refused a device: all connections for devices are in use; hint: raise `max_devices` in regatta.toml; if `regatta serve` \
                 warned of open files, raise that limit too"
            );
        }
        let rights = Rights {
            is_full: true,
            ..self.rights(peer, Some(handshake_slot))
        };
        Ok(Box::pin(self.handler(transport, from, rights).run()).await?)
    }

    fn rights(&self, peer: Peer, handshake_slot: Option<HandshakeSlot>) -> Rights {
        Rights {
            peer,
            admission: Arc::clone(&self.admission),
            pace: Arc::clone(&self.pace),
            is_full: false,
            handshake_slot: Mutex::new(handshake_slot),
        }
    }

    fn handler(&self, transport: BrokerTransport, from: SocketAddr, rights: Rights) -> ClientHandler {
        ClientHandler::new(
            transport,
            from,
            Arc::clone(&self.config),
            self.routing.router_of(&rights.peer),
            Arc::new(rights),
            Some(Arc::clone(&self.storage)),
            Arc::clone(&self.stats),
            Arc::clone(&self.resources),
            self.shutdown.subscribe(),
        )
    }
}

async fn accept(listener: TcpListener, mut own: mpsc::Receiver<TcpStream>, shared: Arc<BrokerState>) {
    let mut shutdown = shared.shutdown.subscribe();
    let mut changes = shared.admission.changes();
    let mut connections = JoinSet::new();
    // A set of its own, because this task never returns: dropping the set ends it.
    let mut wills = JoinSet::new();
    let routing = Arc::clone(&shared.routing);
    wills.spawn(async move { routing.forward_wills().await });
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(stream) = own.recv() => {
                connections.spawn(serve_coordinator(Arc::clone(&shared), stream));
                continue;
            }
            Ok(()) = changes.changed() => {
                shared.live.cut_off(&shared.admission);
                continue;
            }
            Some(_) = connections.join_next() => continue,
            _ = shutdown.recv() => break,
        };
        let (stream, from) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Typically file descriptors have run out. Without a pause this loop would use a whole core.
                tracing::warn!("the broker cannot accept a connection: {error}");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        if !shared.handshake_limiter.lets_in(from.ip()) || connections.len() >= shared.most {
            continue;
        }
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%from, "cannot send without delay: {error}");
        }
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            if let Err(error) = shared.serve(stream, from).await {
                tracing::debug!(%from, "a connection to the broker ended: {error:#}");
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

/// Serves a connection from the coordinator's own connector.
async fn serve_coordinator(shared: Arc<BrokerState>, stream: TcpStream) {
    let nodelay = stream.set_nodelay(true);
    let ended = match nodelay.and_then(|()| stream.peer_addr()) {
        Ok(from) => {
            shared
                .run(BrokerTransport::tcp(stream), from, Peer::Coordinator, None)
                .await
        }
        Err(error) => Err(error.into()),
    };
    if let Err(error) = ended {
        tracing::debug!("the coordinator's connection to its broker ended: {error:#}");
    }
}
