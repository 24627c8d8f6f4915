//! Messages from devices on their way to the ingest, each with the receipt that lets the broker send another.

use bytes::Bytes;
use rumqttc::{AsyncClient, ManualAck};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

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
    pub(super) receipt: Receipt,
}

/// The ingest's inbox. It holds the link's window twice, since after a reconnection the last connection's messages may
/// still wait, and `beside` it the messages that the embedded broker hands over by itself.
pub(crate) fn inbox(beside: usize) -> (mpsc::Sender<Inbound>, mpsc::Receiver<Inbound>) {
    mpsc::channel(2 * usize::from(WINDOW) + beside)
}

/// Tells the broker that a message has been dealt with.
#[derive(Debug)]
pub(super) enum Receipt {
    Mqtt(MqttReceipt),
    /// A place among the logs that are on their way from the embedded broker.
    Permit(OwnedSemaphorePermit),
    #[cfg(test)]
    None,
}

impl Inbound {
    /// A log message that the embedded broker hands over by itself; `room` is free again when it has been dealt with.
    pub(crate) fn of_log(topic: &str, payload: Bytes, permit: OwnedSemaphorePermit) -> Self {
        Self {
            topic: topic.to_owned(),
            payload,
            retained: false,
            receipt: Receipt::Permit(permit),
        }
    }

    /// The message has been dealt with: the broker may send another.
    pub(crate) fn dealt_with(self) {
        match self.receipt {
            Receipt::Mqtt(receipt) => receipt.acknowledge(),
            Receipt::Permit(permit) => drop(permit),
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

/// A message's acknowledgement to the broker, on the connection that brought it.
#[derive(Debug)]
pub(super) struct MqttReceipt {
    pub(super) client: AsyncClient,
    pub(super) ack: Option<ManualAck>,
}

impl MqttReceipt {
    pub(super) fn acknowledge(self) {
        if let Some(ack) = self.ack {
            // Fails only when that connection is gone, and then the broker asks no more.
            let _ = self.client.try_manual_ack(ack);
        }
    }
}
