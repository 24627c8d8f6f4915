//! The conditions that must hold after any session. Each violation is a sentence.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use regatta_tests::{
    faults::{run_checker::read_files, write_log::Content},
    power_sessions::{power_window, processes, seconds_of_day},
    printed,
};
use serde_json::Value;

use crate::{
    lab::{PowerLab, ROUND, place},
    plan::{Expected, Kind, Moment},
    session::Outcome,
};

/// The time in which a fault must be found: the command has ended, or reports an observation.
const UNTIL_FOUND: Duration = Duration::from_secs(60);
/// The time that processes may take to end after their command.
const UNTIL_GONE: Duration = Duration::from_secs(75);
/// The seconds at either end of a run in which the rules count no sample.
const MARGIN_S: f64 = 0.8;
const PAUSE: Duration = Duration::from_millis(300);

impl PowerLab {
    /// Judges a session, and returns its violations.
    pub(crate) fn judge_session(&self, outcome: &Outcome) -> anyhow::Result<Vec<String>> {
        let mut wrong = Vec::new();
        let kind = outcome.fault.kind;
        if outcome.status.is_none() {
            wrong.push("the command did not end".to_owned());
        }
        if outcome.until_found > UNTIL_FOUND && !outcome.is_good() {
            wrong.push(format!(
                "found {:.0} s after the fault",
                outcome.until_found.as_secs_f64()
            ));
        }
        let stale = self.release(outcome)?;
        wrong.extend(stale);
        let row = self.row(outcome)?;
        if let Some(row) = &row {
            let id = row["session"].as_str().unwrap_or_default().to_owned();
            wrong.extend(self.expect_gone(&[&id, &outcome.meter.name]));
            // A full disk may have had no room for the file; the row has the reason then.
            if kind != Kind::FullWorkspace && !self.directory(&id).join("server-output.txt").is_file() {
                wrong.push(format!("{id} has no server-output.txt"));
            }
            if outcome.is_good() {
                wrong.extend(self.expect_official_pass(&id)?);
                let is_uncertain =
                    kind == Kind::Uncertain && uncertain_in_window(&self.directory(&id).join("session"))?;
                if outcome.must_not_be_good() || is_uncertain {
                    wrong.push(format!(
                        "recorded as good after a fault in step {:?}",
                        outcome.injected
                    ));
                }
            } else {
                wrong.extend(self.expect_failed(&id, row, outcome)?);
            }
        } else {
            wrong.extend(self.expect_gone(&[&outcome.meter.name]));
        }
        let id = row.as_ref().and_then(|row| row["session"].as_str());
        let observed = id.map_or_else(String::new, |id| self.observed(id));
        wrong.extend(expect_outcome(outcome, row.as_ref(), &observed));
        Ok(wrong)
    }

    /// Returns the row as it is after the meter's release.
    pub(crate) fn row(&self, outcome: &Outcome) -> anyhow::Result<Option<Value>> {
        let Some(id) = outcome.row.as_ref().and_then(|row| row["session"].as_str()) else {
            return Ok(None);
        };
        let list = self.json(&["power", "list"])?;
        let rows = list["sessions"].as_array().context("a list")?;
        Ok(rows.iter().find(|row| row["session"] == id).cloned())
    }

    /// Removes the meter, which a lease would prevent. A killed command leaves a stale one.
    fn release(&self, outcome: &Outcome) -> anyhow::Result<Vec<String>> {
        let mut wrong = Vec::new();
        let meters = self.json(&["meter", "list"])?;
        let meters = meters["meters"].as_array().context("a list")?.iter();
        for meter in meters.filter(|meter| meter["name"] == outcome.meter.name) {
            let state = meter["lease"]["state"].as_str();
            // A full disk has no room for the session's end either; the lease ends with the process.
            let was_killed = matches!(outcome.fault.kind, Kind::KillCommand | Kind::FullWorkspace)
                || outcome.status.is_none();
            let expected = if was_killed && outcome.injected.is_some() {
                Some("stale")
            } else {
                None
            };
            if state != expected && state.is_some() {
                wrong.push(format!("a lease is left: {}", meter["lease"]));
            }
        }
        let removed = self
            .command()
            .args(["meter", "remove", &outcome.meter.name])
            .output()?;
        if !removed.status.success() {
            wrong.push(format!("the meter is not free: {}", printed(&removed)));
        }
        Ok(wrong)
    }

    /// Checks that no process of the session is left on any machine. All are of this PID namespace.
    fn expect_gone(&self, words: &[&str]) -> Vec<String> {
        let begun = Instant::now();
        let left = || {
            let mut left = processes(|line| words.iter().any(|word| line.contains(word)));
            left.retain(|pid| *pid != std::process::id());
            left
        };
        while begun.elapsed() < UNTIL_GONE {
            if left().is_empty() {
                return Vec::new();
            }
            thread::sleep(PAUSE);
        }
        let line = |pid: &u32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let lines: Vec<_> = left()
            .iter()
            .map(|pid| String::from_utf8_lossy(&line(pid)).replace('\0', " "))
            .collect();
        vec![format!("processes are left: {lines:?}")]
    }

    pub(crate) fn directory(&self, id: &str) -> PathBuf {
        self.lab.workspace().join("power").join(id)
    }

    /// Returns the observations beside the session, as its record has them.
    fn observed(&self, id: &str) -> String {
        let record = fs::read(self.directory(id).join("session.json")).unwrap_or_default();
        let record: Value = serde_json::from_slice(&record).unwrap_or_default();
        record["observations"].to_string()
    }

    /// Checks that a session that is recorded as good is good for the official checker.
    fn expect_official_pass(&self, id: &str) -> anyhow::Result<Vec<String>> {
        let mut wrong = Vec::new();
        let session = self.directory(id).join("session");
        let checker = self.power_dev.join("compliance/check.py");
        let mut command = Command::new("python3");
        command
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .arg(checker)
            .arg(&session);
        let official = command.output()?;
        let passed = printed(&official).matches("[x]").count();
        if !official.status.success() || passed != 11 {
            wrong.push(format!("{id}: the official checker passes {passed} of 11"));
        }
        Ok(wrong)
    }

    /// Checks that a session that failed has a reason, and cannot be staged by its id or by its directory.
    fn expect_failed(&self, id: &str, row: &Value, outcome: &Outcome) -> anyhow::Result<Vec<String>> {
        let mut wrong = Vec::new();
        let has_reason = row["reason"].as_str().is_some_and(|reason| !reason.is_empty());
        if !has_reason && row["verdict"] != "fail" {
            wrong.push(format!("{id} has no reason: {row}"));
        }
        if row["ended"].is_null() {
            wrong.push(format!("{id} is not recorded as ended"));
        }
        if outcome.status.is_some_and(|status| status.success()) {
            wrong.push(format!("{id} failed, and the command succeeded"));
        }
        let directory = self.directory(id).join("session");
        let words = [id.to_owned(), directory.display().to_string()];
        for word in words
            .iter()
            .filter(|word| *word == id || Path::new(word).is_dir())
        {
            let output = place("staged");
            let mut stage = self.command();
            stage.args([
                "submission",
                "stage",
                "--rehearsal",
                "--version",
                ROUND,
                "--power",
                word,
                "--output",
            ]);
            let refused = stage.arg(&output).output()?;
            let text = printed(&refused);
            if refused.status.success() || !text.contains(&format!("power session {id}")) {
                wrong.push(format!("{word} is not refused for staging: {text}"));
            }
        }
        Ok(wrong)
    }

    pub(crate) fn session_files(&self) -> anyhow::Result<BTreeMap<String, Content>> {
        let files = read_files(&self.lab.workspace().join("power"))?;
        Ok(files
            .into_iter()
            .map(|(name, bytes)| (name, Content::of(&bytes)))
            .collect())
    }
}

/// Checks the outcome that the fault's kind requires.
fn expect_outcome(outcome: &Outcome, row: Option<&Value>, observed: &str) -> Vec<String> {
    let reason = row.and_then(|row| row["reason"].as_str()).unwrap_or_default();
    let shown = || {
        let lines: Vec<&str> = outcome.output.lines().rev().take(6).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
    };
    let has_cause = |causes: &str| {
        causes
            .split('|')
            .any(|cause| reason.contains(cause) || observed.contains(cause))
    };
    let is_late = outcome.fault.moment != Moment::Before && outcome.injected.is_none();
    match outcome.fault.kind.facts().expected {
        _ if is_late && outcome.is_good() => Vec::new(),
        Expected::Refused(words) => {
            match row.is_none() && outcome.output.contains("FAIL") && outcome.output.contains(words) {
                true => Vec::new(),
                false => vec![format!("expected a refusal with \"{words}\": {}", shown())],
            }
        }
        Expected::Good => match (outcome.is_good(), &outcome.second) {
            (true, None) => Vec::new(),
            (true, Some(second)) if second.contains("uses the meter") => Vec::new(),
            (true, Some(second)) => vec![format!("the second session was not refused: {second}")],
            (false, _) => vec![format!("expected a good session: {}", shown())],
        },
        Expected::Judged => match row.is_some_and(|row| row["verdict"] == "fail") {
            true => Vec::new(),
            false => vec![format!("expected the verdict fail: {}", shown())],
        },
        Expected::Fails(causes) | Expected::Either(causes) => {
            // A refusal before the session begins names its line.
            let is_refused = row.is_none() && outcome.output.contains("FAIL");
            // A checker that refuses the session names its finding.
            let is_judged = row.is_some_and(|row| row["verdict"] == "fail");
            match outcome.is_good() || is_refused || is_judged || has_cause(causes) {
                true => Vec::new(),
                false => vec![format!(
                    "the reason does not name the cause: {reason:?}: {}",
                    shown()
                )],
            }
        }
    }
}

/// Returns whether PTDaemon reported an uncertain sample between power_begin and power_end of the testing run. All times have one form, in
/// UTC.
fn uncertain_in_window(session: &Path) -> anyhow::Result<bool> {
    let detail = fs::read_to_string(session.join("run_1/mlperf_log_detail.txt"))?;
    let window = power_window(&detail).context("power_begin and power_end")?;
    let logs = fs::read_to_string(session.join("power/ptd_logs.txt"))?;
    // PTDaemon's lines begin with a stamp of this length.
    let stamp = "07-30-2022 04:40:04.430".len();
    let mut lines = logs
        .lines()
        .filter(|line| line.contains("which is above 1.00% limit"));
    Ok(lines.any(|line| {
        let time = line.get(..stamp).and_then(seconds_of_day);
        time.is_some_and(|time| window.0 + MARGIN_S < time && time < window.1 - MARGIN_S)
    }))
}
