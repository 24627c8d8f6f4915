//! `regatta.toml`: the broker, addresses and protection, and data directories.

use std::{
    net::SocketAddr,
    num::{NonZeroU16, NonZeroU32},
    path::{Path, PathBuf},
};

use jiff::SignedDuration;
use regatta_types::{BrokerAddress, BrokerAddressError};
use serde::Deserialize;

use crate::database::{AddressError, ServerAddress};

use super::host_problem::{HostProblem, is_known_only_here};

/// The newest schema number that this program reads.
const SCHEMA: u16 = 1;

/// An error in a configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The text is not TOML, or has an unknown or missing key.
    #[error("not a valid configuration")]
    Toml(#[from] toml::de::Error),
    /// The file is written for a newer program.
    #[error("the file has schema {0}; this program reads up to {SCHEMA}: update it")]
    TooNew(u16),
    /// `broker` is neither `embedded` nor an address.
    #[error("`broker` is neither \"embedded\" nor an address")]
    Broker(#[source] BrokerAddressError),
    /// The embedded broker would accept anyone on the network.
    #[error(
        "`listen` is {0}, which other machines reach, and plain TCP cannot identify devices: \
         listen on 127.0.0.1, or allow it with `plain_tcp_beyond_loopback = true`"
    )]
    Exposed(SocketAddr),
    /// The coordinator would communicate unencrypted.
    #[error(
        "`broker` is {0}, on another machine and in plain TCP, where everybody on the network can read and forge: \
         use mqtts://, or allow it with `plain_tcp_beyond_loopback = true`"
    )]
    InTheOpen(BrokerAddress),
    /// TLS is requested without keys.
    #[error("`broker` is {0}: TLS needs `tls = true` and the keys that `regatta init` creates")]
    WithoutKeys(BrokerAddress),
    /// `dashboard_listen` is neither `off` nor an address with its port.
    #[error(
        "`dashboard_listen` is `{0}`: write an address of this machine with its port, such as \"{DEFAULT_PAGE}\", or \"off\""
    )]
    Page(String),
    /// The live page would be served to others unencrypted.
    #[error(
        "`dashboard_listen` is {0}, which other machines reach, and this workspace has no TLS for a login: \
         `regatta init` creates one with keys, or listen on 127.0.0.1 and use `ssh -L {port}:127.0.0.1:{port} HOST`", port = .0.port()
    )]
    PageExposed(SocketAddr),
    /// A login is requested without TLS.
    #[error("`dashboard_login` needs `tls = true` and the keys that `regatta init` creates")]
    LoginWithoutKeys,
    /// The live page has no host name.
    #[error(
        "`dashboard_listen` is {0}, and `host` is {1}, which other machines cannot reach: \
         set `host` to the name or address of this machine, as browsers use it"
    )]
    PageWithoutName(SocketAddr, String),
    /// The host cannot be part of an address.
    #[error("`host` is `{0}`: write the name or address of this machine, without scheme and port")]
    Host(String),
    /// `database` does not name a database.
    #[error(transparent)]
    Database(#[from] AddressError),
}

/// The broker for the messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrokerChoice {
    /// The coordinator starts the embedded broker.
    Embedded {
        /// The address to listen on. Port 0 selects a free port.
        listen: SocketAddr,
    },
    /// Any other MQTT 5 broker.
    External(BrokerAddress),
}

/// The configured address of the live page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageChoice {
    /// Nowhere.
    Off,
    /// [`DEFAULT_PAGE`], or another port when a program has that one.
    Default,
    /// This address. Port 0 selects a free port.
    At(SocketAddr),
}

/// The default address of the live page: next to the asset server's port, on loopback.
pub const DEFAULT_PAGE: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8886);

/// The validated configuration.
#[derive(Debug, Clone)]
pub struct Config {
    pub broker: BrokerChoice,
    /// Whether the lab has keys: devices enroll, connections use TLS, commands are signed.
    pub tls: bool,
    /// The address of the enrollment listener.
    pub enroll_listen: SocketAddr,
    /// The address of the asset server. `None` disables it.
    pub assets_listen: Option<SocketAddr>,
    /// The configured address of the live page.
    pub page: PageChoice,
    /// Whether readers of the live page log in, over TLS. They always do where other machines reach it.
    pub page_login: bool,
    /// The name or address of this machine, as devices reach it.
    pub host: String,
    /// The directory for data and models, relative to the workspace.
    pub scratch: Option<PathBuf>,
    /// The time for which a device keeps a run after it is recorded.
    pub keep_on_device: SignedDuration,
    /// The maximum size of a run in bytes.
    pub max_run_bytes: u64,
    /// Free space that logs must leave on the workspace's disk, in bytes. `None` means a share of the disk.
    pub min_free_bytes: Option<u64>,
    /// The number of device-caused failures in a row that quarantines a device.
    pub quarantine_after: u32,
    /// The number of devices that may be connected to the embedded broker at once.
    pub max_devices: usize,
    /// The PostgreSQL database of the store. `None` for SQLite in the workspace.
    pub database: Option<ServerAddress>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: u16,
    #[serde(default = "embedded")]
    broker: String,
    #[serde(default = "default_listen")]
    listen: SocketAddr,
    #[serde(default)]
    tls: bool,
    #[serde(default = "default_enroll_listen")]
    enroll_listen: SocketAddr,
    #[serde(default)]
    assets_listen: Option<SocketAddr>,
    #[serde(default)]
    dashboard_listen: Option<String>,
    #[serde(default)]
    dashboard_login: bool,
    #[serde(default = "default_host")]
    host: String,
    #[serde(default)]
    plain_tcp_beyond_loopback: bool,
    #[serde(default)]
    scratch: Option<PathBuf>,
    #[serde(default = "a_day")]
    keep_on_device_hours: u32,
    #[serde(default = "default_max_run_mib")]
    max_run_mib: u32,
    #[serde(default)]
    min_free_mib: Option<u32>,
    #[serde(default = "three")]
    quarantine_after: NonZeroU32,
    #[serde(default = "default_max_devices")]
    max_devices: NonZeroU16,
    #[serde(default)]
    database: Option<String>,
    #[serde(default)]
    database_ca: Option<PathBuf>,
}

/// Returns the default number of connected devices: the largest fleet that was measured (docs/fleet.md), for which the usual limits of open
/// files suffice.
const fn default_max_devices() -> NonZeroU16 {
    NonZeroU16::MIN.saturating_add(4_095)
}

/// Returns the default number of failures: one may be chance, and a second its consequence.
const fn three() -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(2)
}

/// Returns the default size limit: the largest accuracy logs of a round have a few GiB.
const fn default_max_run_mib() -> u32 {
    16 * 1024
}

/// Returns the default time: both sides keep the logs for a day, because a workstation's disk may fail too.
const fn a_day() -> u32 {
    24
}

fn embedded() -> String {
    "embedded".to_owned()
}

/// Returns the default broker address: MQTT's own port, on loopback.
fn default_listen() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 1883))
}

/// Returns the default enrollment address: next to the port of MQTT over TLS, on loopback.
fn default_enroll_listen() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 8884))
}

fn default_host() -> String {
    "127.0.0.1".to_owned()
}

/// The settings of a new workspace with keys.
#[derive(Debug)]
pub struct NewConfig {
    /// An external broker. `None` for the embedded one.
    pub external: Option<BrokerAddress>,
    /// The address of the embedded broker.
    pub listen: SocketAddr,
    /// The address of the enrollment listener.
    pub enroll_listen: SocketAddr,
    /// The address of the asset server.
    pub assets_listen: SocketAddr,
    /// The name or address of this machine, as devices reach it.
    pub host: String,
}

/// Returns the free space to keep on a disk of `total` bytes: the configured one, or a twentieth of the disk, up to 1 GiB.
pub fn kept_free_bytes(configured: Option<u64>, total: u64) -> u64 {
    const MAX_DEFAULT: u64 = 1 << 30;
    configured.unwrap_or_else(|| (total / 20).min(MAX_DEFAULT))
}

impl Config {
    /// Parses and validates the file's text.
    ///
    /// # Errors
    /// Returns `ConfigError`.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        let file: File = toml::from_str(text)?;
        if file.schema > SCHEMA {
            return Err(ConfigError::TooNew(file.schema));
        }
        let broker = if file.broker == "embedded" {
            if !file.tls && !file.listen.ip().is_loopback() && !file.plain_tcp_beyond_loopback {
                return Err(ConfigError::Exposed(file.listen));
            }
            BrokerChoice::Embedded { listen: file.listen }
        } else {
            let address: BrokerAddress = file.broker.parse().map_err(ConfigError::Broker)?;
            if address.tls && !file.tls {
                return Err(ConfigError::WithoutKeys(address));
            }
            if !address.tls && !address.is_loopback() && !file.plain_tcp_beyond_loopback {
                return Err(ConfigError::InTheOpen(address));
            }
            BrokerChoice::External(address)
        };
        if !is_host(&file.host) {
            return Err(ConfigError::Host(file.host));
        }
        let database = file
            .database
            .map(|database| ServerAddress::new(&database, file.database_ca))
            .transpose()?;
        let page = page(file.dashboard_listen)?;
        let page_login = page_login(page, &file.host, file.tls, file.dashboard_login)?;
        Ok(Self {
            broker,
            tls: file.tls,
            enroll_listen: file.enroll_listen,
            assets_listen: file.assets_listen.filter(|_| file.tls),
            page,
            page_login,
            host: file.host,
            scratch: file.scratch,
            keep_on_device: SignedDuration::from_hours(i64::from(file.keep_on_device_hours)),
            max_run_bytes: u64::from(file.max_run_mib) << 20,
            min_free_bytes: file.min_free_mib.map(|mib| u64::from(mib) << 20),
            quarantine_after: file.quarantine_after.get(),
            max_devices: usize::from(file.max_devices.get()),
            database,
        })
    }

    /// Returns the text of a configuration with another database: a PostgreSQL one with its authority, or the workspace's own.
    pub fn with_database(text: &str, address: Option<&str>, ca: Option<&Path>) -> String {
        let is_other = |line: &&str| {
            let key = line.split('=').next().unwrap_or_default().trim();
            key != "database" && key != "database_ca"
        };
        let mut lines: Vec<String> = text.lines().filter(is_other).map(str::to_owned).collect();
        // Strings of JSON are strings of TOML.
        if let Some(address) = address {
            lines.push(format!("database = {}", serde_json::json!(address)));
        }
        if let Some(ca) = ca {
            lines.push(format!(
                "database_ca = {}",
                serde_json::json!(ca.to_string_lossy())
            ));
        }
        lines.join("\n") + "\n"
    }

    /// Returns the text of a new workspace's file.
    pub fn template(new: &NewConfig) -> String {
        let NewConfig {
            external,
            listen,
            enroll_listen,
            assets_listen,
            host,
        } = new;
        let broker = external
            .as_ref()
            .map_or_else(|| "embedded".to_owned(), BrokerAddress::to_string);
        format!(
            "# A Regatta workspace. `regatta serve` reads this file when it starts.\n\
             schema = {SCHEMA}\n\
             \n\
             # \"embedded\" starts a broker inside the coordinator; \"mqtts://host:port\" uses any MQTT 5 broker.\n\
             broker = \"{broker}\"\n\
             \n\
             # Where the embedded broker listens.\n\
             listen = \"{listen}\"\n\
             \n\
             # TLS 1.3 with the keys in keys/: only devices that `regatta device add` has let in are served.\n\
             tls = true\n\
             \n\
             # Where devices enroll, and the name or address of this machine as they reach it.\n\
             enroll_listen = \"{enroll_listen}\"\n\
             host = \"{host}\"\n\
             \n\
             # Where enrolled devices get models and data (`regatta asset`), over HTTPS.\n\
             assets_listen = \"{assets_listen}\"\n\
             \n\
             # The live page of the lab, for browsers on this machine; \"off\" for none. At another address readers log in.\n\
             # dashboard_listen = \"{DEFAULT_PAGE}\"\n"
        )
    }

    /// Returns why boards cannot reach this machine by its host. `None` when they can, as far as this machine can tell, and in a lab that
    /// listens on this machine only.
    pub fn host_problem(&self) -> Option<HostProblem> {
        if self.enroll_listen.ip().is_loopback() {
            return None;
        }
        HostProblem::of(&self.host)
    }

    /// Returns the asset server as devices reach it, `host:port`. `None` when assets are not served.
    pub fn assets_for_devices(&self) -> Option<String> {
        let port = self.assets_listen?.port();
        Some(if self.host.contains(':') {
            format!("[{}]:{port}", self.host)
        } else {
            format!("{}:{port}", self.host)
        })
    }

    /// Returns the broker as devices reach it. `embedded` is the address of the running embedded broker.
    pub fn broker_for_devices(&self, embedded: Option<SocketAddr>) -> BrokerAddress {
        match (&self.broker, embedded) {
            (BrokerChoice::External(address), _) if !address.is_loopback() => address.clone(),
            (BrokerChoice::External(address), _) => BrokerAddress {
                host: self.host.clone(),
                ..address.clone()
            },
            (BrokerChoice::Embedded { listen }, actual) => BrokerAddress {
                host: self.host.clone(),
                port: actual.unwrap_or(*listen).port(),
                tls: self.tls,
            },
        }
    }
}

/// Reads `dashboard_listen`.
fn page(listen: Option<String>) -> Result<PageChoice, ConfigError> {
    let Some(listen) = listen else {
        return Ok(PageChoice::Default);
    };
    if listen == "off" {
        return Ok(PageChoice::Off);
    }
    match listen.parse::<SocketAddr>() {
        Err(_) => Err(ConfigError::Page(listen)),
        Ok(address) => Ok(PageChoice::At(address)),
    }
}

/// Returns whether readers of the live page log in, if that is possible.
fn page_login(page: PageChoice, host: &str, has_tls: bool, is_requested: bool) -> Result<bool, ConfigError> {
    let exposed = match page {
        PageChoice::At(address) if !address.ip().is_loopback() => Some(address),
        _ => None,
    };
    match exposed {
        Some(address) if !has_tls => Err(ConfigError::PageExposed(address)),
        None if is_requested && !has_tls => Err(ConfigError::LoginWithoutKeys),
        Some(address) if address.ip().is_unspecified() && is_known_only_here(host) => {
            Err(ConfigError::PageWithoutName(address, host.to_owned()))
        }
        exposed => Ok(is_requested || exposed.is_some()),
    }
}

/// Returns whether a text can be the host in an address.
pub fn is_host(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let is_name = !text.is_empty() && text.len() <= 255 && text.chars().all(allowed);
    is_name || text.parse::<std::net::Ipv6Addr>().is_ok()
}

#[cfg(test)]
mod tests;
