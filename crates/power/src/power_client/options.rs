//! The options of a power client. It does not parse them.

use std::path::PathBuf;

/// What a client does: the official client's options.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The server's address.
    pub address: String,
    /// The server's port.
    pub port: u16,
    /// The NTP server that this machine's clock is compared with.
    pub ntp: String,
    /// The shell command that is measured.
    pub workload: String,
    /// Where the workload writes LoadGen's logs.
    pub logs: PathBuf,
    /// Where the session's files go.
    pub output: PathBuf,
    /// Whether they go there directly, and not into a directory with the session's name.
    pub into_output: bool,
    /// A word in the session's name.
    pub label: String,
    /// Whether the directory of LoadGen's logs is removed first.
    pub remove_logs: bool,
    /// Whether the server ends after this session.
    pub stop_server: bool,
    /// Volts and amperes instead of those of a ranging run.
    pub manual_ranges: Option<(f64, f64)>,
}
