//! Watches the machines of a session while it runs: clock steps, the NTP server's responses, and free disk space.
//!
//! Every observation is reported at once and recorded. Only a step of the director's or the device's clock ends the session, because the official
//! programs and the checker refuse it in the end.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use regatta_fsutil::free_space::free_bytes;
use regatta_power::{
    ntp::MAX_OFFSET,
    session::{Program, SessionError},
};
use regatta_types::documents::SessionObservation;

use super::machine::{Machine, NtpAnswer, WatchReport, WatchRequest};

/// The smallest reported step of a clock, in seconds. Suspending or migrating machines show smaller ones.
const MIN_STEP: f64 = 0.1;
/// Failed NTP requests in a row before the server counts as lost; one packet may be.
const LOST_REQUESTS: u32 = 2;
/// Free space in MiB under which a session may not be able to write its files.
const LOW_MIB: u64 = 50;
/// The interval for looking at this machine's clock.
const INTERVAL: Duration = Duration::from_secs(5);

/// The machines of a session, watched.
pub(crate) struct SessionWatch<'a> {
    machines: Vec<WatchedMachine>,
    own: OwnClock,
    disk: OwnDisk,
    found: Vec<SessionObservation>,
    tell: Box<dyn Fn(&str) + 'a>,
}

impl<'a> SessionWatch<'a> {
    /// Starts watching director and device; one machine that is both is watched once. `tell` gets each observation.
    ///
    /// # Errors
    /// [`SessionError`]
    pub(crate) fn start(
        machines: &[(&'static str, &Machine)],
        session: &str,
        ntp: &str,
        directory: &Path,
        tell: Box<dyn Fn(&str) + 'a>,
    ) -> Result<Self, SessionError> {
        let here = directory.display().to_string();
        let mut watched: Vec<WatchedMachine> = Vec::new();
        for (role, machine) in machines {
            let request = WatchRequest {
                session,
                ntp,
                directory: machine
                    .link
                    .as_ref()
                    .map_or(here.as_str(), |link| link.program_path(link.home())),
            };
            let output = directory.join(format!("{role}-watch.txt"));
            let program = machine.watch(&request, &output)?;
            let mut one = WatchedMachine::new(role, ntp);
            one.program = Some(program);
            watched.push(one);
        }
        Ok(Self {
            machines: watched,
            own: OwnClock::new(),
            disk: OwnDisk::new(directory),
            found: Vec::new(),
            tell,
        })
    }

    /// Takes the machines' reports.
    ///
    /// # Errors
    /// [`ClockStep`], after which the session cannot succeed any more.
    pub(super) fn look(&mut self) -> Result<(), ClockStep> {
        let mut texts: Vec<String> = self.own.look().into_iter().chain(self.disk.look()).collect();
        let mut fatal = None;
        for machine in &mut self.machines {
            for line in machine.new_lines() {
                let (found, end) = machine.take(&line);
                texts.extend(found);
                fatal = fatal.or(end);
            }
            texts.extend(machine.expect_running());
        }
        texts.into_iter().for_each(|text| self.observe(text));
        fatal.map_or(Ok(()), Err)
    }

    /// Reports and keeps an observation.
    pub(crate) fn observe(&mut self, text: String) {
        (self.tell)(&text);
        let time = jiff::Timestamp::now().to_string();
        self.found.push(SessionObservation { time, text });
    }

    pub(crate) fn observations(&self) -> Vec<SessionObservation> {
        self.found.clone()
    }
}

/// A step of a clock that the official programs do not accept.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("the {role}'s clock was stepped by {seconds:+.3} s; the official programs accept less than 0.4 s")]
pub(super) struct ClockStep {
    role: &'static str,
    seconds: f64,
}

/// A machine with the program that watches it.
struct WatchedMachine {
    role: &'static str,
    ntp: String,
    program: Option<Box<dyn Program>>,
    stepped: f64,
    lost_requests: u32,
    is_off: bool,
    is_low: bool,
}

impl WatchedMachine {
    fn new(role: &'static str, ntp: &str) -> Self {
        Self {
            role,
            ntp: ntp.to_owned(),
            program: None,
            stepped: 0.0,
            lost_requests: 0,
            is_off: false,
            is_low: false,
        }
    }

    fn new_lines(&mut self) -> Vec<String> {
        self.program
            .as_mut()
            .map_or_else(Vec::new, |program| program.new_lines())
    }

    /// Reports once if the watching program has ended. The session continues.
    fn expect_running(&mut self) -> Option<String> {
        let end = self.program.as_mut()?.end()?;
        self.program = None;
        Some(format!("the {} is no longer watched: {end}", self.role))
    }

    /// Takes a line of the program. Returns what is new, and a step after which the session cannot succeed any more.
    fn take(&mut self, line: &str) -> (Vec<String>, Option<ClockStep>) {
        match serde_json::from_str::<WatchReport>(line) {
            Ok(report) => self.compare(&report),
            // Python's own messages; the end of the process is reported as well.
            Err(_) => (Vec::new(), None),
        }
    }

    fn compare(&mut self, report: &WatchReport) -> (Vec<String>, Option<ClockStep>) {
        let role = self.role;
        let (mut found, mut fatal) = (Vec::new(), None);
        let step = report.step - self.stepped;
        if step.abs() >= MIN_STEP {
            self.stepped = report.step;
            found.push(format!("the {role}'s clock was stepped by {step:+.3} s"));
            if self.stepped.abs() >= MAX_OFFSET.as_secs_f64() {
                fatal = Some(ClockStep { role, seconds: step });
            }
        }
        match &report.ntp {
            None => {}
            Some(NtpAnswer::Error(error)) => {
                self.lost_requests += 1;
                if self.lost_requests == LOST_REQUESTS {
                    found.push(format!(
                        "the NTP server {} no longer answers the {role} ({error}); the official client needs it before each run",
                        self.ntp
                    ));
                }
            }
            Some(NtpAnswer::Offset(offset)) => {
                if self.lost_requests >= LOST_REQUESTS {
                    found.push(format!("the NTP server {} answers the {role} again", self.ntp));
                }
                self.lost_requests = 0;
                let is_off = offset.abs() >= MAX_OFFSET.as_secs_f64();
                if is_off && !self.is_off {
                    found.push(format!(
                        "the {role}'s clock is {:+.0} ms from {}",
                        offset * 1e3,
                        self.ntp
                    ));
                }
                self.is_off = is_off;
            }
        }
        let is_low = report.free_mib.is_some_and(|free| free < LOW_MIB);
        if is_low && !self.is_low {
            let free = report.free_mib.unwrap_or_default();
            found.push(format!(
                "the {role}'s disk has only {free} MiB left for the session's files"
            ));
        }
        self.is_low = is_low;
        (found, fatal)
    }
}

impl Drop for WatchedMachine {
    fn drop(&mut self) {
        if let Some(program) = &mut self.program {
            program.stop();
        }
    }
}

/// This machine's clock. It decides nothing in a session, but dates its record.
struct OwnClock {
    begun: (f64, Instant),
    stepped: f64,
    looked: Instant,
}

impl OwnClock {
    fn new() -> Self {
        Self {
            begun: (seconds(), Instant::now()),
            stepped: 0.0,
            looked: Instant::now(),
        }
    }

    fn look(&mut self) -> Option<String> {
        if self.looked.elapsed() < INTERVAL {
            return None;
        }
        self.looked = Instant::now();
        let (wall, monotonic) = self.begun;
        self.compare(seconds() - wall - monotonic.elapsed().as_secs_f64())
    }

    fn compare(&mut self, stepped: f64) -> Option<String> {
        let step = stepped - self.stepped;
        (step.abs() >= MIN_STEP).then(|| {
            self.stepped = stepped;
            format!("the coordinator's clock was stepped by {step:+.3} s")
        })
    }
}

/// This machine's disk, which gets the runs and the session's files.
struct OwnDisk {
    directory: PathBuf,
    looked: Instant,
    is_low: bool,
}

impl OwnDisk {
    fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            looked: Instant::now(),
            is_low: false,
        }
    }

    fn look(&mut self) -> Option<String> {
        if self.looked.elapsed() < INTERVAL {
            return None;
        }
        self.looked = Instant::now();
        let free = free_bytes(&self.directory).ok()? >> 20;
        let was_low = std::mem::replace(&mut self.is_low, free < LOW_MIB);
        (self.is_low && !was_low).then(|| format!("the workspace's disk has only {free} MiB left"))
    }
}

/// Returns the seconds since 1970.
fn seconds() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_reported_once_and_ends_the_session_from_400_ms() {
        let mut machine = WatchedMachine::new("device", "ntp");
        let line = |step: f64| format!(r#"{{"step": {step}, "free_mib": 900, "ntp": null}}"#);
        assert_eq!(machine.take(&line(0.001)), (Vec::new(), None));
        let (found, fatal) = machine.take(&line(0.25));
        assert_eq!(found, ["the device's clock was stepped by +0.250 s"]);
        assert_eq!(fatal, None);
        assert_eq!(machine.take(&line(0.25)), (Vec::new(), None));
        let (found, fatal) = machine.take(&line(1.25));
        assert_eq!(found, ["the device's clock was stepped by +1.000 s"]);
        assert!(fatal.is_some_and(|step| step.to_string().contains("+1.000 s")));
        assert_eq!(machine.take("Traceback"), (Vec::new(), None));
    }

    #[test]
    fn ntp_and_disk_are_reported_when_they_change() {
        let mut machine = WatchedMachine::new("director", "ntp.example.com");
        let lost = r#"{"step": 0, "free_mib": 900, "ntp": {"error": "timed out"}}"#;
        let good = r#"{"step": 0, "free_mib": 900, "ntp": {"offset": 0.01}}"#;
        let off = r#"{"step": 0, "free_mib": 900, "ntp": {"offset": -0.5}}"#;
        let low = r#"{"step": 0, "free_mib": 3, "ntp": null}"#;
        assert!(machine.take(lost).0.is_empty(), "one packet may be lost");
        assert!(machine.take(lost).0[0].contains("no longer answers"));
        assert!(machine.take(lost).0.is_empty());
        assert!(machine.take(good).0[0].contains("answers the director again"));
        assert!(machine.take(off).0[0].contains("-500 ms"));
        assert!(machine.take(off).0.is_empty());
        assert!(machine.take(low).0[0].contains("3 MiB"));
        assert_eq!(machine.take(low), (Vec::new(), None));
    }

    #[test]
    fn steps_of_the_coordinators_clock_are_reported() {
        let mut clock = OwnClock::new();
        assert_eq!(clock.compare(0.02), None);
        assert_eq!(
            clock.compare(-1.0).unwrap(),
            "the coordinator's clock was stepped by -1.000 s"
        );
        assert_eq!(clock.compare(-1.01), None);
    }
}
