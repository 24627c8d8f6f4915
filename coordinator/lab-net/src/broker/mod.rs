//! The embedded broker behind Regatta's own interface: start, address, stop.
//!
//! Delivery does not depend on this broker, and the configuration can name another. `limits` has its limits, `rights` the rights of
//! its clients, and `intake` the path of logs to the ingest.

mod acceptor;
mod embedded;
mod handshake_failure;
mod hook;
mod intake;
mod limits;
mod live;
pub mod mosquitto;
mod pace;
mod retained;
mod rights;
mod routing;

use std::{io, net::SocketAddr};

pub use acceptor::Acceptor;
pub use embedded::Broker;
pub use intake::INBOX_CAPACITY;

use crate::port_holder::PortHolder;

/// The reason the broker did not start.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// Another program uses the port.
    #[error("the embedded broker cannot listen on {0}: {1} has that port")]
    PortInUse(SocketAddr, PortHolder),
    /// The broker cannot listen on the address.
    #[error("the embedded broker cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
}
