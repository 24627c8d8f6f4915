//! `regatta.toml`: which broker, where it listens, where data lies.

use std::{net::SocketAddr, path::PathBuf};

use jiff::SignedDuration;
use serde::Deserialize;

use crate::link::{Address, AddressError};

/// The newest schema number of the file that this program reads.
const SCHEMA: u16 = 1;

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// Not TOML, or an unknown or missing key.
    #[error("not a valid configuration")]
    Toml(#[from] toml::de::Error),
    /// Written for a newer program.
    #[error("the file has schema {0}; this program reads up to {SCHEMA}: update it")]
    TooNew(u16),
    /// `broker` is neither `embedded` nor an address.
    #[error("`broker` is neither \"embedded\" nor an address")]
    Broker(#[source] AddressError),
    /// The embedded broker would take strangers.
    #[error(
        "`listen` is {0}, which other machines reach, and plain TCP knows no device from a stranger: \
         listen on 127.0.0.1, or allow it with `plain_tcp_beyond_loopback = true`"
    )]
    Exposed(SocketAddr),
}

/// Which broker carries the messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BrokerChoice {
    /// The coordinator starts its own.
    Embedded {
        /// Where it listens; port 0 takes a free one.
        listen: SocketAddr,
    },
    /// Any other MQTT 5 broker.
    External(Address),
}

/// The configuration, checked.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// The broker.
    pub(crate) broker: BrokerChoice,
    /// Data and models for accuracy, relative to the workspace.
    pub(crate) scratch: Option<PathBuf>,
    /// How long a device keeps a run after it has been recorded.
    pub(crate) keep_on_device: SignedDuration,
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
    plain_tcp_beyond_loopback: bool,
    #[serde(default)]
    scratch: Option<PathBuf>,
    #[serde(default = "a_day")]
    keep_on_device_hours: u32,
}

/// A workstation's disk may fail too: for a day the logs lie on both sides.
const fn a_day() -> u32 {
    24
}

fn embedded() -> String {
    "embedded".to_owned()
}

/// MQTT's own port, on this machine only.
fn default_listen() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 1883))
}

impl Config {
    /// Reads and checks the file's text.
    ///
    /// # Errors
    /// [`ConfigError`] naming what is wrong.
    pub(crate) fn from_toml(text: &str) -> Result<Self, ConfigError> {
        let file: File = toml::from_str(text)?;
        if file.schema > SCHEMA {
            return Err(ConfigError::TooNew(file.schema));
        }
        let broker = if file.broker == "embedded" {
            if !file.listen.ip().is_loopback() && !file.plain_tcp_beyond_loopback {
                return Err(ConfigError::Exposed(file.listen));
            }
            BrokerChoice::Embedded { listen: file.listen }
        } else {
            BrokerChoice::External(file.broker.parse().map_err(ConfigError::Broker)?)
        };
        Ok(Self {
            broker,
            scratch: file.scratch,
            keep_on_device: SignedDuration::from_hours(i64::from(file.keep_on_device_hours)),
        })
    }

    /// The text of a new workspace's file.
    pub(crate) fn template(listen: SocketAddr) -> String {
        format!(
            "# A Regatta workspace. `regatta serve` reads this file when it starts.\n\
             schema = {SCHEMA}\n\
             \n\
             # \"embedded\" starts a broker inside the coordinator; \"mqtt://host:port\" uses any MQTT 5 broker.\n\
             broker = \"embedded\"\n\
             \n\
             # Where the embedded broker listens.\n\
             listen = \"{listen}\"\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_workspaces_file_reads() {
        let listen = default_listen();
        let config = Config::from_toml(&Config::template(listen)).unwrap();
        assert_eq!(config.broker, BrokerChoice::Embedded { listen });
    }

    #[test]
    fn an_external_broker_is_configuration_alone() {
        let config = Config::from_toml("schema = 1\nbroker = \"mqtt://lab:1884\"").unwrap();
        let BrokerChoice::External(address) = config.broker else {
            panic!("not external")
        };
        assert_eq!(address.to_string(), "mqtt://lab:1884");
    }

    #[test]
    fn plain_tcp_stays_on_loopback_unless_allowed() {
        let text = "schema = 1\nlisten = \"0.0.0.0:1883\"";
        assert!(matches!(Config::from_toml(text), Err(ConfigError::Exposed(_))));
        assert!(Config::from_toml(&format!("{text}\nplain_tcp_beyond_loopback = true")).is_ok());
    }

    #[test]
    fn misspelt_keys_and_newer_files_are_refused() {
        assert!(matches!(
            Config::from_toml("schema = 1\nbrokr = \"x\""),
            Err(ConfigError::Toml(_))
        ));
        assert!(matches!(
            Config::from_toml("schema = 2"),
            Err(ConfigError::TooNew(2))
        ));
        assert!(matches!(
            Config::from_toml("schema = 1\nbroker = \"lab\""),
            Err(ConfigError::Broker(_))
        ));
    }
}
