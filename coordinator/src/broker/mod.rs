//! The embedded broker, behind an interface of our own: start, address, stop.
//!
//! Delivery does not depend on the broker: this one is for convenience, and the configuration can name another. [`limits`] has its
//! limits, [`rights`] the rights of its clients, and [`intake`] the path of logs to the ingest.

mod acceptor;
mod embedded;
mod hook;
mod intake;
mod limits;
mod live;
pub(crate) mod mosquitto;
mod pace;
mod retained;
mod rights;

use std::{io, net::SocketAddr};

pub(crate) use acceptor::Acceptor;
pub(crate) use embedded::Broker;
pub(crate) use intake::INBOX_CAPACITY;

/// Why the broker did not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BrokerError {
    /// Another program listens there.
    #[error("the embedded broker cannot listen on {0}: another program has that port")]
    PortInUse(SocketAddr),
    /// The address cannot be listened on.
    #[error("the embedded broker cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
}
