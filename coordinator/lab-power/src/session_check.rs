//! The lines about a session as a whole before it begins: device, network, clocks, checker, disk and length.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use regatta_catalogue::round::PowerRules;
use regatta_fsutil::free_space::free_bytes;
use regatta_power::{ntp::MAX_OFFSET, power_dev::PowerDev, session::OFFICIAL_WAITS};
use regatta_text::ErrorChain;
use regatta_types::documents::{MeterSettings, RunSpec};

use super::{
    machine::{Machine, Probe},
    preflight_line::PreflightLine,
};
use regatta_lab_runs::min_duration_ms;

/// Free space for a session's files in MiB: logs of a day, with a line per second from two programs.
pub(super) const FREE_MIB: u64 = 200;

/// Checks that the client reaches the server's port. No server listens there yet, so a reachable port refuses.
pub(super) fn reach(address: &str, port: u16, director: &Probe, system: &Probe) -> PreflightLine {
    let place = format!("{address} port {port}");
    let subject = "network";
    match system.reach.as_deref() {
        Some("refused") => PreflightLine::passed(subject, format!("the device reaches {place}")),
        Some("open") if director.ports_in_use.contains(&port) => {
            PreflightLine::passed(subject, format!("the device reaches {place}, which is in use"))
        }
        Some("open") => PreflightLine::failed(
            subject,
            format!("{place} is another machine than the director: a program listens there"),
            "correct the director's address with `regatta meter add --replace --address`",
        ),
        other => PreflightLine::failed(
            subject,
            format!(
                "the device does not reach {place}: {}",
                other.unwrap_or("it was not tried")
            ),
            "open the port in the director's firewall, or correct its address with `regatta meter add --replace --address`",
        ),
    }
}

/// Compares the clocks of both machines, which the official client does at every step.
pub(super) fn clocks(director: &Machine, system: &Machine) -> PreflightLine {
    let subject = "clocks";
    let of = |machine: &Machine| match &machine.link {
        None => Ok((0.0, 0.0)),
        Some(link) => link.clock_offset(&machine.python),
    };
    match (of(director), of(system)) {
        (Ok((director, first)), Ok((system, second))) => {
            let apart = system - director;
            let found = format!(
                "device {:+.0} ms from director; from this machine: director {:+.0} ms, device {:+.0} ms (exact to {:.0} ms)",
                apart * 1e3,
                director * 1e3,
                system * 1e3,
                (first + second) / 2.0 * 1e3
            );
            match apart.abs() < MAX_OFFSET.as_secs_f64() {
                true => PreflightLine::passed(subject, found),
                false => PreflightLine::failed(
                    subject,
                    format!("{found}; 400 ms between device and director are too many"),
                    "set both clocks from the same NTP server, for example with chrony",
                ),
            }
        }
        (Err(error), _) | (_, Err(error)) => {
            let found = ErrorChain(&error).to_string();
            PreflightLine::failed(subject, found, "check the machine and its Python")
        }
    }
}

/// Checks that a device of an informative session reports its boot. Its client is on this machine, and the evidence of both runs names the
/// boot.
pub(super) fn device_alone(name: &str, is_online: bool, reported: Option<&str>) -> PreflightLine {
    let subject = "device";
    match (is_online, reported) {
        (true, Some(_)) => PreflightLine::passed(subject, format!("{name} is online")),
        (true, None) => PreflightLine::failed(
            subject,
            format!("{name} reports no boot id"),
            format!("upgrade its agent: `regatta device deploy {name} USER@HOST`"),
        ),
        (false, _) => PreflightLine::failed(
            subject,
            format!("{name} is not online"),
            "start `regatta-agent serve` there",
        ),
    }
}

/// Checks that nothing else runs on the device: it would be measured, and it would heat the device.
pub(super) fn other_work(name: &str, found: Option<&str>) -> PreflightLine {
    let subject = "device's work";
    match found {
        None => PreflightLine::passed(subject, format!("{name} has no other run")),
        Some(found) => PreflightLine::failed(
            subject,
            format!("{name} is busy: {found}"),
            "wait for its end: `regatta runs list` shows the runs",
        ),
    }
}

/// Estimates the least duration of a session.
pub(super) fn length(spec: &RunSpec) -> PreflightLine {
    let run = run_length(spec);
    let whole = run * 2 + OFFICIAL_WAITS;
    let found = format!(
        "at least {}: two runs of {} or more, and {} of official waits; PTDaemon's start, loading and delivery come on top",
        words(whole),
        words(run),
        words(OFFICIAL_WAITS)
    );
    PreflightLine::passed("session's length", found)
}

/// Checks the disk of this machine, which gets the session's files.
pub(super) fn workspace_disk(directory: &Path) -> PreflightLine {
    let subject = "workspace disk";
    match free_bytes(directory) {
        Err(error) => PreflightLine::failed(
            subject,
            format!("{}: {error}", directory.display()),
            "make the workspace readable",
        ),
        Ok(bytes) => match bytes >> 20 {
            free if free >= FREE_MIB => PreflightLine::passed(subject, format!("{free} MiB are free")),
            free => PreflightLine::failed(
                subject,
                format!("{free} MiB are free, {FREE_MIB} are needed"),
                "free space on the workspace's disk",
            ),
        },
    }
}

/// Checks that the device's agent runs on the machine that is measured: `machine`, or this one. Boards of one image share host name and
/// kernel; the boot id decides.
pub(super) fn device(
    name: &str,
    is_online: bool,
    reported: Option<&str>,
    machine: Option<&str>,
    boot_id: Option<&str>,
) -> PreflightLine {
    let subject = "device";
    let place = machine.unwrap_or("this machine");
    match (is_online, reported, boot_id) {
        (false, ..) => PreflightLine::failed(
            subject,
            format!("{name} is not online"),
            "start `regatta-agent serve` there",
        ),
        (true, None, _) => PreflightLine::failed(
            subject,
            format!("{name} reports no boot id, so it may be another machine than {place}"),
            format!("upgrade its agent: `regatta device deploy {name} USER@HOST`"),
        ),
        (true, Some(_), None) => PreflightLine::failed(
            subject,
            format!("{place} reports no boot id"),
            "the official client must run directly on the device's Linux, with /proc mounted",
        ),
        (true, Some(reported), Some(own)) if reported == own => {
            PreflightLine::passed(subject, format!("{name} is online, on {place}"))
        }
        (true, Some(_), Some(_)) => PreflightLine::failed(
            subject,
            format!("{name} is another machine than {place}, and the official client must run on the device"),
            "name the login of the device itself with --ssh USER@HOST",
        ),
    }
}

/// Returns the least length of a run.
pub(crate) fn run_length(spec: &RunSpec) -> Duration {
    Duration::from_millis(min_duration_ms(spec).unwrap_or_default())
}

/// Returns a time in words.
pub fn words(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

/// Returns the copy of power-dev on this machine whose checker judges.
pub(crate) fn checker_copy(settings: &MeterSettings) -> PathBuf {
    let copy = settings.checker.as_ref().or(settings.power_dev.as_ref());
    copy.map(PathBuf::from).unwrap_or_default()
}

/// Returns a failed line for a round whose server reads another form of `server.conf` than Regatta writes.
pub(super) fn server_conf_form(rules: &PowerRules) -> Option<PreflightLine> {
    (!rules.analyzers_listed).then(|| {
        PreflightLine::failed(
            "server.conf",
            "the server of this round reads another form of server.conf, with the meter in [ptd], which Regatta does not write",
            "name round v5.1 or a later one with --round, or start the official programs of this round by hand",
        )
    })
}

/// Checks that the official checker is on this machine.
pub(super) fn checker(settings: &MeterSettings) -> PreflightLine {
    let subject = "checker";
    let copy = checker_copy(settings);
    let checker = PowerDev::elsewhere(&copy, Default::default(), Vec::new()).checker();
    match checker.is_file() {
        true => PreflightLine::passed(subject, format!("{} judges the session", checker.display())),
        false => PreflightLine::failed(
            subject,
            format!("{} is not on this machine", checker.display()),
            "clone power-dev here, and name the copy with `regatta meter add --replace --checker`",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_with_an_older_server_conf_are_refused() {
        let refused: Vec<String> = regatta_catalogue::known::rounds()
            .unwrap()
            .into_iter()
            .filter(|round| {
                let rules = round.power.as_ref();
                rules.is_some_and(|rules| server_conf_form(rules).is_some_and(|line| !line.passed))
            })
            .map(|round| round.name.to_string())
            .collect();
        assert_eq!(refused, ["v2.0", "v2.1", "v3.0", "v3.1", "v4.0", "v4.1", "v5.0"]);
    }

    #[test]
    fn only_the_machine_with_the_reported_boot_is_the_device() {
        let line = |online, reported, machine, own| device("boat", online, reported, machine, own);
        let (one, other) = (Some("11111111-2222"), Some("33333333-4444"));
        assert!(line(true, one, None, one).passed);
        assert!(line(true, one, Some("me@boat"), one).passed);
        assert!(!line(false, one, None, one).passed);
        let another = line(true, one, Some("me@boat"), other);
        assert!(
            !another.passed && another.found.contains("another machine than me@boat"),
            "{another:?}"
        );
        let none = line(true, None, None, one);
        assert!(
            none.hint.is_some_and(|hint| hint.contains("upgrade")),
            "an agent without a boot id"
        );
        assert!(!line(true, one, None, None).passed && !line(true, None, None, None).passed);
    }
}
