//! How boards reach the coordinator: which address, which ports, by which authority it is known. Decided before a board is
//! touched, because a board that cannot reach it gains nothing from an installation.

use std::net::IpAddr;

use jiff::SignedDuration;
use regatta_types::DeviceId;

use super::settings::Settings;
use crate::{
    broker_address::BrokerAddress,
    enrolment::{self, NewToken, TokenError, TokenRequest},
    keys::{Keys, KeysError},
    store::Store,
    workspace::{BrokerChoice, Config, Workspace},
};

/// Time that a deployment's token can be used: it is used within seconds.
const TOKEN_LIFETIME: SignedDuration = SignedDuration::from_mins(15);

/// A lab that boards cannot be brought into.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LabError {
    /// Nobody would answer.
    #[error("no coordinator serves this workspace, so that no board can be enrolled or heard")]
    Unserved,
    /// It listens to itself only.
    #[error("the coordinator listens on this machine only (`{0}`), and a board elsewhere cannot reach it")]
    LoopbackOnly(&'static str),
    /// Nobody said how the board reaches us.
    #[error(
        "the board reaches this machine neither by `host` of regatta.toml, a loopback address, nor by the link's own address"
    )]
    NoAddress,
    /// The keys do not read.
    #[error("the lab's keys cannot be read")]
    Keys(#[from] KeysError),
}

impl LabError {
    /// What the user can do about it.
    pub(crate) const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Unserved => Some("start `regatta serve` first"),
            Self::LoopbackOnly(_) => Some(
                "set `listen`, `enrol_listen`, `assets_listen` and `host` in regatta.toml, and start `regatta serve` again",
            ),
            Self::NoAddress => Some("--coordinator HOST names the address that the board reaches it by"),
            Self::Keys(_) => None,
        }
    }
}

/// What boards need to know of the lab.
#[derive(Debug, Clone)]
pub(crate) struct Lab {
    /// SHA-256 of the authority; `None` in a lab without keys.
    pub(crate) authority: Option<[u8; 32]>,
    /// This machine as the workspace calls it.
    host: String,
    broker: BrokerAddress,
    /// Whether the broker is on this machine, so that it moves with the address by which a board reaches it.
    broker_is_here: bool,
    enrol_port: u16,
    /// The first setting by which only this machine itself is listened to.
    local: Option<&'static str>,
}

impl Lab {
    /// Reads a workspace.
    ///
    /// # Errors
    /// [`LabError::Keys`].
    pub(crate) fn of(workspace: &Workspace) -> Result<Self, LabError> {
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
            enrol_port: config.enrol_listen.port(),
            local: [
                ("listen", broker_is_local),
                (
                    "enrol_listen",
                    config.tls && config.enrol_listen.ip().is_loopback(),
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

    /// The address by which a board reaches the coordinator: the one that the user names, else the workspace's own, else, where
    /// that is a loopback address, the one that the link comes from.
    ///
    /// # Errors
    /// [`LabError::NoAddress`], [`LabError::LoopbackOnly`].
    pub(crate) fn host_for(&self, named: Option<&str>, link: Option<IpAddr>) -> Result<String, LabError> {
        let host = match (named, link) {
            (Some(named), _) => named.to_owned(),
            (None, _) if !is_loopback(&self.host) => self.host.clone(),
            (None, Some(address)) => address.to_canonical().to_string(),
            (None, None) => return Err(LabError::NoAddress),
        };
        match self.local {
            Some(setting) if !is_loopback(&host) => Err(LabError::LoopbackOnly(setting)),
            _ => Ok(host),
        }
    }

    /// What is to stand in the board's `agent.toml`. Enrolments and runs name this machine by the workspace's own address; only a
    /// board that reaches it by another is told so. `enrolled` is the broker that the enrolment of a board names which has one
    /// already: this machine may have moved since.
    pub(crate) fn settings(&self, name: &str, host: &str, enrolled: Option<&str>) -> Settings {
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

    /// A token for a board, in place of those for its name that nobody has used.
    ///
    /// # Errors
    /// [`TokenError`].
    pub(crate) fn token(
        &self,
        store: &Store,
        name: &str,
        host: &str,
        returning: Option<&DeviceId>,
        lifetime: Option<SignedDuration>,
    ) -> Result<NewToken, TokenError> {
        store.forget_unused_tokens(name)?;
        enrolment::issue(
            store,
            &TokenRequest {
                name,
                place: (host.to_owned(), self.enrol_port),
                authority: self.authority.unwrap_or_default(),
                lifetime: lifetime.unwrap_or(TOKEN_LIFETIME),
                returning,
            },
        )
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
