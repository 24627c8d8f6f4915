//! MLPerf power sessions on the official programs of mlcommons/power-dev: what they need, what they do, and a PTDaemon to rehearse with.
//!
//! The official client and server measure; this package configures, starts, watches and stops them. It does not judge sessions
//! (`regatta-submission` does), and it does not replace the official programs: a session of other programs is not valid.

pub mod ntp;
pub mod power_dev;
pub mod ptd;
pub mod server_conf;
pub mod session;
pub mod simulated_ptd;
