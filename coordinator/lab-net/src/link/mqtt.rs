//! The MQTT 5 link, with `rumqttc`.
//!
//! Each connection is a new client with a clean session. State in flight on the previous connection is dropped, because devices repeat
//! unacknowledged messages.
//!
//! Messages are acknowledged to the broker manually after processing. The receive maximum therefore bounds the messages in memory, and a
//! slow disk slows the broker.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use regatta_types::BrokerAddress;
use regatta_wire::{frame, topic::Topic};
use rumqttc::{
    AckMode, AsyncClient, Event, EventLoop, IncomingPacketSizeLimit, MqttOptions, Packet, PublishOptions,
    QoS, SubscribeFilter, SubscribeReasonCode,
};
use tokio::{
    sync::{Mutex, mpsc, watch},
    task::JoinHandle,
    time::{Instant, timeout_at},
};

use super::{
    Publisher, Transport,
    inbound::{Inbound, MqttReceipt, Receipt, WINDOW},
};

/// The maximum number of outgoing messages in the queue. More are dropped, and repeated later.
const OUTBOX: usize = 1024;
/// The maximum number of outgoing messages that the broker has not acknowledged. The client library prefers sending to receiving until
/// then. Without a bound, a coordinator with many answers would receive nothing.
const IN_FLIGHT: u16 = 64;
/// The longest wait for capacity in the queue, and the interval between two looks at it.
const CAPACITY_WAIT: (Duration, Duration) = (Duration::from_secs(2), Duration::from_millis(2));
/// Seconds without traffic before the connection is tested.
const KEEP_ALIVE: u16 = 20;
/// The silence after which the connection is dropped. The broker acknowledges every message, and the client library tests an idle
/// connection. It does not test a connection that has messages to send, however long the peer is silent.
const MAX_SILENCE: Duration = Duration::from_secs(2 * KEEP_ALIVE as u64);
/// The first and the longest pause before another connection attempt.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// The broker could not be reached at the start.
#[derive(Debug, thiserror::Error)]
#[error("cannot connect to the broker at {address}")]
pub struct LinkError {
    address: BrokerAddress,
    #[source]
    source: Box<rumqttc::ConnectionError>,
}

/// A message that waits for a connection.
struct OutgoingMessage {
    topic: String,
    frame: Vec<u8>,
}

/// The sending end of the link.
#[derive(Clone)]
pub struct Outbox {
    letters: mpsc::Sender<OutgoingMessage>,
    dropped: Arc<AtomicU64>,
    connected: watch::Receiver<bool>,
}

impl Publisher for Outbox {
    fn publish(&self, topic: &Topic, frame: Vec<u8>) {
        if self
            .letters
            .try_send(OutgoingMessage {
                topic: topic.to_string(),
                frame,
            })
            .is_err()
        {
            let dropped = self.dropped.fetch_add(1, Ordering::Relaxed) + 1;
            if dropped.is_power_of_two() && *self.connected.borrow() {
                tracing::warn!(
                    count = dropped,
                    "messages to devices dropped because the broker is behind"
                );
            }
        }
    }

    fn wait_for_capacity(&self, messages: usize) {
        let (longest, interval) = CAPACITY_WAIT;
        let begun = std::time::Instant::now();
        let is_full = || self.letters.capacity() < messages.min(OUTBOX) && !self.letters.is_closed();
        while is_full() && *self.connected.borrow() && begun.elapsed() < longest {
            std::thread::sleep(interval);
        }
    }
}

/// A running link.
pub struct Link {
    outbox: Outbox,
    connected: watch::Receiver<bool>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Link {
    /// Connects, subscribes to devices' topics, and reconnects until [`Self::stop`].
    ///
    /// # Errors
    /// Returns [`LinkError`] when the first attempt fails. Later attempts are logged and repeated without end.
    pub async fn start(
        address: BrokerAddress,
        way: Transport,
        inbox: mpsc::Sender<Inbound>,
    ) -> Result<Self, LinkError> {
        let (letters, waiting) = mpsc::channel(OUTBOX);
        let (stop, stopped) = watch::channel(false);
        let (connection_state, connected) = watch::channel(true);
        let mut connector = Connector {
            address,
            way,
            waiting: Arc::new(Mutex::new(waiting)),
            inbox,
            stopped,
            connected: connection_state,
            lost: 0,
        };
        let first = connector.connect().await?;
        let dropped = Arc::new(AtomicU64::new(0));
        let task = tokio::spawn(connector.keep(first));
        Ok(Self {
            outbox: Outbox {
                letters,
                dropped,
                connected: connected.clone(),
            },
            connected,
            stop,
            task,
        })
    }

    /// Returns a handle for sending messages.
    pub fn outbox(&self) -> Outbox {
        self.outbox.clone()
    }

    /// Returns whether the link is connected, and each change of that.
    pub fn connected(&self) -> watch::Receiver<bool> {
        self.connected.clone()
    }

    /// Disconnects from the broker.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        // A task that has failed has stopped as well.
        let _ = self.task.await;
    }
}

struct Connector {
    address: BrokerAddress,
    way: Transport,
    waiting: Arc<Mutex<mpsc::Receiver<OutgoingMessage>>>,
    inbox: mpsc::Sender<Inbound>,
    stopped: watch::Receiver<bool>,
    connected: watch::Sender<bool>,
    lost: u64,
}

struct Connection {
    client: AsyncClient,
    events: EventLoop,
}

impl Connector {
    /// Connects and subscribes once.
    async fn connect(&mut self) -> Result<Connection, LinkError> {
        let mut options = MqttOptions::new(
            format!("regatta-coordinator-{}", uuid::Uuid::now_v7().simple()),
            (self.address.host.clone(), self.address.port),
        );
        let largest = u32::try_from(frame::HEADER_LEN + frame::MAX_BODY + 1024).unwrap_or(u32::MAX);
        options
            .set_keep_alive(KEEP_ALIVE)
            .set_clean_start(true)
            .set_receive_maximum(Some(WINDOW))
            .set_outgoing_inflight_upper_limit(IN_FLIGHT)
            .set_max_packet_size(Some(largest))
            .set_incoming_packet_size_limit(IncomingPacketSizeLimit::Bytes(largest))
            .set_ack_mode(AckMode::Manual);
        self.way.set_up(&mut options, &self.address);
        // Capacity for every acknowledgement of the window besides the outgoing messages.
        let (client, mut events) = AsyncClient::builder(options)
            .capacity(2 * usize::from(WINDOW) + OUTBOX)
            .build();
        let refused = |source| LinkError {
            address: self.address.clone(),
            source: Box::new(source),
        };
        loop {
            if let Event::Incoming(Packet::ConnAck(_)) = events.poll().await.map_err(refused)? {
                break;
            }
        }
        let filters =
            Topic::coordinator_subscriptions().map(|filter| SubscribeFilter::new(filter, QoS::AtLeastOnce));
        // A new channel has capacity for one request.
        let _ = client.try_subscribe_many(filters);
        Ok(Connection { client, events })
    }

    /// Serves one connection after the other.
    async fn keep(mut self, first: Connection) {
        let mut connection = Some(first);
        let mut pause = PAUSES.0;
        loop {
            let was_connected = connection.is_some();
            if let Some(open) = connection.take() {
                tracing::debug!(address = %self.address, "connected to the broker");
                pause = PAUSES.0;
                self.connected.send_replace(true);
                if self.serve(open).await {
                    return;
                }
                self.connected.send_replace(false);
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = self.stopped.wait_for(|stop| *stop) => return,
            }
            pause = (pause * 2).min(PAUSES.1);
            match self.connect().await {
                Ok(open) => connection = Some(open),
                // The loss itself is a warning already.
                Err(error) if was_connected => tracing::info!("{error}; trying again until it answers"),
                Err(error) => tracing::debug!("{:#}", anyhow::Error::from(error)),
            }
        }
    }

    /// Serves a connection until it breaks or the link is stopped. Returns `true` when the link was stopped.
    async fn serve(&mut self, mut connection: Connection) -> bool {
        let sender = tokio::spawn(send_messages(
            Arc::clone(&self.waiting),
            connection.client.clone(),
        ));
        let mut stopped = self.stopped.clone();
        let stopping = connection.client.clone();
        let watcher = tokio::spawn(async move {
            let _ = stopped.wait_for(|stop| *stop).await;
            // This also ends the event loop.
            let _ = stopping.try_disconnect();
        });
        let mut heard = Instant::now();
        loop {
            let Ok(event) = timeout_at(heard + MAX_SILENCE, connection.events.poll()).await else {
                tracing::warn!(address = %self.address, "lost the broker, which was silent for {MAX_SILENCE:?}; trying again");
                break;
            };
            if matches!(event, Ok(Event::Incoming(_))) {
                heard = Instant::now();
            }
            match event {
                Ok(Event::Incoming(Packet::Publish(publish))) => self.take(&connection.client, &publish),
                Ok(Event::Incoming(Packet::SubAck(answer))) => {
                    if answer
                        .return_codes
                        .iter()
                        .any(|code| !matches!(code, SubscribeReasonCode::Success(_)))
                    {
                        tracing::error!(address = %self.address, "the broker refuses the subscription to the devices' topics");
                    }
                }
                Ok(_) => {}
                Err(rumqttc::ConnectionError::RequestsDone) => break,
                Err(error) => {
                    if !*self.stopped.borrow() {
                        tracing::warn!(address = %self.address, "lost the broker; trying again");
                        tracing::debug!("the connection to the broker failed: {error}");
                    }
                    break;
                }
            }
        }
        sender.abort();
        watcher.abort();
        *self.stopped.borrow()
    }

    /// Passes a message to the ingest. The window keeps the inbox from filling. A message that still does not fit is dropped, because the
    /// device repeats it.
    fn take(&mut self, client: &AsyncClient, publish: &rumqttc::Publish) {
        let receipt = MqttReceipt {
            client: client.clone(),
            ack: client.prepare_ack(publish),
        };
        let inbound = Inbound {
            topic: String::from_utf8_lossy(&publish.topic).into_owned(),
            payload: publish.payload.clone(),
            retained: publish.retain,
            receipt: Receipt::Mqtt(receipt),
        };
        if let Err(mpsc::error::TrySendError::Full(inbound)) = self.inbox.try_send(inbound) {
            self.lost += 1;
            if self.lost.is_power_of_two() {
                tracing::warn!(count = self.lost, "messages dropped because the ingest is behind");
            }
            inbound.dealt_with();
        }
    }
}

/// Sends queued messages while a connection lasts.
async fn send_messages(waiting: Arc<Mutex<mpsc::Receiver<OutgoingMessage>>>, client: AsyncClient) {
    let mut waiting = waiting.lock().await;
    while let Some(OutgoingMessage { topic, frame }) = waiting.recv().await {
        if client
            .publish(topic, frame, PublishOptions::at_least_once())
            .await
            .is_err()
        {
            return;
        }
    }
}
