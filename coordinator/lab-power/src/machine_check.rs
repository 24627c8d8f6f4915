//! The lines about one machine before a session, from its probe's report.

use std::path::Path;

use regatta_catalogue::round::PowerRules;
use regatta_power::{ntp::MAX_OFFSET, power_dev::PowerDev};
use regatta_types::documents::MeterSettings;

use super::{
    machine::{Machine, NtpAnswer, Probe, Programs},
    preflight_line::PreflightLine,
    session_check::FREE_MIB,
};

/// The official programs' oldest Python.
const MIN_PYTHON: (u32, u32) = (3, 7);

pub(super) struct MachineCheck<'a> {
    /// Precedes every subject, where a session has two machines: `director ` or `device `.
    pub(super) role: &'static str,
    pub(super) machine: &'a Machine,
    pub(super) probe: &'a Probe,
    pub(super) ntp: &'a str,
    pub(super) rules: &'a PowerRules,
}

impl MachineCheck<'_> {
    /// Returns the lines about every machine of a session.
    pub(super) fn common(&self) -> Vec<PreflightLine> {
        let mut lines = vec![
            self.power_dev(),
            self.python(),
            self.clock(),
            self.time_stamps(),
            self.disk(),
            self.debug_switch(),
        ];
        lines.extend(self.left_over());
        lines
    }

    /// Returns the lines about a director.
    pub(super) fn director(&self, settings: &MeterSettings) -> Vec<PreflightLine> {
        vec![
            self.ptd(&settings.ptd),
            self.meter(settings),
            self.port("server port", settings.port, "--port"),
            self.port("PTDaemon port", settings.ptd_port, "--ptd-port"),
        ]
    }

    fn passed(&self, subject: &str, found: impl Into<String>) -> PreflightLine {
        PreflightLine::passed(format!("{}{subject}", self.role), found)
    }

    fn failed(&self, subject: &str, found: impl Into<String>, hint: impl Into<String>) -> PreflightLine {
        PreflightLine::failed(format!("{}{subject}", self.role), found, hint)
    }

    fn power_dev(&self) -> PreflightLine {
        let subject = "power-dev";
        let Programs::Official(root) = &self.machine.programs else {
            let found = "Regatta's own: the session is informative and can never be submitted";
            return self.passed("power programs", found);
        };
        let Some(probed) = self.probe.power_dev.clone() else {
            let found = format!("{root} on {} is not a copy of power-dev", self.machine.name());
            let hint = "git clone -c core.autocrlf=false https://github.com/mlcommons/power-dev there, and name the copy";
            return self.failed(subject, found, hint);
        };
        let copy = PowerDev::elsewhere(Path::new(root), probed.sources, probed.carriage_returns);
        match copy.refusal(self.rules) {
            None => self.passed(subject, format!("{root} is a release that the round accepts")),
            Some(refusal) => match refusal.split_once("; hint: ") {
                Some((found, hint)) => self.failed(subject, found, hint),
                None => self.failed(subject, refusal, "use an unchanged copy of the round's release"),
            },
        }
    }

    fn python(&self) -> PreflightLine {
        let (major, minor) = self.probe.python;
        let found = format!("{} is version {major}.{minor}", self.machine.python);
        match self.probe.python >= MIN_PYTHON {
            true => self.passed("Python", found),
            false => self.failed("Python", found, "install Python 3.7 or later, and name it"),
        }
    }

    fn clock(&self) -> PreflightLine {
        let subject = "clock";
        let ntp = self.ntp;
        match &self.probe.ntp {
            NtpAnswer::Error(error) => self.failed(
                subject,
                format!("the NTP server {ntp} does not answer: {error}"),
                "name one that answers there with `regatta meter add --replace --ntp`",
            ),
            NtpAnswer::Offset(seconds) => {
                let found = format!("{:+.0} ms from {ntp}", seconds * 1e3);
                match seconds.abs() < MAX_OFFSET.as_secs_f64() {
                    true => self.passed(subject, found),
                    false => self.failed(
                        subject,
                        format!("{found}; 400 ms are too many"),
                        format!(
                            "set the clock of {} from that server, for example with chrony",
                            self.machine.name()
                        ),
                    ),
                }
            }
        }
    }

    /// Returns the line about time stamps. The official client reads LoadGen's stamps as UTC. The agent's LoadGen writes no others, and the
    /// server starts PTDaemon with `TZ=UTC`.
    fn time_stamps(&self) -> PreflightLine {
        let zone = &self.probe.zone;
        let found = format!("LoadGen and PTDaemon write UTC; local time is UTC{zone}, which does not matter");
        self.passed("time stamps", found)
    }

    fn disk(&self) -> PreflightLine {
        let hint = format!("free space on {}", self.machine.name());
        match self.probe.free_mib {
            Some(free) if free >= FREE_MIB => self.passed("disk", format!("{free} MiB are free")),
            Some(free) => self.failed(
                "disk",
                format!("{free} MiB are free, {FREE_MIB} are needed"),
                hint,
            ),
            None => self.failed("disk", "its free space cannot be read", hint),
        }
    }

    fn debug_switch(&self) -> PreflightLine {
        let found = match self.probe.debug {
            false => "MLPP_DEBUG is not set",
            true => "MLPP_DEBUG is set and is not passed on: the checker refuses its sessions",
        };
        self.passed("debug switch", found)
    }

    /// Returns the directories of sessions that lost their connection. A complete session may be in them.
    fn left_over(&self) -> Option<PreflightLine> {
        let directory = self.machine.sessions()?;
        let count = self.probe.left_over.len();
        (count > 0).then(|| {
            let found =
                format!("{count} in {directory}, perhaps with a complete session: copy it before you remove them with `rm -r`");
            self.passed("files of earlier sessions", found)
        })
    }

    fn ptd(&self, path: &str) -> PreflightLine {
        let subject = "PTDaemon";
        match self.probe.ptd.as_deref() {
            // Its version is only known once it talks to the meter.
            Some("usable") => self.passed(
                subject,
                format!("{path} is executable; its version shows in the session"),
            ),
            Some("not executable") => self.failed(
                subject,
                format!("{path} is not executable"),
                format!("chmod +x {path}"),
            ),
            _ => self.failed(
                subject,
                format!("{path} does not exist on {}", self.machine.name()),
                "name PTDaemon's executable with `regatta meter add --replace --ptd`",
            ),
        }
    }

    fn meter(&self, settings: &MeterSettings) -> PreflightLine {
        let subject = "meter";
        let (kind, port) = (settings.device_type, &settings.device_port);
        let known = self.rules.meters.iter().find(|(_, number)| **number == kind);
        let name = known.map(|(name, _)| name.as_str());
        let unlisted = (self.machine.programs == Programs::Own).then_some("which no round accepts");
        let Some(name) = name.or(unlisted) else {
            let list: Vec<_> = self
                .rules
                .meters
                .iter()
                .map(|(name, number)| format!("{number} {name}"))
                .collect();
            let found = format!("the round accepts no meter of type {kind}");
            return self.failed(subject, found, format!("accepted are {}", list.join(", ")));
        };
        match self.probe.meter.as_deref() {
            Some("missing") => self.failed(
                subject,
                format!("{port} is not there for meter {kind} {name}"),
                "switch the meter on and connect its cable",
            ),
            Some("not permitted") => self.failed(
                subject,
                format!("{port} cannot be read and written by this login"),
                "let the login use the meter's device file, for example with a udev rule",
            ),
            _ => self.passed(subject, format!("type {kind}, {name}, at {port}")),
        }
    }

    fn port(&self, subject: &str, port: u16, option: &str) -> PreflightLine {
        match self.probe.ports_in_use.contains(&port) {
            false => self.passed(subject, format!("{port} is free")),
            // The official server of a session that ended with its coordinator takes a moment to end.
            true => self
                .failed(
                    subject,
                    format!("{port} is in use"),
                    format!(
                        "wait if a session uses it; else end the program that `ss -tlnp` shows, or give the meter another {option}"
                    ),
                )
                .transient(),
        }
    }
}
