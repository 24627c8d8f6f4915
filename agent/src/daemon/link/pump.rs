//! The connections of an MQTT link: made one after another, each with a fresh client, and pumped until it is lost. Knows
//! what MQTT is, and nothing of runs.
//!
//! **A connection that has silently died is noticed here.** The client library tests a connection only when it has
//! nothing to send, and heartbeats are sent all the time. So a heartbeat that follows a keep-alive's time of silence asks
//! for an acknowledgement, and a broker that has said nothing for twice that time is given up.

use std::{
    convert::Infallible,
    io,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use bytes::Bytes;
use rumqttc::{
    AsyncClient, ConnectionError, Event, EventLoop, ManualAck, MqttOptions, Packet, PublishOptions, QoS,
    SubAck, SubscribeFilter, SubscribeReasonCode,
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout_at},
};

use super::{
    Publication,
    session_parameters::{KEEP_ALIVE_S, QUEUE},
};

/// The pause after a lost connection; doubled up to the longest while the broker stays away.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Silence after which the broker is asked for an answer, and after twice of which it is given up.
const SILENCE: Duration = Duration::from_secs(KEEP_ALIVE_S as u64);

/// Stands for a QoS 1 message of one connection.
#[derive(Debug)]
pub(crate) struct MqttReceipt {
    connection: u64,
    /// `None` for messages that want no acknowledgement.
    ack: Option<Box<ManualAck>>,
}

/// What the pump reports.
#[derive(Debug)]
pub(super) enum Incoming {
    /// The connection of this number stands.
    Connected(u64),
    /// It is lost.
    Disconnected,
    /// A message.
    Message {
        topic: Bytes,
        payload: Bytes,
        receipt: MqttReceipt,
    },
}

/// Makes connections, one after another.
pub(super) struct Pump {
    /// How to connect.
    pub(super) options: MqttOptions,
    /// What to subscribe to.
    pub(super) subscriptions: Vec<String>,
    /// What to publish, with the connection that it is meant for.
    pub(super) publications: mpsc::Receiver<(u64, Publication)>,
    /// What was dealt with.
    pub(super) receipts: mpsc::UnboundedReceiver<MqttReceipt>,
    /// Where to report.
    pub(super) events: mpsc::Sender<Incoming>,
}

/// How a connection ended.
enum End {
    /// By a fault, or because the broker is not there.
    Lost {
        error: ConnectionError,
        was_connected: bool,
    },
    /// Because the daemon wants no more of it.
    Closed,
}

impl Pump {
    /// Runs until the link is closed. `broker` is its name in messages.
    pub(super) async fn run(mut self, broker: String) {
        let (mut pause, mut complained) = (FIRST_PAUSE, false);
        for connection in 1_u64.. {
            match self.connect_once(connection).await {
                End::Closed => return,
                End::Lost { error, was_connected } => {
                    if was_connected {
                        (pause, complained) = (FIRST_PAUSE, false);
                        if self.events.send(Incoming::Disconnected).await.is_err() {
                            return;
                        }
                    }
                    if !complained {
                        tracing::warn!("no connection to the broker at {broker}: {error}; trying on");
                        complained = true;
                    }
                }
            }
            if !self.wait(pause).await {
                return;
            }
            pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        }
    }

    /// Waits between two connections; publications for the lost one are dropped. `false` when the link is closed.
    async fn wait(&mut self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        loop {
            tokio::select! {
                () = sleep_until(until) => return true,
                stale = self.publications.recv() => if stale.is_none() { return false },
            }
        }
    }

    async fn connect_once(&mut self, connection: u64) -> End {
        let (client, mut event_loop) = AsyncClient::builder(self.options.clone()).capacity(QUEUE).build();
        let hearing = Hearing::new();
        let mut receiving = Receiving {
            client: &client,
            connection,
            subscriptions: &self.subscriptions,
            events: &self.events,
            hearing: &hearing,
            was_connected: false,
        };
        let error = tokio::select! {
            error = receiving.run(&mut event_loop) => error,
            never = send(&client, connection, &hearing, &mut self.publications) => match never {},
            never = settle(&client, connection, &mut self.receipts) => match never {},
        };
        match error {
            ConnectionError::RequestsDone => End::Closed,
            error => End::Lost {
                error,
                was_connected: receiving.was_connected,
            },
        }
    }
}

/// The receiving half of one connection; it also drives the client.
struct Receiving<'a> {
    client: &'a AsyncClient,
    connection: u64,
    subscriptions: &'a [String],
    events: &'a mpsc::Sender<Incoming>,
    hearing: &'a Hearing,
    was_connected: bool,
}

/// When the broker was last heard.
struct Hearing {
    begin: Instant,
    heard_ms: AtomicU64,
}

impl Hearing {
    fn new() -> Self {
        Self {
            begin: Instant::now(),
            heard_ms: AtomicU64::new(0),
        }
    }

    fn heard_now(&self) {
        let millis = u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.heard_ms.store(millis, Ordering::Relaxed);
    }

    fn last(&self) -> Instant {
        self.begin + Duration::from_millis(self.heard_ms.load(Ordering::Relaxed))
    }
}

impl Receiving<'_> {
    /// Runs until the connection ends.
    async fn run(&mut self, event_loop: &mut EventLoop) -> ConnectionError {
        loop {
            let silence_deadline = self.hearing.last() + 2 * SILENCE;
            let Ok(polled) = timeout_at(silence_deadline, event_loop.poll()).await else {
                let silence = format!("the broker has said nothing for {} s", 2 * SILENCE.as_secs());
                return ConnectionError::Io(io::Error::new(io::ErrorKind::TimedOut, silence));
            };
            if matches!(polled, Ok(Event::Incoming(_))) {
                self.hearing.heard_now();
            }
            let incoming = match polled {
                Ok(Event::Incoming(Packet::ConnAck(_))) => {
                    // The session is agreed on. Without a store the client makes no checkpoint of every chunk.
                    event_loop.options.clear_session_store();
                    let filters = self
                        .subscriptions
                        .iter()
                        .map(|filter| SubscribeFilter::new(filter.as_str(), QoS::AtLeastOnce));
                    if let Err(e) = self.client.try_subscribe_many(filters) {
                        return ConnectionError::Io(io::Error::other(e));
                    }
                    continue;
                }
                Ok(Event::Incoming(Packet::SubAck(answer))) => {
                    if let Err(refused) = all_granted(&answer) {
                        return ConnectionError::Io(refused);
                    }
                    self.was_connected = true;
                    Incoming::Connected(self.connection)
                }
                Ok(Event::Incoming(Packet::Publish(publish))) => {
                    let ack = self.client.prepare_ack(&publish).map(Box::new);
                    let receipt = MqttReceipt {
                        connection: self.connection,
                        ack,
                    };
                    Incoming::Message {
                        topic: publish.topic,
                        payload: publish.payload,
                        receipt,
                    }
                }
                Ok(_) => continue,
                Err(error) => return error,
            };
            if self.events.send(incoming).await.is_err() {
                return ConnectionError::RequestsDone;
            }
            // While the daemon was busy, nobody listened.
            self.hearing.heard_now();
        }
    }
}

/// Whether the broker grants every subscription.
fn all_granted(answer: &SubAck) -> io::Result<()> {
    let refused = answer
        .return_codes
        .iter()
        .find(|code| !matches!(code, SubscribeReasonCode::Success(_)));
    refused.map_or(Ok(()), |code| {
        let message =
            format!("the broker refuses this device its own topics ({code:?}): see to its access rules");
        Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
    })
}

/// Hands publications of this connection to the client; takes leave of the broker when there will be no more.
async fn send(
    client: &AsyncClient,
    connection: u64,
    hearing: &Hearing,
    publications: &mut mpsc::Receiver<(u64, Publication)>,
) -> Infallible {
    while let Some((meant_for, publication)) = publications.recv().await {
        if meant_for != connection {
            continue;
        }
        let asks = hearing.last().elapsed() > SILENCE;
        let qos = if publication.at_least_once || asks {
            QoS::AtLeastOnce
        } else {
            QoS::AtMostOnce
        };
        let options = PublishOptions::new(qos).retain(publication.retain);
        if let Err(e) = client
            .publish(publication.topic, publication.payload, options)
            .await
        {
            tracing::warn!("the MQTT client refuses a publication: {e}");
        }
    }
    // The connection's own end follows, or that of the link's patience.
    let _ = client.disconnect().await;
    std::future::pending().await
}

/// Acknowledges what the daemon has dealt with. Receipts of earlier connections mean nothing to this one.
async fn settle(
    client: &AsyncClient,
    connection: u64,
    receipts: &mut mpsc::UnboundedReceiver<MqttReceipt>,
) -> Infallible {
    while let Some(receipt) = receipts.recv().await {
        if let (true, Some(ack)) = (receipt.connection == connection, receipt.ack)
            && let Err(e) = client.manual_ack(*ack).await
        {
            tracing::debug!("an acknowledgement was not sent: {e}");
        }
    }
    std::future::pending().await
}
