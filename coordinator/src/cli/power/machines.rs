//! The machines of `power run`: director and device, each this machine or another one over SSH.

use std::{path::PathBuf, rc::Rc};

use regatta_config::round::PowerRules;
use regatta_ssh::{AccessOptions, Destination, SshConfig};
use regatta_types::DeviceId;

use super::super::deploy::{Show, TerminalPrompt};
use crate::{cli::ssh_hint::ssh_hint, exit::Failure};
use regatta_lab_power::{Link, LinkError, Machine, PreflightLine, Programs, client_fitness};
use regatta_lab_store::{MeterSettings, Store};

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
    /// Read the password of the logins from the first line of standard input
    #[arg(long)]
    password_stdin: bool,
    /// Accepts an unknown host with this key, as `ssh-keygen -lf` prints it; can be repeated
    #[arg(long, value_name = "SHA256:...")]
    accept_host_key: Vec<String>,
}

/// Flags of `device doctor` about the official power client.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ClientFitnessArgs {
    /// Also checks whether the official power client can run on the device, from this copy of mlcommons/power-dev there
    #[arg(long, value_name = "DIR", requires = "ntp")]
    power_dev: Option<String>,
    /// The NTP server of power sessions
    #[arg(long, value_name = "HOST", requires = "power_dev")]
    ntp: Option<String>,
    /// The device's login: user@host or user@host:port [default: that of its deployment, unless the device is this machine]
    #[arg(long, value_name = "USER@HOST", requires = "power_dev")]
    ssh: Option<Destination>,
    /// The Python interpreter of the official client
    #[arg(
        long,
        value_name = "PROGRAM",
        default_value = "python3",
        requires = "power_dev"
    )]
    python: String,
    #[command(flatten)]
    logins: LoginArgs,
}

impl ClientFitnessArgs {
    /// Whether the flags request the check.
    pub(in crate::cli) const fn is_requested(&self) -> bool {
        self.power_dev.is_some()
    }

    /// Checks a device, if the flags request it.
    pub(in crate::cli) fn check(
        &self,
        device: &DeviceId,
        rules: Option<&PowerRules>,
        store: &Store,
    ) -> Result<Vec<PreflightLine>, Failure> {
        let Some(((copy, ntp), rules)) = self.power_dev.as_ref().zip(self.ntp.as_ref()).zip(rules) else {
            return Ok(Vec::new());
        };
        let show = Show::new(false, true);
        let prompt = self.logins.prompt(&show)?;
        let machine = Machine {
            link: system_link(self.ssh.as_ref(), &self.logins, &prompt, device, store)?,
            python: self.python.clone(),
            programs: Programs::Official(copy.clone()),
        };
        Ok(client_fitness(&machine, ntp, rules))
    }
}

/// Connects to a device by its login, or that of its deployment. `None` when it is this machine.
fn system_link(
    ssh: Option<&Destination>,
    logins: &LoginArgs,
    prompt: &TerminalPrompt<'_>,
    device: &DeviceId,
    store: &Store,
) -> Result<Option<Rc<Link>>, Failure> {
    let login = match (ssh, store.login(device)?) {
        (Some(login), _) => Some(login.clone()),
        (None, Some(login)) if !is_here(store, device)? => Some(login.parse().map_err(Failure::usage)?),
        (None, _) => None,
    };
    Ok(match &login {
        None => None,
        Some(login) => Some(logins.connect(login, prompt)?.0),
    })
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
        let system_link = system_link(args.ssh.as_ref(), &args.logins, &prompt, device, store)?;
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
    let own = regatta_lab_store::boot_id::of_this_machine();
    Ok(facts.is_some_and(|facts| facts.boot_id.is_some() && facts.boot_id == own))
}

fn link_failure(error: LinkError) -> Failure {
    let hint = match &error {
        LinkError::Ssh(error) => ssh_hint(error),
        LinkError::Lost(_) => Some("check the connection, and run the same command again".to_owned()),
        LinkError::Files(..) => {
            Some("enable SFTP there: `Subsystem sftp internal-sftp` in /etc/ssh/sshd_config".to_owned())
        }
    };
    Failure::from(error).optional_hint(hint)
}
