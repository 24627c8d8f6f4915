//! The machines of `power run`: director and device, each this machine or another one over SSH.

use std::{path::PathBuf, rc::Rc};

use regatta_types::DeviceId;

use super::super::deploy::{Show, TerminalPrompt};
use crate::{
    deploy::ssh::{AccessOptions, Destination, SshConfig},
    exit::Failure,
    power::{Link, LinkError, Machine, Programs},
    store::{MeterSettings, Store},
};

/// Flags about the machines of a session.
#[derive(Debug, clap::Args)]
pub(super) struct MachineArgs {
    /// The device's login: user@host or user@host:port [default: that of its deployment, unless the device is this machine]
    #[arg(long, value_name = "USER@HOST")]
    ssh: Option<Destination>,
    /// The copy of mlcommons/power-dev on the device [default: the meter's --power-dev]
    #[arg(long, value_name = "DIR")]
    device_power_dev: Option<String>,
    /// The Python interpreter of the official client on the device
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    device_python: String,
    #[command(flatten)]
    logins: LoginArgs,
}

/// Flags about logins over SSH.
#[derive(Debug, clap::Args)]
pub(super) struct LoginArgs {
    /// Private key to log in with; can be repeated
    #[arg(long, value_name = "FILE")]
    identity: Vec<PathBuf>,
    /// Reads the password of the logins from the first line of standard input
    #[arg(long)]
    password_stdin: bool,
    /// Accepts an unknown host with this key, as `ssh-keygen -lf` prints it; can be repeated
    #[arg(long, value_name = "SHA256:...")]
    accept_host_key: Vec<String>,
}

/// Director and device.
pub(super) struct Machines {
    pub(super) director: Machine,
    pub(super) system: Machine,
    /// The address at which the device reaches the director.
    pub(super) address: String,
}

impl Machines {
    /// This machine alone, with Regatta's own programs. Their client only waits for the device's runs, so it needs no login there.
    pub(super) fn informative(meter: &MeterSettings) -> Result<Self, Failure> {
        if meter.director.is_some() {
            let sentence =
                "an informative session needs a meter of this machine, and this one has a director";
            return Err(Failure::misuse(sentence).hint("start it on the director, from a coordinator there"));
        }
        let here = Machine {
            link: None,
            python: meter.python.clone(),
            programs: Programs::Own,
        };
        Ok(Self {
            director: here.clone(),
            system: here,
            address: "127.0.0.1".to_owned(),
        })
    }

    /// Connects to the machines of a session over SSH, except this one.
    pub(super) fn reach(
        args: &MachineArgs,
        meter: &MeterSettings,
        device: &DeviceId,
        store: &Store,
    ) -> Result<Self, Failure> {
        let power_dev = meter.power_dev.clone().ok_or_else(|| {
            Failure::misuse("the meter has no copy of power-dev").hint(
                "name it with `regatta meter add --replace --power-dev`, or measure with `power run --informative`",
            )
        })?;
        let show = Show::new(false, true);
        let prompt = args.logins.prompt(&show)?;
        let connect = |to: &Destination| args.logins.connect(to, &prompt);
        let (director_link, host) = match &meter.director {
            None => (None, None),
            Some(login) => {
                let (link, host) = connect(&login.parse().map_err(Failure::usage)?)?;
                (Some(link), Some(host))
            }
        };
        let login = match (&args.ssh, store.login(device)?) {
            (Some(login), _) => Some(login.clone()),
            (None, Some(login)) if !is_here(store, device)? => Some(login.parse().map_err(Failure::usage)?),
            (None, _) => None,
        };
        let system_link = match &login {
            None => None,
            Some(login) => Some(connect(login)?.0),
        };
        let address = match (&meter.address, host, &system_link) {
            (Some(address), ..) => address.clone(),
            (None, Some(host), _) => host,
            (None, None, None) => "127.0.0.1".to_owned(),
            (None, None, Some(link)) => match link.local_address() {
                Some(address) => address.to_string(),
                None => {
                    let sentence =
                        "the device is behind a jump host: at which address does it reach this machine?";
                    let hint = "name the address with `regatta meter add --replace --address`";
                    return Err(Failure::misuse(sentence).hint(hint));
                }
            },
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
                    _ => args.device_python.clone(),
                },
                link: system_link,
                programs: Programs::Official(args.device_power_dev.clone().unwrap_or(power_dev)),
            },
            address,
        })
    }
}

impl LoginArgs {
    /// Answers what a login needs.
    pub(super) fn prompt<'a>(&'a self, show: &'a Show) -> Result<TerminalPrompt<'a>, Failure> {
        TerminalPrompt::new(self.password_stdin, &self.accept_host_key, show)
    }

    /// Connects to a machine. Returns the connection and the machine's address.
    pub(super) fn connect(
        &self,
        to: &Destination,
        prompt: &TerminalPrompt<'_>,
    ) -> Result<(Rc<Link>, String), Failure> {
        let options = AccessOptions {
            identities: self.identity.clone(),
            ..AccessOptions::default()
        };
        let access = SshConfig::of_user()?
            .access(to, &options)
            .map_err(Failure::usage)?;
        let link = Link::open(&access, prompt).map_err(link_failure)?;
        Ok((Rc::new(link), access.host))
    }
}

/// Whether a device is this machine.
fn is_here(store: &Store, device: &DeviceId) -> Result<bool, Failure> {
    let row = store.device(device)?;
    let facts = row.and_then(|row| row.reported_facts().ok());
    let own = crate::boot_id::of_this_machine();
    Ok(facts.is_some_and(|facts| facts.boot_id.is_some() && facts.boot_id == own))
}

fn link_failure(error: LinkError) -> Failure {
    let hint = match &error {
        LinkError::Ssh(error) => error.hint(),
        LinkError::Lost(_) => Some("check the connection, and run the same command again".to_owned()),
        LinkError::Files(..) => {
            Some("enable SFTP there: `Subsystem sftp internal-sftp` in /etc/ssh/sshd_config".to_owned())
        }
    };
    Failure::from(error).optional_hint(hint)
}
