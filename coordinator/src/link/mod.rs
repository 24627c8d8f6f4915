//! The coordinator's connection to a broker: what arrives, and a way to answer.
//!
//! Embedded and external brokers are the same here: the coordinator is an MQTT client of either. The link promises
//! little, because nothing needs more: messages may be lost, doubled or late, and delivery stays exact by the
//! coordinator's own acknowledgements (design, section 5). What it does promise is bounded memory and that it never
//! waits for its user.

mod address;
mod mqtt;
mod way;

use bytes::Bytes;
use regatta_wire::topic::Topic;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

pub(crate) use address::{Address, AddressError};
pub(crate) use mqtt::{Link, LinkError};
pub(crate) use way::Way;

/// Messages that wait for the ingest at most. With chunks of 64 KiB this is 16 MiB; the broker holds back the rest,
/// because its own acknowledgements are sent only when a message has been dealt with.
pub(crate) const WINDOW: u16 = 256;

/// A message from a device, not yet acknowledged to the broker.
#[derive(Debug)]
pub(crate) struct Inbound {
    /// Its topic, as it came.
    pub(crate) topic: String,
    /// Its payload.
    pub(crate) payload: Bytes,
    /// Whether the broker had kept it: it may then be older than the connection.
    pub(crate) retained: bool,
    receipt: Receipt,
}

/// The ingest's inbox. It holds the link's window twice, since after a reconnection the last connection's messages may
/// still wait, and beside it what the embedded broker hands over by itself.
pub(crate) fn inbox() -> (mpsc::Sender<Inbound>, mpsc::Receiver<Inbound>) {
    mpsc::channel(2 * usize::from(WINDOW) + crate::broker::ROOM)
}

/// Tells the broker that a message has been dealt with.
#[derive(Debug)]
enum Receipt {
    Mqtt(mqtt::Receipt),
    /// A place among the logs that are on their way from the embedded broker.
    Room(OwnedSemaphorePermit),
    #[cfg(test)]
    None,
}

impl Inbound {
    /// A log message that the embedded broker hands over by itself; `room` is free again when it has been dealt with.
    pub(crate) fn of_log(topic: &str, payload: Bytes, room: OwnedSemaphorePermit) -> Self {
        Self {
            topic: topic.to_owned(),
            payload,
            retained: false,
            receipt: Receipt::Room(room),
        }
    }

    /// The message has been dealt with: the broker may send another.
    pub(crate) fn dealt_with(self) {
        match self.receipt {
            Receipt::Mqtt(receipt) => receipt.acknowledge(),
            Receipt::Room(room) => drop(room),
            #[cfg(test)]
            Receipt::None => {}
        }
    }

    /// A message that came from no broker.
    #[cfg(test)]
    pub(crate) fn for_test(topic: &str, payload: impl Into<Bytes>, retained: bool) -> Self {
        Self {
            topic: topic.to_owned(),
            payload: payload.into(),
            retained,
            receipt: Receipt::None,
        }
    }
}

/// A way to send messages to devices.
pub(crate) trait Post: Send {
    /// Hands a message to the link, or drops it when the link is down or behind: whoever needs an answer asks again.
    fn post(&self, topic: &Topic, frame: Vec<u8>);
}
