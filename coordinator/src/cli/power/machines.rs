//! The machines of `power run`: director and device, each this machine or another one over SSH.

use std::path::PathBuf;

use regatta_catalogue::round::PowerRules;
use regatta_ssh::{AccessOptions, Destination};
use regatta_types::{DeviceId, documents::MeterSettings};

use super::super::deploy::{Show, TerminalPrompt};
use crate::{cli::ssh_hint::ssh_hint, exit::Failure};
use regatta_lab_power::{
    DEVICE_PYTHON, DeviceAccess, LinkError, Logins, Machine, MachinesError, PreflightLine, Programs,
    SessionMachines, client_fitness,
};
use regatta_lab_store::Store;

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
    #[arg(long, value_name = "PROGRAM", default_value = DEVICE_PYTHON)]
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
    /// Accept an unknown host with this key, as `ssh-keygen -lf` prints it; can be repeated
    #[arg(long, value_name = "SHA256:...")]
    accept_host_key: Vec<String>,
}

/// Flags of `device doctor` about the official power client.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ClientFitnessArgs {
    /// Also check whether the official power client can run on the device, from this copy of mlcommons/power-dev there
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
            link: self
                .logins
                .logins(&prompt)
                .connect_device(self.ssh.as_ref(), device, store)
                .map_err(machines_failure)?,
            python: self.python.clone(),
            programs: Programs::Official(copy.clone()),
        };
        Ok(client_fitness(&machine, ntp, rules))
    }
}

impl MachineArgs {
    /// Connects to the machines of a session with the official programs.
    pub(super) fn connect(
        &self,
        meter: &MeterSettings,
        device: &DeviceId,
        store: &Store,
    ) -> Result<SessionMachines, Failure> {
        let show = Show::new(false, true);
        let prompt = self.logins.prompt(&show)?;
        let access = DeviceAccess {
            login: self.ssh.clone(),
            power_dev: self.device_power_dev.clone(),
            python: self.device_python.clone(),
        };
        let logins = self.logins.logins(&prompt);
        SessionMachines::connect(&access, &logins, meter, device, store).map_err(machines_failure)
    }
}

impl LoginArgs {
    /// Answers the prompts of a login.
    pub(super) fn prompt<'a>(&'a self, show: &'a Show) -> Result<TerminalPrompt<'a>, Failure> {
        TerminalPrompt::new(self.password_stdin, &self.accept_host_key, show)
    }

    /// Returns how logins are made.
    pub(super) fn logins<'a>(&self, prompt: &'a TerminalPrompt<'_>) -> Logins<'a> {
        Logins {
            options: AccessOptions {
                identities: self.identity.clone(),
                ..AccessOptions::default()
            },
            prompt,
        }
    }
}

/// Returns the failure of a command whose machines cannot be reached.
pub(super) fn machines_failure(error: MachinesError) -> Failure {
    let hint = error.hint();
    match error {
        MachinesError::Link(error) => link_failure(error),
        MachinesError::SshConfig(_) | MachinesError::Store(_) => Failure::from(error),
        error => Failure::usage(error).optional_hint(hint),
    }
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
