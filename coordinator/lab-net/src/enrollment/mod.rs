//! Enrollment at the coordinator: issues tokens, listens for devices that use them, and certifies keys that never leave their devices.
//! `regatta_wire::enrollment` defines the exchange.
//!
//! This is the only port that accepts unknown clients. The listener therefore requires TLS 1.3, takes one small request per connection,
//! and limits each connection's time.

mod listener;
mod service;
mod token;

use std::{io, net::SocketAddr};

pub use listener::Listener;
pub use service::{CoordinatorAddresses, EnrollmentService};
pub use token::{NewToken, TokenError, TokenRequest, check_name, issue};

use crate::port_holder::PortHolder;

/// The reason why the listener cannot start.
#[derive(Debug, thiserror::Error)]
pub enum EnrollmentError {
    /// Another program uses the port.
    #[error("devices cannot enroll at {0}: {1} has that port")]
    PortInUse(SocketAddr, PortHolder),
    /// The listener cannot listen on the address.
    #[error("devices cannot enroll at {address}")]
    Listen {
        address: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
}
