//! MQTT 5 over rumqttc. Every connection has a new client. Messages in flight on the old connection are dropped here
//! and sent again by the outbox, which alone knows what the coordinator has. So no message waits in two queues, and
//! memory stays bounded while the broker is unreachable.
//!
//! The session at the broker is persistent: it keeps commands that arrive while the device is offline. Incoming
//! messages are acknowledged only when [`Link::settle`] is called. [`super::secure`] implements TLS.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use regatta_types::BrokerAddress;
use rumqttc::{AckMode, Broker, LastWill, MqttOptions, QoS, SessionMode};
use tokio::{net::TcpStream, sync::mpsc, task::JoinHandle, time::timeout};

use super::{
    Link, LinkEvent, Publication,
    counted_stream::CountedStream,
    fresh_session::NothingUnderWay,
    pump::{Incoming, MqttReceipt, Pump},
    secure::{ByteStream, SecureLink, wrap},
    session_parameters::{IN_FLIGHT, KEEP_ALIVE_S, QUEUE, SESSION_EXPIRY_S},
};

/// Largest incoming packet in bytes: a command with a run's spec and all configuration files.
const MAX_PACKET: u32 = 256 * 1024;

/// A busy coordinator may need 10 s to begin the handshake and 10 s to complete it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub(crate) struct LinkSettings {
    pub(crate) broker: BrokerAddress,
    /// TLS parameters, if the broker uses TLS.
    pub(crate) secure: Option<SecureLink>,
    /// The client id. It must not change between starts, because it identifies the broker's session.
    pub(crate) client_id: String,
    /// Topic filters to subscribe to.
    pub(crate) subscriptions: Vec<String>,
    /// The message that the broker publishes when the device disconnects without a farewell.
    pub(crate) last_will: Option<Publication>,
}

/// A link over MQTT.
#[derive(Debug)]
pub(crate) struct MqttLink {
    outgoing: Option<mpsc::Sender<(u64, Publication)>>,
    incoming: mpsc::Receiver<Incoming>,
    settled: mpsc::UnboundedSender<MqttReceipt>,
    /// Number of the connection that publications are sent on. 0 while there is no connection.
    connection: u64,
    sent: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl MqttLink {
    /// Starts to connect. Must be called inside a tokio runtime.
    pub(crate) fn start(settings: &LinkSettings) -> Self {
        let sent = Arc::new(AtomicU64::new(0));
        let (outgoing, publications) = mpsc::channel(QUEUE);
        let (events, incoming) = mpsc::channel(QUEUE);
        // The receive maximum bounds this channel: the broker sends no more messages without acknowledgement.
        let (settled, receipts) = mpsc::unbounded_channel();
        let pump = Pump {
            options: mqtt_options(settings, &sent),
            subscriptions: settings.subscriptions.clone(),
            publications,
            receipts,
            events,
        };
        let task = tokio::spawn(pump.run(format!("{}:{}", settings.broker.host, settings.broker.port)));
        Self {
            outgoing: Some(outgoing),
            incoming,
            settled,
            connection: 0,
            sent,
            task,
        }
    }

    fn take(&mut self, incoming: Option<Incoming>) -> LinkEvent<MqttReceipt> {
        match incoming {
            Some(Incoming::Connected(connection)) => {
                self.connection = connection;
                LinkEvent::Connected
            }
            Some(Incoming::Disconnected) => {
                self.connection = 0;
                LinkEvent::Disconnected
            }
            Some(Incoming::Message {
                topic,
                payload,
                receipt,
            }) => LinkEvent::Message {
                topic: String::from_utf8_lossy(&topic).into_owned(),
                payload,
                receipt,
            },
            None => LinkEvent::Closed,
        }
    }
}

impl Link for MqttLink {
    type Receipt = MqttReceipt;

    async fn next(&mut self, wants_to_publish: bool) -> LinkEvent<MqttReceipt> {
        let outgoing = self.outgoing.clone().filter(|_| wants_to_publish);
        let has_capacity = async {
            match &outgoing {
                Some(outgoing) => outgoing.reserve().await.is_ok(),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            incoming = self.incoming.recv() => self.take(incoming),
            has_capacity = has_capacity => if has_capacity { LinkEvent::CanPublish } else { LinkEvent::Closed },
        }
    }

    fn publish(&mut self, publication: Publication) -> bool {
        let connection = self.connection;
        self.outgoing
            .as_ref()
            .is_some_and(|outgoing| outgoing.try_send((connection, publication)).is_ok())
    }

    fn settle(&mut self, receipt: MqttReceipt) {
        // The link has ended. The broker delivers the message again, which is harmless.
        let _ = self.settled.send(receipt);
    }

    fn bytes_sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    async fn close(&mut self) {
        self.outgoing = None;
        let drained = async { while self.incoming.recv().await.is_some() {} };
        if timeout(CLOSE_PATIENCE, drained).await.is_err() {
            self.task.abort();
        }
    }
}

fn mqtt_options(settings: &LinkSettings, sent: &Arc<AtomicU64>) -> MqttOptions {
    let broker = Broker::tcp(settings.broker.host.clone(), settings.broker.port);
    let mut options = MqttOptions::new(settings.client_id.clone(), broker);
    options
        .set_keep_alive(KEEP_ALIVE_S)
        .set_session_mode(SessionMode::Persistent)
        .set_session_expiry_interval(Some(SESSION_EXPIRY_S))
        .set_session_store(NothingUnderWay)
        .set_receive_maximum(Some(IN_FLIGHT))
        .set_max_packet_size(Some(MAX_PACKET))
        .set_outgoing_inflight_upper_limit(IN_FLIGHT)
        .set_ack_mode(AckMode::Manual)
        .set_connect_timeout(CONNECT_TIMEOUT);
    if let Some(will) = &settings.last_will {
        options.set_last_will(LastWill::new(
            will.topic.clone(),
            will.payload.clone(),
            QoS::AtLeastOnce,
            will.retain,
            None,
        ));
    }
    let (address, secure, sent) = (settings.broker.clone(), settings.secure.clone(), Arc::clone(sent));
    options.set_socket_connector(move |_host, _options| {
        connector(address.clone(), secure.clone(), Arc::clone(&sent))
    });
    options
}

/// Opens the byte stream to the broker and counts the bytes that reach the network.
async fn connector(
    broker: BrokerAddress,
    secure: Option<SecureLink>,
    sent: Arc<AtomicU64>,
) -> io::Result<Box<dyn ByteStream>> {
    let stream = TcpStream::connect((broker.host.as_str(), broker.port)).await?;
    stream.set_nodelay(true)?;
    wrap(CountedStream::new(stream, sent), secure).await
}
