//! The embedded broker, behind an interface of our own: start, address, stop.
//!
//! Correctness needs nothing of a broker (design, section 5): this one is for convenience, and any other may take its
//! place by configuration. Its limits stand in [`limits`], who may do what in [`rights`], how logs reach the ingest in
//! [`intake`].

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
