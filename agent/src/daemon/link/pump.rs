//! The connections of an MQTT link. The pump makes one connection at a time, each with a new client, and serves it
//! until it is lost. It knows MQTT, not runs.
//!
//! **Dead connections are detected here.** The client library only sends a ping when it has nothing else to send, and heartbeats
//! always are. So after one keep-alive interval of silence, publications use QoS 1, which the broker must acknowledge. After two
//! intervals of silence, the pump drops the connection.

use std::{
    collections::BTreeSet,
    convert::Infallible,
    io,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use bytes::Bytes;
use ring::rand::{SecureRandom as _, SystemRandom};
use rumqttc::{
    AsyncClient, ConnectionError, Event, EventLoop, ManualAck, MqttOptions, Packet, PublishOptions, QoS,
    SubAck, SubscribeFilter, SubscribeReasonCode,
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout_at},
};

use super::{
    Publication, connection_failure,
    session_parameters::{KEEP_ALIVE_S, QUEUE},
};

/// Pause before the first reconnect. It doubles up to `MAX_PAUSE` while the broker is unreachable. Each pause is shortened at random.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// The longest pause while the broker accepts connections but completes none in time. Each attempt costs it work, and more attempts would
/// keep it from serving any.
const MAX_PAUSE_OF_OVERLOAD: Duration = Duration::from_secs(30);
/// The pause while the coordinator has no free connection: each attempt costs it a TLS handshake.
const FULL_PAUSE: Duration = Duration::from_secs(60);
/// Silence after which publications request an acknowledgement. After twice this time the connection is dropped.
const SILENCE: Duration = Duration::from_secs(KEEP_ALIVE_S as u64);

/// The receipt of a message. It is only valid on the connection that delivered the message.
#[derive(Debug)]
pub(crate) struct MqttReceipt {
    connection: u64,
    /// `None` for messages that need no acknowledgement.
    ack: Option<Box<ManualAck>>,
}

/// An event that the pump reports to the link.
#[derive(Debug)]
pub(super) enum Incoming {
    /// The connection with this number is established and subscribed.
    Connected(u64),
    /// The connection is lost.
    Disconnected,
    /// The broker delivered a message.
    Message {
        topic: Bytes,
        payload: Bytes,
        receipt: MqttReceipt,
    },
}

/// Makes and serves the connections of a link.
pub(super) struct Pump {
    /// Options of the MQTT client.
    pub(super) options: MqttOptions,
    /// Topic filters to subscribe to.
    pub(super) subscriptions: Vec<String>,
    /// Publications, each with the number of its connection.
    pub(super) publications: mpsc::Receiver<(u64, Publication)>,
    /// Receipts of messages that the daemon has processed.
    pub(super) receipts: mpsc::UnboundedReceiver<MqttReceipt>,
    /// Channel for events to the link.
    pub(super) events: mpsc::Sender<Incoming>,
}

/// How a connection ended.
enum End {
    /// The connection failed, or the broker was unreachable.
    Lost {
        error: ConnectionError,
        was_connected: bool,
    },
    /// The daemon closed the link.
    Closed,
}

impl Pump {
    /// Runs until the link is closed. `broker` is the broker's name in log messages.
    pub(super) async fn run(mut self, broker: String) {
        let mut pause = FIRST_PAUSE;
        // What was reported since the last connection.
        let mut reported = BTreeSet::new();
        for connection in 1_u64.. {
            let longest;
            match self.connect_once(connection).await {
                End::Closed => return,
                End::Lost { error, was_connected } => {
                    longest = if !was_connected && connection_failure::is_overload(&error) {
                        MAX_PAUSE_OF_OVERLOAD
                    } else {
                        MAX_PAUSE
                    };
                    if connection_failure::is_full(&error) {
                        pause = FULL_PAUSE;
                    } else if was_connected {
                        pause = FIRST_PAUSE;
                        reported.clear();
                        if self.events.send(Incoming::Disconnected).await.is_err() {
                            return;
                        }
                    }
                    let failure = connection_failure::describe(&error, was_connected, &broker);
                    if !reported.contains(&failure) {
                        tracing::warn!("{failure}");
                        tracing::debug!("the MQTT client reports: {error}");
                        reported.insert(failure);
                    }
                }
            }
            if !self.wait(shortened(pause)).await {
                return;
            }
            pause = pause.saturating_mul(2).min(longest);
        }
    }

    /// Waits before a reconnect and drops publications for the lost connection. Returns `false` if the link is closed.
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
        let last_packet = LastPacket::new();
        let mut receiving = Receiving {
            client: &client,
            connection,
            subscriptions: &self.subscriptions,
            events: &self.events,
            last_packet: &last_packet,
            was_connected: false,
        };
        let error = tokio::select! {
            error = receiving.run(&mut event_loop) => error,
            never = send(&client, connection, &last_packet, &mut self.publications) => match never {},
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

/// Returns a random time between half of the pause and all of it, so that a fleet does not reconnect in step.
fn shortened(pause: Duration) -> Duration {
    let mut random = [0; 2];
    match SystemRandom::new().fill(&mut random) {
        Ok(()) => {
            pause / 2 + (pause / 2).mul_f64(f64::from(u16::from_le_bytes(random)) / f64::from(u16::MAX))
        }
        Err(_) => pause,
    }
}

/// The receiving half of a connection. It also drives the client's event loop.
struct Receiving<'a> {
    client: &'a AsyncClient,
    connection: u64,
    subscriptions: &'a [String],
    events: &'a mpsc::Sender<Incoming>,
    last_packet: &'a LastPacket,
    was_connected: bool,
}

/// The time of the last packet from the broker.
struct LastPacket {
    begin: Instant,
    received_ms: AtomicU64,
}

impl LastPacket {
    fn new() -> Self {
        Self {
            begin: Instant::now(),
            received_ms: AtomicU64::new(0),
        }
    }

    fn note_packet(&self) {
        let millis = u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.received_ms.store(millis, Ordering::Relaxed);
    }

    fn time(&self) -> Instant {
        self.begin + Duration::from_millis(self.received_ms.load(Ordering::Relaxed))
    }
}

impl Receiving<'_> {
    /// Runs until the connection ends.
    async fn run(&mut self, event_loop: &mut EventLoop) -> ConnectionError {
        loop {
            let silence_deadline = self.last_packet.time() + 2 * SILENCE;
            let Ok(polled) = timeout_at(silence_deadline, event_loop.poll()).await else {
                let silence = format!("no message from the broker for {} s", 2 * SILENCE.as_secs());
                return ConnectionError::Io(io::Error::new(io::ErrorKind::TimedOut, silence));
            };
            if matches!(polled, Ok(Event::Incoming(_))) {
                self.last_packet.note_packet();
            }
            let incoming = match polled {
                Ok(Event::Incoming(Packet::ConnAck(_))) => {
                    // The session is established. Without a store, the client does not write a checkpoint for every
                    // chunk.
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
            // No packets were read while the event channel was full, so that time does not count as silence.
            self.last_packet.note_packet();
        }
    }
}

/// Checks that the broker has granted every subscription.
fn all_granted(answer: &SubAck) -> io::Result<()> {
    let refused = answer
        .return_codes
        .iter()
        .find(|code| !matches!(code, SubscribeReasonCode::Success(_)));
    refused.map_or(Ok(()), |code| {
        let message = format!(
            "the broker refuses this device access to its topics ({code:?}): check the broker's access rules"
        );
        Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
    })
}

/// Passes publications for this connection to the client. Disconnects from the broker when the channel is closed.
async fn send(
    client: &AsyncClient,
    connection: u64,
    last_packet: &LastPacket,
    publications: &mut mpsc::Receiver<(u64, Publication)>,
) -> Infallible {
    while let Some((meant_for, publication)) = publications.recv().await {
        if meant_for != connection {
            continue;
        }
        let requests_ack = last_packet.time().elapsed() > SILENCE;
        let qos = if publication.at_least_once || requests_ack {
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
    // The event loop then ends, or the link's `CLOSE_PATIENCE` expires.
    let _ = client.disconnect().await;
    std::future::pending().await
}

/// Acknowledges messages that the daemon has processed. Ignores receipts of earlier connections.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_differ_and_are_never_longer_than_before() {
        let pauses: BTreeSet<Duration> = (0..100).map(|_| shortened(MAX_PAUSE)).collect();
        assert!(pauses.len() > 50, "{} different pauses", pauses.len());
        assert!(
            pauses
                .iter()
                .all(|pause| (MAX_PAUSE / 2..=MAX_PAUSE).contains(pause))
        );
    }
}
