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
    power_sessions::{power_window, processes, seconds_of_day},
    printed,
};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::{
    lab::{PowerLab, ROUND},
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

/// The SHA-256 of every file of the sessions so far, by path.
pub(crate) type Hashes = BTreeMap<PathBuf, String>;

impl PowerLab {
    /// Judges a session, and returns its violations.
    ///
    /// # Errors
    /// Returns an error when the lab itself fails.
    pub(crate) fn judge(&self, outcome: &Outcome) -> anyhow::Result<Vec<String>> {
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
            wrong.extend(self.expect_files(&id, kind));
            if outcome.is_good() {
                wrong.extend(self.expect_really_good(&id, row)?);
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
    fn row(&self, outcome: &Outcome) -> anyhow::Result<Option<Value>> {
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

    fn directory(&self, id: &str) -> PathBuf {
        self.lab.workspace().join("power").join(id)
    }

    /// Returns the observations beside the session, as its record has them.
    fn observed(&self, id: &str) -> String {
        let record = fs::read(self.directory(id).join("session.json")).unwrap_or_default();
        let record: Value = serde_json::from_slice(&record).unwrap_or_default();
        record["observations"].to_string()
    }

    /// Checks that the files of each attempt stay, also of one that failed.
    fn expect_files(&self, id: &str, kind: Kind) -> Vec<String> {
        let directory = self.directory(id);
        let mut names = vec![];
        // A full disk may have had no room for a file; the row has the reason then.
        if kind != Kind::FullWorkspace {
            names.push("server-output.txt");
            if kind != Kind::KillCommand {
                names.push("session.json");
            }
        }
        let missing = names.into_iter().filter(|name| !directory.join(name).is_file());
        missing.map(|name| format!("{id} has no {name}")).collect()
    }

    /// Checks that a session that is recorded as good is good without Regatta's word for it.
    fn expect_really_good(&self, id: &str, row: &Value) -> anyhow::Result<Vec<String>> {
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
        let record: Value = serde_json::from_slice(&fs::read(self.directory(id).join("session.json"))?)?;
        for (name, hash) in record["sha256"].as_object().context("hashes")? {
            if Some(sha256(&session.join(name))?.as_str()) != hash.as_str() {
                wrong.push(format!("{id}: {name} is not what was recorded"));
            }
        }
        for part in ["ranging", "testing"] {
            let Some(run) = row[part].as_str() else {
                wrong.push(format!("{id} has no {part} run"));
                continue;
            };
            let verified = self.command().args(["runs", "verify", run]).output()?;
            if !verified.status.success() {
                wrong.push(format!("{id}: {part} run: {}", printed(&verified)));
            }
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
            let output = self.root.join("staged");
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

    /// Returns the hashes of every session's files so far.
    ///
    /// # Errors
    /// Returns an error when a file cannot be read.
    pub(crate) fn hashes(&self) -> anyhow::Result<Hashes> {
        let mut hashes = Hashes::new();
        let mut open = vec![self.lab.workspace().join("power")];
        while let Some(directory) = open.pop() {
            let Ok(entries) = fs::read_dir(&directory) else {
                continue;
            };
            for entry in entries.flatten() {
                match entry.file_type()?.is_dir() {
                    true => open.push(entry.path()),
                    false => {
                        hashes.insert(entry.path(), sha256(&entry.path())?);
                    }
                }
            }
        }
        Ok(hashes)
    }
}

/// Checks the outcome that the fault's kind requires.
fn expect_outcome(outcome: &Outcome, row: Option<&Value>, observed: &str) -> Vec<String> {
    let reason = row.and_then(|row| row["reason"].as_str()).unwrap_or_default();
    let shown = || {
        let lines: Vec<&str> = outcome.output.lines().rev().take(6).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
    };
    let has_cause = |causes: &[&str]| {
        causes
            .iter()
            .any(|cause| reason.contains(cause) || observed.contains(cause))
    };
    let is_late = outcome.fault.moment != Moment::Before && outcome.injected.is_none();
    match outcome.fault.kind.expected() {
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

fn sha256(path: &Path) -> anyhow::Result<String> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    Ok(Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}
