//! The coordinator's connection to a broker: incoming messages, and a publisher for answers.
//!
//! Embedded and external brokers are the same here: the coordinator is an MQTT client of either. The link promises
//! little, because nothing needs more: messages may be lost, doubled or late, and delivery stays exact by the
//! coordinator's own acknowledgements. What it does promise is bounded memory and that it never
//! waits for its user.

mod inbound;
mod loopback_connector;
mod mqtt;
mod transport;

use regatta_wire::topic::Topic;

pub(crate) use inbound::{Inbound, WINDOW, inbox};
pub(crate) use loopback_connector::LoopbackConnector;
pub(crate) use mqtt::{Link, LinkError};
pub(crate) use transport::Transport;

/// Sends messages to devices.
pub(crate) trait Publisher: Send {
    /// Hands a message to the link, or drops it when the link is down or behind: devices repeat what needs an answer.
    fn publish(&self, topic: &Topic, frame: Vec<u8>);
}
