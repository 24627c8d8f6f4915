//! A session under one fault: starts the command, follows its steps, has the fault injected at its moment, and waits for the end.

use std::{
    path::PathBuf,
    process::ExitStatus,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use regatta_tests::{power_sessions::sessions_of, printed};
use serde_json::Value;

use crate::{
    inject::Injected,
    lab::{Meter, PowerLab, Settle, place},
    plan::{Expected, Kind, Moment, RANGING, SessionFault},
};

/// The directory of the commands' outputs in the lab.
pub(crate) const OUTPUT: &str = "output";
/// The longest time of a command. A session of two runs of 4 s takes a minute on an idle machine.
const MAX: Duration = Duration::from_secs(420);
/// The time that the device may take to be idle again.
const READY: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(50);
/// The words of each step, in order, as `power run` prints them.
const STEPS: [&str; 9] = [
    "starting the server",
    "comparing clocks",
    "ranging: the meter settles for 10 s",
    "ranging: the workload runs",
    "ranging: the meter settles for 10 s and is read",
    "testing: the meter settles for 10 s",
    "testing: the workload runs",
    "testing: the meter settles for 10 s and is read",
    "collecting the session's files",
];

/// Words of the observations of `power run` beside a session, which goes on as long as it may succeed.
const OBSERVATIONS: [&str; 3] = ["clock was stepped", "no longer answers", "MiB left"];

pub(crate) struct Outcome {
    pub(crate) fault: SessionFault,
    pub(crate) meter: Meter,
    /// Whether the fault was injected, and in which step of the session.
    pub(crate) injected: Option<usize>,
    /// The exit status of the command. `None` when it was killed for taking too long.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) output: String,
    /// Its row in `power list`.
    pub(crate) row: Option<Value>,
    /// The output of a second command, where the fault is one.
    pub(crate) second: Option<String>,
    /// The time from the fault to the first word about it: an observation, or the command's end.
    pub(crate) until_found: Duration,
    pub(crate) whole: Duration,
}

pub(crate) struct RunningSession {
    pub(crate) child: std::process::Child,
    log: PathBuf,
}

impl RunningSession {
    fn output(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Returns whether an observation was printed after the first `printed_before` bytes.
    fn observes(&self, printed_before: usize) -> bool {
        let text = self.output();
        let new = text.get(printed_before..).unwrap_or_default();
        OBSERVATIONS.iter().any(|words| new.contains(words))
    }

    /// Returns the step that the session is in. `None` before the first.
    fn step(&self) -> Option<usize> {
        let text = self.output();
        let mut step = None;
        for line in text.lines() {
            // The time left follows in parentheses.
            let line = line.split(" (at least ").next().unwrap_or(line);
            let next = step.map_or(0, |step| step + 1);
            if STEPS
                .get(next)
                .is_some_and(|words| line.trim_end().ends_with(words) || line.contains(words) && next == 0)
            {
                step = Some(next);
            }
        }
        step
    }
}

impl PowerLab {
    pub(crate) fn make(&mut self, fault: SessionFault) -> anyhow::Result<Outcome> {
        self.wait_until_ready()?;
        let begun = Instant::now();
        let meter = self.add_meter(&fault)?;
        std::fs::create_dir_all(place(OUTPUT))?;
        let log = place(OUTPUT).join(format!("session-{}.txt", meter.name));
        let mut injected = Injected::default();
        let mut step_at_fault = None;
        if fault.moment == Moment::Before {
            ensure!(
                self.inject(&fault, &meter, None, &mut injected)?,
                "{} cannot be made",
                fault.kind
            );
            step_at_fault = Some(0);
        }
        let file = std::fs::File::create(&log)?;
        let mut command = self.session(&fault, &meter);
        command.stdout(file.try_clone()?).stderr(file);
        let mut running = RunningSession {
            child: command.spawn().context("regatta starts")?,
            log,
        };
        let (mut due, mut fault_at, mut observed) = (None, None, None);
        let mut printed_before = 0;
        let mut status = None;
        while begun.elapsed() < MAX {
            status = running.child.try_wait()?;
            if status.is_some() {
                break;
            }
            if step_at_fault.is_none() {
                let step = running.step();
                if let (Moment::Step(number, delay), Some(step)) = (fault.moment, step) {
                    let delay = self.scaled(number, delay);
                    let due = due.get_or_insert_with(|| Instant::now() + delay);
                    if step < number {
                        *due = Instant::now() + delay;
                    } else if Instant::now() >= *due
                        && self.inject(&fault, &meter, Some(&mut running), &mut injected)?
                    {
                        step_at_fault = running.step();
                        fault_at = Some(Instant::now());
                        printed_before = running.output().len();
                    }
                }
            } else if observed.is_none() && running.observes(printed_before) {
                observed = Some(Instant::now());
            }
            if fault_at.is_some_and(|at: Instant| at.elapsed() > fault.hold) {
                self.heal_in_the_middle(&fault, &mut injected)?;
            }
            thread::sleep(PAUSE);
        }
        let found = observed.unwrap_or_else(Instant::now);
        let until_found = fault_at.map_or(Duration::ZERO, |at| found.duration_since(at));
        if status.is_none() {
            running.child.kill()?;
            running.child.wait()?;
        }
        self.heal(&fault, &mut injected)?;
        let output = running.output();
        let rows = sessions_of(&self.json(&["power", "list"])?, &meter.name);
        Ok(Outcome {
            row: rows.into_iter().next(),
            injected: step_at_fault,
            second: injected.second.take(),
            fault,
            meter,
            status,
            output,
            until_found,
            whole: begun.elapsed(),
        })
    }

    /// Returns a wait in a step, in the proportion of the step's length.
    fn scaled(&self, step: usize, delay: Duration) -> Duration {
        let is_settling = STEPS.get(step).is_some_and(|words| words.contains("settles"));
        match self.settle {
            Settle::Short if is_settling => delay / 5,
            _ => delay,
        }
    }

    /// Waits until the device is idle again after the earlier session.
    fn wait_until_ready(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < READY {
            let devices = self.json(&["device", "list"])?;
            let rows = devices["devices"].as_array().context("a list")?;
            if rows.iter().all(|row| row["state"] == "idle") {
                return Ok(());
            }
            thread::sleep(PAUSE * 10);
        }
        anyhow::bail!("the device is not idle: {}", self.json(&["device", "list"])?)
    }

    /// Returns the words of a second command with the same meter.
    pub(crate) fn second(&self, fault: &SessionFault, meter: &Meter) -> anyhow::Result<String> {
        Ok(printed(&self.session(fault, meter).output()?))
    }
}

impl Outcome {
    /// Returns whether the session was good in the end.
    pub(crate) fn is_good(&self) -> bool {
        self.row
            .as_ref()
            .is_some_and(|row| row["verdict"] == "rehearsal" || row["verdict"] == "pass")
    }

    pub(crate) fn describe(&self) -> String {
        match &self.row {
            None => "refused".to_owned(),
            Some(row) => {
                let verdict = row["verdict"].as_str().unwrap_or("failed");
                format!(
                    "{verdict} {}",
                    row["reason"]
                        .as_str()
                        .and_then(|reason| reason.lines().next())
                        .unwrap_or_default()
                )
            }
        }
    }

    /// Returns whether a good end is false.
    pub(crate) fn must_not_be_good(&self) -> bool {
        let Some(step) = self.injected else { return false };
        let early = step <= self.fault.kind.last_fatal_step();
        match self.fault.kind {
            // The client may have compared its clocks already, or the step is within what the official programs accept.
            Kind::NoNtp => step < RANGING && self.fault.hold > Duration::from_secs(40),
            kind => early && matches!(kind.facts().expected, Expected::Fails(_) | Expected::Judged),
        }
    }
}
