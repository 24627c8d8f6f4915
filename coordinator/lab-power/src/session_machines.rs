//! The machines of a session: director and device, each this machine or another one over SSH.

use std::{io, rc::Rc};

use regatta_ssh::{AccessOptions, Destination, DestinationError, Prompt, Question, Secret, SshConfig};
use regatta_types::{
    DeviceId,
    documents::{EndCause, MeterSettings},
};

use super::machine::{Link, LinkError, Machine, Programs};
use regatta_lab_store::{Store, StoreError, boot_id};

/// The address of a director that only its own machine reaches.
const LOOPBACK: &str = "127.0.0.1";
/// The Python interpreter of a device, unless another one is named.
pub const DEVICE_PYTHON: &str = "python3";

/// The machines of a session that cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum MachinesError {
    /// The meter has no official programs.
    #[error("the meter has no copy of power-dev")]
    NoPowerDev,
    /// Regatta's own programs only use a meter of this machine.
    #[error("an informative session needs a meter of this machine, and this one has a director")]
    MeterElsewhere,
    /// The device does not see this machine's address.
    #[error("the device is behind a jump host: at which address does it reach this machine?")]
    JumpHost,
    /// A login cannot be parsed, or its jump hosts cannot.
    #[error(transparent)]
    Destination(#[from] DestinationError),
    /// The user's SSH configuration cannot be read.
    #[error("the SSH configuration cannot be read")]
    SshConfig(#[source] io::Error),
    /// A machine cannot be reached.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl MachinesError {
    /// Returns whose failure it is.
    pub const fn end_cause(&self) -> EndCause {
        match self {
            Self::NoPowerDev
            | Self::MeterElsewhere
            | Self::JumpHost
            | Self::Destination(_)
            | Self::SshConfig(_) => EndCause::Precondition,
            Self::Link(_) | Self::Store(_) => EndCause::Infrastructure,
        }
    }

    /// Returns the remedy, if one is known. Those of failed logins are the command line's options.
    pub const fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::NoPowerDev => {
                "name it with `regatta meter add --replace --power-dev`, or measure with `power run --informative`"
            }
            Self::MeterElsewhere => "start it on the director, from a coordinator there",
            Self::JumpHost => "name the address with `regatta meter add --replace --address`",
            _ => return None,
        })
    }
}

/// How logins over SSH are made.
pub struct Logins<'a> {
    pub options: AccessOptions,
    /// Answers the prompts of a login.
    pub prompt: &'a dyn Prompt,
}

impl Logins<'static> {
    /// Returns logins with the user's keys and known hosts, where nobody can answer a question.
    pub fn without_user() -> Self {
        Self {
            options: AccessOptions::default(),
            prompt: &NoUser,
        }
    }
}

impl Logins<'_> {
    /// Connects to a machine. Returns the connection and the machine's address.
    ///
    /// # Errors
    /// [`MachinesError`]
    pub fn connect(&self, to: &Destination) -> Result<(Rc<Link>, String), MachinesError> {
        let config = SshConfig::of_user().map_err(MachinesError::SshConfig)?;
        let access = config.access(to, &self.options)?;
        let link = Link::open(&access, self.prompt)?;
        Ok((Rc::new(link), access.host))
    }

    /// Connects to a device by this login, or by that of its deployment. `None` when it is this machine.
    ///
    /// # Errors
    /// [`MachinesError`]
    pub fn connect_device(
        &self,
        login: Option<&Destination>,
        device: &DeviceId,
        store: &Store,
    ) -> Result<Option<Rc<Link>>, MachinesError> {
        let login = match (login, store.devices().login(device)?) {
            (Some(login), _) => login.clone(),
            (None, Some(login)) if !is_here(store, device)? => login.parse()?,
            (None, _) => return Ok(None),
        };
        Ok(Some(self.connect(&login)?.0))
    }
}

/// What the device's part of a session uses.
#[derive(Debug, Clone)]
pub struct DeviceAccess {
    /// The login, instead of that of the deployment.
    pub login: Option<Destination>,
    /// The copy of power-dev, instead of the meter's.
    pub power_dev: Option<String>,
    /// The Python interpreter of the official client.
    pub python: String,
}

/// Director and device.
pub struct SessionMachines {
    /// The machine of server and meter.
    pub director: Machine,
    /// The machine that is measured.
    pub system: Machine,
    /// The address at which the device reaches the director.
    pub address: String,
}

impl SessionMachines {
    /// This machine alone, with Regatta's own programs. Their client only waits for the device's runs, so it needs no login there.
    ///
    /// # Errors
    /// [`MachinesError::MeterElsewhere`]
    pub fn informative(meter: &MeterSettings) -> Result<Self, MachinesError> {
        if meter.director.is_some() {
            return Err(MachinesError::MeterElsewhere);
        }
        let here = Machine {
            link: None,
            python: meter.python.clone(),
            programs: Programs::Own,
        };
        Ok(Self {
            director: here.clone(),
            system: here,
            address: LOOPBACK.to_owned(),
        })
    }

    /// Connects to the machines of a session with the official programs, except this one.
    ///
    /// # Errors
    /// [`MachinesError`]
    pub fn connect(
        access: &DeviceAccess,
        logins: &Logins<'_>,
        meter: &MeterSettings,
        device: &DeviceId,
        store: &Store,
    ) -> Result<Self, MachinesError> {
        let power_dev = meter.power_dev.clone().ok_or(MachinesError::NoPowerDev)?;
        let (director_link, host) = match &meter.director {
            None => (None, None),
            Some(login) => {
                let (link, host) = logins.connect(&login.parse()?)?;
                (Some(link), Some(host))
            }
        };
        let system_link = logins.connect_device(access.login.as_ref(), device, store)?;
        let address = match (&meter.address, host, &system_link) {
            (Some(address), ..) => address.clone(),
            (None, Some(host), _) => host,
            (None, None, None) => LOOPBACK.to_owned(),
            (None, None, Some(link)) => link.local_address().ok_or(MachinesError::JumpHost)?.to_string(),
        };
        Ok(Self {
            director: Machine {
                link: director_link,
                python: meter.python.clone(),
                programs: Programs::Official(power_dev.clone()),
            },
            system: Machine {
                python: match &system_link {
                    None if meter.director.is_none() => meter.python.clone(),
                    _ => access.python.clone(),
                },
                link: system_link,
                programs: Programs::Official(access.power_dev.clone().unwrap_or(power_dev)),
            },
            address,
        })
    }
}

/// Whether a device is this machine.
fn is_here(store: &Store, device: &DeviceId) -> Result<bool, StoreError> {
    let row = store.devices().get(device)?;
    let facts = row.and_then(|row| row.reported_facts().ok());
    let own = boot_id::of_this_machine();
    Ok(facts.is_some_and(|facts| facts.boot_id.is_some() && facts.boot_id == own))
}

/// A prompt without a user: nobody enters a password or accepts a host key.
struct NoUser;

impl Prompt for NoUser {
    fn secret(&self, _question: &Question<'_>, _again: bool) -> Option<Secret> {
        None
    }

    fn accepts(&self, _host: &str, _kind: &str, _fingerprint: &str) -> bool {
        false
    }
}
