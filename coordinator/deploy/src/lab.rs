//! The lab as boards reach it: address, ports and authority of the coordinator. This is decided before a board is changed, because a board
//! that cannot reach the coordinator must not be installed on.

use std::net::IpAddr;

use jiff::SignedDuration;
use regatta_types::{BrokerAddress, DeviceId};

use super::settings::Settings;
use regatta_lab_net::{
    enrollment::{self, NewToken, TokenError, TokenRequest},
    keys::{Keys, KeysError},
};
use regatta_lab_store::{
    Store,
    workspace::{BrokerChoice, Config, Workspace, is_known_only_here},
};

/// The lifetime of a deployment's token, which is used within seconds.
const TOKEN_LIFETIME: SignedDuration = SignedDuration::from_mins(15);

/// The reason why boards cannot be added to the lab.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// No coordinator is running.
    #[error("no coordinator serves this workspace, so that no board can enroll or connect")]
    Unserved,
    /// The coordinator listens on loopback only.
    #[error("the coordinator listens on this machine only (`{0}`), and a board elsewhere cannot reach it")]
    LoopbackOnly(&'static str),
    /// The address at which the board reaches this machine is unknown.
    #[error(
        "the board cannot reach this machine: `host` in regatta.toml is a loopback address, and the address of the SSH connection does not work either"
    )]
    NoAddress,
    /// The lab's keys cannot be read.
    #[error("the lab's keys cannot be read")]
    Keys(#[from] KeysError),
}

impl LabError {
    /// Returns the hint for the user.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Unserved => "start `regatta serve` first",
            Self::LoopbackOnly(_) => {
                "set `listen`, `enroll_listen`, `assets_listen` and `host` in regatta.toml, and start `regatta serve` again"
            }
            Self::NoAddress => "--coordinator HOST names the address that the board reaches it by",
            Self::Keys(error) => return error.remedy(),
        };
        Some(hint.to_owned())
    }
}

/// The lab's settings that boards need.
#[derive(Debug, Clone)]
pub struct Lab {
    /// SHA-256 of the authority's certificate. `None` in a lab without keys.
    pub authority: Option<[u8; 32]>,
    /// This machine's address in the workspace's configuration.
    host: String,
    broker: BrokerAddress,
    /// Whether the broker is on this machine. If so, its address is the one at which a board reaches this machine.
    broker_is_here: bool,
    enroll_port: u16,
    /// The first setting that limits listening to this machine.
    local: Option<&'static str>,
}

impl Lab {
    /// Reads the lab's settings from a workspace.
    ///
    /// # Errors
    /// Returns [`LabError::Keys`].
    pub fn of(workspace: &Workspace) -> Result<Self, LabError> {
        let config: &Config = workspace.config();
        let authority = if config.tls {
            Some(Keys::load(&workspace.keys())?.authority().fingerprint())
        } else {
            None
        };
        let broker = config.broker_for_devices(None);
        let (broker_is_here, broker_is_local) = match &config.broker {
            BrokerChoice::Embedded { listen } => (true, listen.ip().is_loopback()),
            BrokerChoice::External(address) => (address.is_loopback(), false),
        };
        Ok(Self {
            authority,
            host: config.host.clone(),
            broker,
            broker_is_here,
            enroll_port: config.enroll_listen.port(),
            local: [
                ("listen", broker_is_local),
                (
                    "enroll_listen",
                    config.tls && config.enroll_listen.ip().is_loopback(),
                ),
                (
                    "assets_listen",
                    config
                        .assets_listen
                        .is_some_and(|listen| listen.ip().is_loopback()),
                ),
            ]
            .into_iter()
            .find_map(|(setting, is_local)| is_local.then_some(setting)),
        })
    }

    /// Returns the address at which a board reaches the coordinator. This is the named one, or the workspace's own. If that is a loopback
    /// address, it is the link's local address.
    ///
    /// # Errors
    /// Returns [`LabError::NoAddress`] or [`LabError::LoopbackOnly`].
    pub fn host_for(&self, named: Option<&str>, link: Option<IpAddr>) -> Result<String, LabError> {
        let host = match (named, link) {
            (Some(named), _) => named.to_owned(),
            (None, _) if !is_known_only_here(&self.host) => self.host.clone(),
            (None, Some(address)) => address.to_canonical().to_string(),
            (None, None) => return Err(LabError::NoAddress),
        };
        match self.local {
            Some(setting) if !is_known_only_here(&host) => Err(LabError::LoopbackOnly(setting)),
            _ => Ok(host),
        }
    }

    /// Returns the settings for the board's `agent.toml`. Enrollments and runs name this machine by the workspace's address, so only a
    /// board that uses another address needs a setting. `enrolled` is the broker of an existing enrollment, because this machine may have
    /// moved since.
    pub fn settings(&self, name: &str, host: &str, enrolled: Option<&str>) -> Settings {
        let address = BrokerAddress {
            host: if self.broker_is_here {
                host.to_owned()
            } else {
                self.broker.host.clone()
            },
            ..self.broker.clone()
        };
        let broker = address.to_string();
        let named = enrolled.map_or_else(|| self.broker.to_string(), str::to_owned);
        let is_elsewhere = host != self.host || (self.broker_is_here && broker != named);
        Settings {
            name: name.to_owned(),
            broker: (self.authority.is_none() || broker != named).then_some(broker),
            coordinator: (self.authority.is_some() && is_elsewhere).then(|| host.to_owned()),
            allow_plain: self.authority.is_none() && !address.is_loopback(),
        }
    }

    /// Issues a token for a board, and deletes the unused tokens for its name.
    ///
    /// # Errors
    /// Returns [`TokenError`].
    pub fn token(
        &self,
        store: &Store,
        name: &str,
        host: &str,
        returning: Option<&DeviceId>,
        lifetime: Option<SignedDuration>,
    ) -> Result<NewToken, TokenError> {
        store.enrollment_tokens().delete_unused(name)?;
        enrollment::issue(
            store,
            &TokenRequest {
                name,
                place: (host.to_owned(), self.enroll_port),
                authority: self.authority.unwrap_or_default(),
                lifetime: lifetime.unwrap_or(TOKEN_LIFETIME),
                returning,
            },
        )
    }
}
