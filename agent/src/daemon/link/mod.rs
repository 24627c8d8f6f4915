//! The interface between the daemon and the broker: publications, messages and connection state. The daemon must
//! tolerate a link that loses or repeats messages. The client library is a detail of the implementation.

mod connection_failure;
mod counted_stream;
mod fresh_session;
mod mqtt;
mod pump;
mod secure;
mod session_parameters;

use std::future::Future;

use bytes::Bytes;

pub(crate) use mqtt::{LinkSettings, MqttLink};
pub(crate) use secure::SecureLink;

/// A message to publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Publication {
    pub(crate) topic: String,
    pub(crate) payload: Vec<u8>,
    /// Whether the broker retains the message for later subscribers.
    pub(crate) retain: bool,
    /// Whether to use QoS 1. A heartbeat does not need it, because the next one replaces a lost one.
    pub(crate) at_least_once: bool,
}

#[derive(Debug)]
pub(crate) enum LinkEvent<Receipt> {
    /// The link is connected and subscribed. Earlier publications may be lost.
    Connected,
    /// The link has lost its connection. It reconnects automatically.
    Disconnected,
    /// A message arrived.
    Message {
        topic: String,
        payload: Bytes,
        /// The receipt to pass to [`Link::settle`] when the effects of the message are on disk.
        receipt: Receipt,
    },
    /// The link can take a publication. Only reported on request.
    CanPublish,
    /// The link is closed permanently.
    Closed,
}

/// A connection to a broker that reconnects automatically.
pub(crate) trait Link {
    /// The receipt of a message, which the broker delivers again until it is settled.
    type Receipt;

    /// Returns the next event. Cancel-safe. If `wants_to_publish` is true, free capacity for a publication is also an
    /// event.
    fn next(&mut self, wants_to_publish: bool) -> impl Future<Output = LinkEvent<Self::Receipt>>;

    /// Passes a publication to the link. Returns `false` if the link has no capacity and did not take it.
    fn publish(&mut self, publication: Publication) -> bool;

    /// Acknowledges a processed message, so that the broker does not deliver it again.
    fn settle(&mut self, receipt: Self::Receipt);

    /// Returns the number of bytes written to the network since the link started.
    fn bytes_sent(&self) -> u64;

    /// Sends the remaining publications, disconnects and closes the link.
    fn close(&mut self) -> impl Future<Output = ()>;
}
