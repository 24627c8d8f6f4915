//! What is checked before a session begins, within seconds: each line says what was found, and what to do where it does not do.

use std::{
    net::{SocketAddr, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Command,
    time::Duration,
};

use regatta_config::round::PowerRules;
use regatta_power::{ntp, power_dev::PowerDev};
use regatta_types::documents::DeviceFacts;
use serde::Serialize;

use crate::{boot_id, store::MeterSettings};

/// The longest wait for an NTP server, as in the official programs.
const NTP_PATIENCE: Duration = Duration::from_secs(5);
/// How long the official server waits to see whether a port is in use.
const PORT_PATIENCE: Duration = Duration::from_millis(100);
/// The official programs' oldest Python.
const OLDEST_PYTHON: (u32, u32) = (3, 7);
/// Free space for a session in MiB: logs of a day, with a line per second from two programs.
const FREE_MIB: u64 = 200;

/// One checked line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct PreflightLine {
    /// What was checked.
    pub(crate) subject: &'static str,
    /// Whether a session can succeed with it.
    pub(crate) passed: bool,
    /// What was found.
    pub(crate) found: String,
    /// What to do.
    pub(crate) hint: Option<String>,
}

/// Checks everything that is on the director and on this machine. Returns the copy of power-dev where it can be used.
pub(crate) fn check(
    settings: &MeterSettings,
    rules: &PowerRules,
    directory: &Path,
) -> (Vec<PreflightLine>, Option<PowerDev>) {
    let (dev_line, power_dev) = power_dev(settings, rules);
    let lines = vec![
        dev_line,
        python(settings),
        ptd(settings),
        meter(settings, rules),
        clock(settings),
        port("server port", settings.port),
        port("PTDaemon port", settings.ptd_port),
        disk(directory),
        debug_switch(),
    ];
    (lines, power_dev)
}

/// Checks that a device is this machine, on which the official client runs. The boot id decides: boards of one image share host name
/// and kernel.
pub(crate) fn device(name: &str, facts: Option<&DeviceFacts>, online: bool) -> PreflightLine {
    let subject = "device";
    let reported = facts.and_then(|facts| facts.boot_id.as_deref());
    match (online, reported, boot_id::of_this_machine()) {
        (false, ..) => failed(
            subject,
            format!("{name} is not online"),
            "start `regatta-agent serve` there",
        ),
        (true, None, _) => failed(
            subject,
            format!("{name} reports no boot id, so it may be another machine"),
            format!("upgrade its agent: `regatta device deploy {name} USER@HOST`"),
        ),
        (true, Some(_), None) => failed(
            subject,
            "this machine's kernel reports no boot id",
            "mount /proc on this machine",
        ),
        (true, Some(reported), Some(own)) if reported == own => {
            passed(subject, format!("{name} is online, on this machine"))
        }
        (true, Some(_), Some(_)) => failed(
            subject,
            format!("{name} is another machine; the official client must run on the device"),
            "run this command in a workspace on the device itself",
        ),
    }
}

fn passed(subject: &'static str, found: impl Into<String>) -> PreflightLine {
    PreflightLine {
        subject,
        passed: true,
        found: found.into(),
        hint: None,
    }
}

fn failed(subject: &'static str, found: impl Into<String>, hint: impl Into<String>) -> PreflightLine {
    PreflightLine {
        passed: false,
        hint: Some(hint.into()),
        ..passed(subject, found)
    }
}

fn power_dev(settings: &MeterSettings, rules: &PowerRules) -> (PreflightLine, Option<PowerDev>) {
    let subject = "power-dev";
    let sentence = |text: String| match text.split_once("; hint: ") {
        Some((found, hint)) => failed(subject, found, hint),
        None => failed(subject, text, "use an unchanged copy of the round's release"),
    };
    match PowerDev::open(Path::new(&settings.power_dev)) {
        Err(error) => (sentence(error.to_string()), None),
        Ok(copy) => match copy.refusal(rules) {
            Some(refusal) => (sentence(refusal), None),
            None => {
                let found = format!("{} is a release that the round accepts", settings.power_dev);
                (passed(subject, found), Some(copy))
            }
        },
    }
}

fn python(settings: &MeterSettings) -> PreflightLine {
    let subject = "Python";
    let (major, minor) = OLDEST_PYTHON;
    let hint =
        format!("install Python {major}.{minor} or later, or name it with `regatta meter add --python`");
    let output = Command::new(&settings.python)
        .args(["-c", "import sys; print(*sys.version_info[:2])"])
        .output();
    let output = match output {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        Ok(output) => {
            return failed(
                subject,
                format!("{} fails ({})", settings.python, output.status),
                hint,
            );
        }
        Err(error) => {
            return failed(
                subject,
                format!("{} does not start: {error}", settings.python),
                hint,
            );
        }
    };
    let mut numbers = output
        .split_whitespace()
        .map(|word| word.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let found = format!("{} is version {}.{}", settings.python, version.0, version.1);
    match version >= OLDEST_PYTHON {
        true => passed(subject, found),
        false => failed(subject, found, hint),
    }
}

fn ptd(settings: &MeterSettings) -> PreflightLine {
    let subject = "PTDaemon";
    let path = Path::new(&settings.ptd);
    match path.metadata() {
        Err(error) => failed(
            subject,
            format!("{} cannot be used: {error}", settings.ptd),
            "name PTDaemon's executable with `regatta meter add --replace --ptd`",
        ),
        Ok(data) if !data.is_file() || data.permissions().mode() & 0o111 == 0 => failed(
            subject,
            format!("{} is not executable", settings.ptd),
            format!("chmod +x {}", settings.ptd),
        ),
        // Its version is only known once it talks to the meter.
        Ok(_) => passed(
            subject,
            format!("{} is executable; its version shows in the session", settings.ptd),
        ),
    }
}

fn meter(settings: &MeterSettings, rules: &PowerRules) -> PreflightLine {
    let known = rules
        .meters
        .iter()
        .find(|(_, number)| **number == settings.device_type);
    let list: Vec<_> = rules
        .meters
        .iter()
        .map(|(name, number)| format!("{number} {name}"))
        .collect();
    match known {
        None => failed(
            "meter",
            format!("the round accepts no meter of type {}", settings.device_type),
            format!("accepted are {}", list.join(", ")),
        ),
        Some((name, number))
            if settings.device_port.starts_with("/dev/") && !Path::new(&settings.device_port).exists() =>
        {
            failed(
                "meter",
                format!("{} is not there for meter {number} {name}", settings.device_port),
                "switch the meter on and connect its cable",
            )
        }
        Some((name, number)) => passed(
            "meter",
            format!("type {number}, {name}, at {}", settings.device_port),
        ),
    }
}

fn clock(settings: &MeterSettings) -> PreflightLine {
    let hint = "set this machine's clock from that server, for example with chrony";
    match ntp::query(&settings.ntp, NTP_PATIENCE) {
        Err(error) => failed(
            "clock",
            format!("the NTP server {} does not answer: {error}", settings.ntp),
            "name one that answers with `regatta meter add --replace --ntp`",
        ),
        Ok(offset) if offset.seconds.abs() < ntp::LARGEST_OFFSET.as_secs_f64() => passed(
            "clock",
            format!("{:+.0} ms from {}", offset.seconds * 1e3, settings.ntp),
        ),
        Ok(offset) => failed(
            "clock",
            format!(
                "{:+.0} ms from {}; 400 ms are too many",
                offset.seconds * 1e3,
                settings.ntp
            ),
            hint,
        ),
    }
}

fn port(subject: &'static str, port: u16) -> PreflightLine {
    match TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], port)), PORT_PATIENCE) {
        Err(_) => passed(subject, format!("{port} is free")),
        Ok(_) => failed(
            subject,
            format!("{port} is in use"),
            "end the program that uses it (`ss -tlnp` shows it), or give the meter another port",
        ),
    }
}

fn disk(directory: &Path) -> PreflightLine {
    let hint = "make room on the workspace's disk";
    match rustix::fs::statvfs(directory) {
        Err(error) => failed("disk", format!("{}: {error}", directory.display()), hint),
        Ok(disk) => {
            let free = (disk.f_bavail * disk.f_frsize) >> 20;
            match free >= FREE_MIB {
                true => passed("disk", format!("{free} MiB are free")),
                false => failed(
                    "disk",
                    format!("{free} MiB are free, {FREE_MIB} are needed"),
                    hint,
                ),
            }
        }
    }
}

fn debug_switch() -> PreflightLine {
    match std::env::var_os("MLPP_DEBUG") {
        None => passed("debug switch", "MLPP_DEBUG is not set"),
        Some(_) => passed(
            "debug switch",
            "MLPP_DEBUG is set here and is not passed on: the checker refuses its sessions",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_machine_with_this_boot_is_the_device() {
        let own = rustix::system::uname();
        let facts = |boot_id: Option<&str>| DeviceFacts {
            hostname: own.nodename().to_string_lossy().into_owned(),
            kernel: own.release().to_string_lossy().into_owned(),
            boot_id: boot_id.map(str::to_owned),
            ..DeviceFacts::default()
        };
        let this_boot = boot_id::of_this_machine().unwrap();
        let line = |boot_id, online| device("boat", Some(&facts(boot_id)), online);
        assert!(line(Some(&this_boot), true).passed);
        assert!(!line(Some(&this_boot), false).passed);
        let other = line(Some("11111111-2222-3333-4444-555555555555"), true);
        assert!(
            !other.passed && other.found.contains("another machine"),
            "{other:?}"
        );
        let none = line(None, true);
        assert!(
            !none.passed && none.hint.is_some_and(|hint| hint.contains("upgrade")),
            "an agent without a boot id"
        );
        assert!(!device("boat", None, true).passed);
    }
}
