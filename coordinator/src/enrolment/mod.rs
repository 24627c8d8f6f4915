//! Enrolment, the coordinator's half: hands out tokens, listens for devices that use them, and issues certificates over keys
//! that never leave their devices. `regatta_wire::enrolment` has the exchange itself.
//!
//! The listener speaks TLS 1.3 and nothing else, takes one small request per connection, and gives each connection little
//! time: it is the only port that accepts unknown clients.

mod desk;
mod listener;
mod token;

use std::{io, net::SocketAddr};

pub(crate) use desk::{Desk, Place};
pub(crate) use listener::Listener;
pub(crate) use token::{NewToken, TokenError, TokenRequest, check_name, issue};

/// Why enrolments are not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EnrolmentError {
    /// Another program listens there.
    #[error("enrolments cannot be taken at {0}: another program has that port")]
    PortInUse(SocketAddr),
    /// The address cannot be listened on.
    #[error("enrolments cannot be taken at {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
}
