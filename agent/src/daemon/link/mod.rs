//! The way to the broker as the daemon sees it: messages out, messages in, connected or not. The daemon must hold up
//! whatever a link loses or doubles; which client library does the work is a matter of the implementation alone.

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

/// A message for the broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Publication {
    /// Its topic.
    pub(crate) topic: String,
    /// Its payload.
    pub(crate) payload: Vec<u8>,
    /// Whether the broker keeps it for those who come later.
    pub(crate) retain: bool,
    /// Whether the broker acknowledges it. A heartbeat that is lost is followed by the next.
    pub(crate) at_least_once: bool,
}

/// What a link reports.
#[derive(Debug)]
pub(crate) enum LinkEvent<Receipt> {
    /// The broker is there, commands and acknowledgements are subscribed to. What was published before may be lost.
    Connected,
    /// The broker is gone; the link tries to come back by itself.
    Disconnected,
    /// A message.
    Message {
        /// Its topic.
        topic: String,
        /// Its payload.
        payload: Bytes,
        /// To be given back by [`Link::settle`] once the message's consequences are on disk.
        receipt: Receipt,
    },
    /// There is room for a publication; only when it was wanted.
    CanPublish,
    /// The link has ended for good.
    Closed,
}

/// A connection to a broker that mends itself.
pub(crate) trait Link {
    /// Stands for a message that the broker will bring again until it is settled.
    type Receipt;

    /// The next event. Cancel-safe. With `wants_room`, room for a publication is an event too.
    fn next(&mut self, wants_to_publish: bool) -> impl Future<Output = LinkEvent<Self::Receipt>>;

    /// Hands over a publication. `false` when there is no room: it was not taken.
    fn publish(&mut self, publication: Publication) -> bool;

    /// The message was dealt with; the broker need not bring it again.
    fn settle(&mut self, receipt: Self::Receipt);

    /// Bytes handed to the network since the link began.
    fn bytes_sent(&self) -> u64;

    /// Sends what was handed over, takes leave of the broker and closes.
    fn close(&mut self) -> impl Future<Output = ()>;
}
