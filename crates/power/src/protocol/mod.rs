//! The protocol between power-dev's client and server, version 3, for Regatta's own two programs: lines, files, descriptions and logs.
//!
//! Facts from mlcommons/power-dev at c4b3ad8. Each side's order of commands is in `power_client` and `power_server`.

pub(crate) mod connection;
pub(crate) mod description;
pub(crate) mod file_error;
pub(crate) mod file_transfer;
pub(crate) mod own_program;
pub(crate) mod results;
pub(crate) mod session_log;
pub(crate) mod session_name;
pub(crate) mod timestamps;

/// The client's first line.
pub(crate) const CLIENT_MAGIC: &str = "mlcommons/power client v3";
/// The server's reply to it, whatever it was.
pub(crate) const SERVER_MAGIC: &str = "mlcommons/power server v3";
/// The reply to a command that succeeded.
pub(crate) const OK: &str = "OK";
/// How every reply to a command that failed begins.
pub(crate) const ERROR: &str = "Error";

/// The files that a client fetches from the server, in order. A server sends no other.
pub(crate) const FETCHED_FILES: [&str; 6] = [
    "power/ptd_logs.txt",
    "ranging/spl.txt",
    "power/server.json",
    "power/server.log",
    "run_1/spl.txt",
    "run_1/ptd_out.txt",
];

/// The directory of a run in a session.
pub(crate) const fn directory_of(part: crate::session::Part) -> &'static str {
    match part {
        crate::session::Part::Ranging => "ranging",
        crate::session::Part::Testing => "run_1",
    }
}
