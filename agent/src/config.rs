//! The daemon's configuration file, `agent.toml`. This module reads and checks the file. It does not open the files
//! that it names.

use std::{
    io,
    ops::Range,
    path::{Path, PathBuf},
    time::Duration,
};

use regatta_fsutil::regular_file;
use regatta_types::BrokerAddress;
use serde::Deserialize;
use toml::Spanned;

/// The daemon's checked settings, with absolute paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentConfig {
    /// The device's display name.
    pub(crate) name: String,
    /// The directory of key, runs and logs.
    pub(crate) state_dir: PathBuf,
    /// `MLPERF_SCRATCH_PATH` of the run processes: models and preprocessed data.
    pub(crate) scratch: Option<PathBuf>,
    /// The broker. `None` uses the one in the enrollment.
    pub(crate) broker: Option<BrokerAddress>,
    /// The coordinator's name or address, as this device reaches it, for assets and certificate renewal. `None` uses
    /// the address that the coordinator states.
    pub(crate) coordinator: Option<String>,
    /// Interval between heartbeats.
    pub(crate) heartbeat: Duration,
    /// Largest number of unacknowledged log chunks of a run.
    pub(crate) window_chunks: u32,
    /// Bytes of logs per second that a live run may send while LoadGen runs.
    pub(crate) live_bytes_per_second: u64,
    /// Bytes of all runs on the device above which no further run starts.
    pub(crate) spool_max_bytes: u64,
    /// Limit in bytes for models and data from the coordinator.
    pub(crate) assets_max_bytes: u64,
    /// Longest time for which the next run waits for the delivery of earlier ones.
    pub(crate) deliver_first: Duration,
    /// Free bytes that are required to start a run.
    pub(crate) min_free_bytes: u64,
    /// Time between SIGTERM and SIGKILL when a run is aborted.
    pub(crate) abort_grace: Duration,
    /// The socket of the helper that sets the device's state.
    pub(crate) state_socket: PathBuf,
    /// The root directory for sensors, clocks and power modes.
    pub(crate) system_root: PathBuf,
    /// The file with the newest reading of a power meter between the wall and the board.
    pub(crate) wall_meter: Option<PathBuf>,
}

/// Why an `agent.toml` cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}; hint: agent.example.toml shows its content", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The text is not TOML, or a value is not valid.
    #[error("{}:{line}: {message}", .path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// The problem and how to fix it.
        message: String,
    },
}

/// The file's contents. Every key but `name` and `state_dir` has a default.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigFile {
    name: Spanned<String>,
    state_dir: Spanned<PathBuf>,
    scratch: Option<PathBuf>,
    broker: Option<Spanned<String>>,
    coordinator: Option<Spanned<String>>,
    #[serde(default)]
    allow_plain: bool,
    #[serde(default = "default_heartbeat_ms")]
    heartbeat_ms: Spanned<u64>,
    #[serde(default = "default_window_chunks")]
    window_chunks: Spanned<u32>,
    #[serde(default = "default_live_kib_per_s")]
    live_kib_per_s: Spanned<u64>,
    #[serde(default = "default_spool_max_mib")]
    spool_max_mib: u64,
    #[serde(default = "default_assets_max_mib")]
    assets_max_mib: u64,
    #[serde(default = "default_deliver_first_ms")]
    deliver_first_ms: u64,
    #[serde(default = "default_min_free_mib")]
    min_free_mib: u64,
    #[serde(default = "default_abort_grace_ms")]
    abort_grace_ms: u64,
    state_socket: Option<PathBuf>,
    system_root: Option<PathBuf>,
    wall_meter: Option<PathBuf>,
}

fn default_heartbeat_ms() -> Spanned<u64> {
    Spanned::new(0..0, 1_000)
}
fn default_window_chunks() -> Spanned<u32> {
    Spanned::new(0..0, 384)
}
fn default_live_kib_per_s() -> Spanned<u64> {
    Spanned::new(0..0, 256)
}
const fn default_spool_max_mib() -> u64 {
    8 * 1024
}
const fn default_assets_max_mib() -> u64 {
    regatta_types::assets::DEFAULT_MAX_MIB
}
const fn default_deliver_first_ms() -> u64 {
    30_000
}
const fn default_min_free_mib() -> u64 {
    256
}
const fn default_abort_grace_ms() -> u64 {
    5_000
}

impl AgentConfig {
    /// Reads and checks a configuration file.
    ///
    /// # Errors
    /// [`ConfigError`] with file and line.
    pub(crate) fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = regular_file::read_text(path).map_err(|source| ConfigError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let base = path.parent().unwrap_or(Path::new(""));
        Self::from_toml(&text, base).map_err(|(span, message)| ConfigError::Wrong {
            path: path.to_owned(),
            line: line_of(&text, span.start),
            message,
        })
    }

    /// Checks a configuration text. Relative paths are relative to `base`, the file's directory.
    fn from_toml(text: &str, base: &Path) -> Result<Self, (Range<usize>, String)> {
        let file: ConfigFile =
            toml::from_str(text).map_err(|e| (e.span().unwrap_or(0..0), e.message().to_owned()))?;
        let name = file.name.get_ref().trim();
        if name.is_empty() || name.chars().count() > 64 || name.chars().any(char::is_control) {
            return Err((
                file.name.span(),
                "`name` must be 1 to 64 printable characters".to_owned(),
            ));
        }
        let broker = match &file.broker {
            Some(value) => Some(
                broker(value.get_ref(), file.allow_plain).map_err(|why| (value.span(), why.to_string()))?,
            ),
            None => None,
        };
        if let Some(value) = file
            .coordinator
            .as_ref()
            .filter(|value| !is_host(value.get_ref()))
        {
            return Err((
                value.span(),
                format!(
                    "`coordinator` must be a host name or address without scheme and port, not `{}`",
                    value.get_ref()
                ),
            ));
        }
        let in_range = |what: &str, value: u64, span, range: Range<u64>| {
            if range.contains(&value) {
                return Ok(());
            }
            Err((
                span,
                format!("`{what}` must be {} to {}", range.start, range.end - 1),
            ))
        };
        let heartbeat_ms = *file.heartbeat_ms.get_ref();
        in_range(
            "heartbeat_ms",
            heartbeat_ms,
            file.heartbeat_ms.span(),
            250..60_001,
        )?;
        let window_chunks = *file.window_chunks.get_ref();
        in_range(
            "window_chunks",
            u64::from(window_chunks),
            file.window_chunks.span(),
            1..1_025,
        )?;
        let live_kib_per_s = *file.live_kib_per_s.get_ref();
        in_range(
            "live_kib_per_s",
            live_kib_per_s,
            file.live_kib_per_s.span(),
            1..1_048_577,
        )?;
        if file.state_dir.get_ref().as_os_str().is_empty() {
            return Err((file.state_dir.span(), "`state_dir` is empty".to_owned()));
        }
        let place = |value: Option<PathBuf>, default: &str| {
            absolute(&value.map_or_else(|| default.into(), |value| base.join(value)))
        };
        Ok(Self {
            name: name.to_owned(),
            state_dir: absolute(&base.join(file.state_dir.get_ref())),
            scratch: file.scratch.map(|scratch| absolute(&base.join(scratch))),
            broker,
            coordinator: file.coordinator.map(Spanned::into_inner),
            heartbeat: Duration::from_millis(heartbeat_ms),
            window_chunks,
            live_bytes_per_second: live_kib_per_s.saturating_mul(1 << 10),
            spool_max_bytes: file.spool_max_mib.saturating_mul(1 << 20),
            assets_max_bytes: file.assets_max_mib.saturating_mul(1 << 20),
            deliver_first: Duration::from_millis(file.deliver_first_ms),
            min_free_bytes: file.min_free_mib.saturating_mul(1 << 20),
            abort_grace: Duration::from_millis(file.abort_grace_ms),
            state_socket: place(file.state_socket, regatta_device_state::client::SOCKET_PATH),
            system_root: place(file.system_root, "/"),
            wall_meter: file.wall_meter.map(|file| absolute(&base.join(file))),
        })
    }
}

/// Makes a path absolute, because run processes have another working directory. Only an empty path stays relative.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Why the broker's address is not accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidBroker {
    #[error("`broker` must be mqtts://HOST:PORT or mqtt://HOST:PORT, not `{0}`")]
    Form(String),
    #[error(
        "`broker` is on another machine ({0}), and plain MQTT lets anyone on the network read and forge logs; hint: enroll this \
         device and use mqtts://, or set `allow_plain = true` if you trust the network"
    )]
    Plain(String),
}

/// Parses the broker's address. Plain MQTT to another machine requires `allow_plain`.
fn broker(value: &str, allow_plain: bool) -> Result<BrokerAddress, InvalidBroker> {
    let broker = broker_address(value)?;
    if broker.tls || broker.is_loopback() || allow_plain {
        return Ok(broker);
    }
    Err(InvalidBroker::Plain(broker.host))
}

/// Parses `mqtts://HOST[:PORT]` or `mqtt://HOST[:PORT]`. An IPv6 address is written in brackets.
pub(crate) fn broker_address(text: &str) -> Result<BrokerAddress, InvalidBroker> {
    text.parse().map_err(|_| InvalidBroker::Form(text.to_owned()))
}

/// Returns whether a text can be the host of an address.
fn is_host(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
    !text.is_empty() && text.len() <= 255 && text.chars().all(allowed)
}

fn line_of(text: &str, offset: usize) -> usize {
    let before = text.get(..offset).unwrap_or(text);
    before.matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn error_of(text: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.toml");
        fs::write(&path, text).unwrap();
        let message = AgentConfig::load(&path).unwrap_err().to_string();
        message.replace(&format!("{}/", dir.path().display()), "")
    }

    #[test]
    fn the_example_is_a_configuration() {
        let config = AgentConfig::load(Path::new("agent.example.toml")).unwrap();
        assert_eq!(
            config.broker, None,
            "an installed agent takes the broker of its enrollment"
        );
        assert!(config.state_dir.is_absolute());
    }

    #[test]
    fn relative_paths_are_taken_from_the_files_own_directory() {
        let text = "name = 'a'\nstate_dir = 'state'\nscratch = '/data'\nbroker = 'mqtt://[::1]:1884'\n";
        let config = AgentConfig::from_toml(text, Path::new("/etc/regatta")).unwrap();
        assert_eq!(config.state_dir, Path::new("/etc/regatta/state"));
        assert_eq!(config.scratch.as_deref(), Some(Path::new("/data")));
        assert_eq!(
            config.broker,
            Some(BrokerAddress {
                host: "::1".to_owned(),
                port: 1884,
                tls: false
            })
        );
    }

    #[test]
    fn every_error_names_file_and_line() {
        let good = "name = 'a'\nstate_dir = 's'\nbroker = 'mqtt://localhost'\n";
        let complaints = [
            error_of("name = 'a'\nstate_dir = \n"),
            error_of("name = 'a'\nbroker = 'mqtts://localhost'\n"),
            error_of(&format!("{good}hartbeat_ms = 5\n")),
            error_of(&format!("{good}heartbeat_ms = 5\n")),
            error_of(&format!("{good}window_chunks = 0\n")),
            error_of("name = ''\nstate_dir = 's'\nbroker = 'mqtt://localhost'\n"),
            error_of("name = 'a'\nstate_dir = 's'\n\nbroker = 'localhost:1883'\n"),
            error_of("name = 'a'\nstate_dir = 's'\n\nbroker = 'mqtt://10.0.0.1:1883'\n"),
            error_of(&format!("{good}coordinator = 'https://lab:8885'\n")),
        ];
        insta::assert_snapshot!(complaints.join("\n"));
    }

    #[test]
    fn a_plain_broker_elsewhere_wants_consent() {
        let text = "name = 'a'\nstate_dir = 's'\nallow_plain = true\nbroker = 'mqtt://10.0.0.1'\n";
        let config = AgentConfig::from_toml(text, Path::new("")).unwrap();
        let broker = config.broker.unwrap();
        assert!(!broker.is_loopback());
        assert_eq!(broker.port, 1883);
        assert_eq!(broker_address("mqtts://10.0.0.1").unwrap().port, 8883);
    }
}
