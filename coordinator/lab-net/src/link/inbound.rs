//! Messages from devices to the ingest, each with the receipt that lets the broker send another.

use bytes::Bytes;
use rumqttc::{AsyncClient, ManualAck};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

/// The maximum number of messages that wait for the ingest. With chunks of 64 KiB this is 16 MiB. The broker holds back more, because a
/// message is acknowledged only after it is processed.
pub const WINDOW: u16 = 256;

/// A message from a device, not yet acknowledged to the broker.
#[derive(Debug)]
pub struct Inbound {
    /// The topic as received.
    pub topic: String,
    pub payload: Bytes,
    /// Whether the broker had retained it. It may then be older than the connection.
    pub retained: bool,
    pub(super) receipt: Receipt,
}

/// Creates the ingest's inbox. Its capacity is twice the link's window, because messages of the previous connection may still wait after
/// a reconnect. `beside` is added for messages that the embedded broker delivers directly.
pub fn inbox(beside: usize) -> (mpsc::Sender<Inbound>, mpsc::Receiver<Inbound>) {
    mpsc::channel(2 * usize::from(WINDOW) + beside)
}

/// Confirms to the broker that a message is processed.
#[derive(Debug)]
pub(super) enum Receipt {
    Mqtt(MqttReceipt),
    /// A permit for a message in transit from the embedded broker.
    Permit(OwnedSemaphorePermit),
    #[cfg(any(test, feature = "fixtures"))]
    None,
}

impl Inbound {
    /// Creates a message that the embedded broker delivers directly. `permit` is released once it is processed.
    pub fn of_hook(topic: &str, payload: Bytes, permit: OwnedSemaphorePermit) -> Self {
        Self {
            topic: topic.to_owned(),
            payload,
            retained: false,
            receipt: Receipt::Permit(permit),
        }
    }

    /// Confirms that the message is processed, so that the broker may send another.
    pub fn dealt_with(self) {
        match self.receipt {
            Receipt::Mqtt(receipt) => receipt.acknowledge(),
            Receipt::Permit(permit) => drop(permit),
            #[cfg(any(test, feature = "fixtures"))]
            Receipt::None => {}
        }
    }

    /// Creates a message without a broker.
    #[cfg(any(test, feature = "fixtures"))]
    pub fn for_test(topic: &str, payload: impl Into<Bytes>, retained: bool) -> Self {
        Self {
            topic: topic.to_owned(),
            payload: payload.into(),
            retained,
            receipt: Receipt::None,
        }
    }
}

/// A message's MQTT acknowledgement, on the connection that delivered it.
#[derive(Debug)]
pub(super) struct MqttReceipt {
    pub(super) client: AsyncClient,
    pub(super) ack: Option<ManualAck>,
}

impl MqttReceipt {
    pub(super) fn acknowledge(self) {
        if let Some(ack) = self.ack {
            // This fails only when the connection is gone. The broker then expects no acknowledgement.
            let _ = self.client.try_manual_ack(ack);
        }
    }
}
