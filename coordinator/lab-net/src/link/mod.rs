//! The coordinator's connection to a broker: incoming messages, and a publisher for answers.
//!
//! Embedded and external brokers are the same here: the coordinator is an MQTT client of either.
//!
//! Messages may be lost, duplicated or late. Delivery stays exact through the coordinator's own acknowledgements. The link guarantees
//! bounded memory. Only a caller that waits for capacity is blocked, for a bounded time.

mod inbound;
mod loopback_connector;
mod mqtt;
mod transport;

use regatta_wire::topic::Topic;

pub use inbound::{Inbound, WINDOW, inbox};
pub use loopback_connector::LoopbackConnector;
pub use mqtt::{Link, LinkError};
pub use transport::Transport;

/// Sends messages to devices.
pub trait Publisher: Send {
    /// Queues a message, or drops it when the link is down or the queue is full. Devices repeat messages that need an answer.
    fn publish(&self, topic: &Topic, frame: Vec<u8>);

    /// Waits at most 2 s until the queue has capacity for `messages` messages. Returns at once while the link is down.
    fn wait_for_capacity(&self, messages: usize);
}
