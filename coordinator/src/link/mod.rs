//! The coordinator's connection to a broker: what arrives, and a way to answer.
//!
//! Embedded and external brokers are the same here: the coordinator is an MQTT client of either. The link promises
//! little, because nothing needs more: messages may be lost, doubled or late, and delivery stays exact by the
//! coordinator's own acknowledgements (design, section 5). What it does promise is bounded memory and that it never
//! waits for its user.

mod address;
mod inbound;
mod mqtt;
mod way;

use regatta_wire::topic::Topic;

pub(crate) use address::{Address, AddressError};
pub(crate) use inbound::{Inbound, WINDOW, inbox};
pub(crate) use mqtt::{Link, LinkError};
pub(crate) use way::Way;

/// A way to send messages to devices.
pub(crate) trait Post: Send {
    /// Hands a message to the link, or drops it when the link is down or behind: whoever needs an answer asks again.
    fn post(&self, topic: &Topic, frame: Vec<u8>);
}
