//! The coordinator's connection to a broker: what arrives, and a way to answer.
//!
//! Embedded and external brokers are the same here: the coordinator is an MQTT client of either. The link promises
//! little, because nothing needs more: messages may be lost, doubled or late, and delivery stays exact by the
//! coordinator's own acknowledgements (design, section 5). What it does promise is bounded memory and that it never
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

/// A way to send messages to devices.
pub(crate) trait Publisher: Send {
    /// Hands a message to the link, or drops it when the link is down or behind: whoever needs an answer asks again.
    fn publish(&self, topic: &Topic, frame: Vec<u8>);
}
