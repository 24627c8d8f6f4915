//! The checks before a session begins, within seconds: each line has the finding and, after a failure, the remedy.

use std::path::Path;

use regatta_catalogue::round::PowerRules;
use regatta_text::ErrorChain;
use regatta_types::documents::{DeviceFacts, MeterSettings, RunSpec};

use super::{
    machine::{Machine, MachineError, MeterReading, Probe, ProbeRequest, Programs},
    machine_check::MachineCheck,
    meter_check,
    meter_conf::server_conf,
    preflight_line::PreflightLine,
    session_check,
};

/// The input of the checks.
pub struct Preflight<'a> {
    /// The meter's settings.
    pub settings: &'a MeterSettings,
    /// The round's rules.
    pub rules: &'a PowerRules,
    pub director: &'a Machine,
    /// The machine that is measured.
    pub system: &'a Machine,
    /// The address at which it reaches the director.
    pub address: &'a str,
    /// The directory of this machine that gets the session's files.
    pub directory: &'a Path,
    pub device: PreflightDevice,
    /// What keeps the device busy, in words.
    pub other_work: Option<String>,
    /// The run that is made twice.
    pub spec: &'a RunSpec,
    /// Whether PTDaemon reads the meter, which takes seconds.
    pub reads_meter: bool,
}

/// The device of a session.
pub struct PreflightDevice {
    pub name: String,
    /// Its facts, as far as they are known.
    pub facts: Option<DeviceFacts>,
    /// Whether its agent is connected.
    pub online: bool,
}

/// The result of the checks.
pub struct PreflightResult {
    pub lines: Vec<PreflightLine>,
    /// The boot of the machine that is measured. Evidence of the runs must name it.
    pub boot_id: Option<String>,
}

impl PreflightResult {
    /// Returns whether a session can succeed.
    pub fn passed(&self) -> bool {
        self.lines.iter().all(|line| line.passed)
    }

    /// Returns whether checks failed, and each failure may end by itself within seconds.
    pub fn may_pass_soon(&self) -> bool {
        !self.passed() && self.lines.iter().all(|line| line.passed || line.is_transient)
    }
}

/// Checks whether the official client can run on a device, apart from any session.
pub fn client_fitness(machine: &Machine, ntp: &str, rules: &PowerRules) -> Vec<PreflightLine> {
    let sessions = machine.sessions();
    let link = machine.link.as_ref();
    let probe = machine.probe(&ProbeRequest {
        power_dev: machine.programs.power_dev(),
        ptd: None,
        meter: None,
        ports: Vec::new(),
        reach: None,
        ntp,
        directory: link.map_or(".", |link| link.program_path(link.home())),
        left_over: sessions
            .as_deref()
            .zip(link)
            .map(|(path, link)| link.program_path(path)),
    });
    match probe {
        Err(error) => vec![no_python("", machine, &error)],
        Ok(probe) => MachineCheck {
            role: "",
            machine,
            probe: &probe,
            ntp,
            rules,
        }
        .common(),
    }
}

fn no_python(role: &str, machine: &Machine, error: &MachineError) -> PreflightLine {
    let place = machine.name();
    PreflightLine::failed(
        format!("{role}Python"),
        ErrorChain(error).to_string(),
        format!("install Python 3.7 or later on {place}, or name another interpreter"),
    )
}

impl Preflight<'_> {
    /// Runs every check.
    pub fn check(&self) -> PreflightResult {
        let is_one = self.director.is_same_as(self.system);
        let (director_role, system_role) = if is_one {
            ("", "")
        } else {
            ("director ", "device ")
        };
        let mut lines = Vec::new();
        let director = self.probe(self.director, true, is_one);
        let apart = (!is_one).then(|| self.probe(self.system, false, true));
        let system = apart.as_ref().unwrap_or(&director);
        let is_informative = self.is_informative();
        let PreflightDevice { name, facts, online } = &self.device;
        let reported = facts.as_ref().and_then(|facts| facts.boot_id.as_deref());
        let machine = self.system.link.as_ref().map(|link| link.login());
        // Regatta's own client waits on this machine, not on the device.
        let boot_id = match is_informative {
            true => reported.map(str::to_owned),
            false => system.as_ref().ok().and_then(|probe| probe.boot_id.clone()),
        };
        lines.push(match is_informative {
            true => session_check::device_alone(name, *online, reported),
            false => session_check::device(name, *online, reported, machine, boot_id.as_deref()),
        });
        lines.push(session_check::other_work(name, self.other_work.as_deref()));
        for (role, machine, probe, is_director) in [
            (director_role, self.director, &director, true),
            (system_role, self.system, system, false),
        ] {
            if is_one && !is_director {
                continue;
            }
            match probe {
                Err(error) if machine.is_lost() => lines.push(PreflightLine::failed(
                    format!("{role}connection"),
                    ErrorChain(error).to_string(),
                    "check the network, and run the same command again",
                )),
                Err(error) => lines.push(no_python(role, machine, error)),
                Ok(probe) => {
                    let check = MachineCheck {
                        role,
                        machine,
                        probe,
                        ntp: &self.settings.ntp,
                        rules: self.rules,
                    };
                    lines.extend(check.common());
                    if is_director {
                        lines.extend(check.director(self.settings));
                    }
                }
            }
        }
        if !is_one {
            if let (Ok(director), Ok(system)) = (&director, system) {
                lines.push(session_check::reach(
                    self.address,
                    self.settings.port,
                    director,
                    system,
                ));
            }
            lines.push(session_check::clocks(self.director, self.system));
            lines.push(session_check::workspace_disk(self.directory));
        }
        if !is_informative {
            lines.push(session_check::checker(self.settings));
            lines.extend(session_check::server_conf_form(self.rules));
        }
        // PTDaemon is only started where nothing else is in the way.
        if self.reads_meter && lines.iter().all(|line| line.passed) {
            let rules = (!is_informative).then_some(self.rules);
            lines.extend(meter_check::lines(&self.read_meter(), self.settings, rules));
        }
        lines.push(session_check::length(self.spec));
        PreflightResult { lines, boot_id }
    }

    /// Returns whether Regatta's own programs make the session.
    fn is_informative(&self) -> bool {
        self.director.programs == Programs::Own
    }

    fn read_meter(&self) -> Result<MeterReading, MachineError> {
        let conf = server_conf(self.settings, true);
        let arguments = conf.analyzers.first().map(|analyzer| analyzer.arguments("LOG"));
        let arguments = arguments.unwrap_or_default();
        self.director
            .read_meter(&self.settings.ptd, &arguments, self.settings.ptd_port)
    }

    fn probe(&self, machine: &Machine, is_director: bool, is_system: bool) -> Result<Probe, MachineError> {
        let settings = self.settings;
        let directory = match &machine.link {
            None => self.directory.display().to_string(),
            Some(link) => link.program_path(link.home()).to_owned(),
        };
        let sessions = machine.sessions();
        let left_over = sessions.as_deref().zip(machine.link.as_ref());
        let is_apart = is_system && !is_director;
        machine.probe(&ProbeRequest {
            power_dev: machine.programs.power_dev(),
            ptd: is_director.then_some(settings.ptd.as_str()),
            meter: is_director.then_some(settings.device_port.as_str()),
            ports: if is_director {
                vec![settings.port, settings.ptd_port]
            } else {
                Vec::new()
            },
            reach: is_apart.then_some((self.address, settings.port)),
            ntp: &settings.ntp,
            directory: &directory,
            left_over: left_over.map(|(sessions, link)| link.program_path(sessions)),
        })
    }
}
