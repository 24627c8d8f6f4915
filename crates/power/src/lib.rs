//! MLPerf power sessions with the official programs of mlcommons/power-dev, or with a client and server of our own. A simulated
//! PTDaemon serves rehearsals.
//!
//! Only sessions of the official client and server are valid; ours name themselves in every session. This package does not judge sessions
//! (`regatta-submission-check` does).

pub mod ntp;
pub mod power_client;
pub mod power_dev;
pub mod power_server;
mod protocol;
pub mod ptd;
pub mod server_conf;
pub mod session;
pub mod simulated_ptd;

pub use protocol::{
    connection::ConnectionError, file_error::FileError, file_transfer::TransferError,
    own_program::OwnProgram, session_log::LogSink, session_name::is_label,
};
