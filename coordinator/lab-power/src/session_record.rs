//! `session.json`: the record of a power session beside its files, also of one that failed.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use regatta_fsutil::{atomic_file::AtomicFile, hash::sha256_hex, regular_file};
use regatta_submission_check::check::power::SessionEnergy;
use regatta_types::RunId;
use serde_json::{Value, json};

use super::{
    rails_power::RailsPower,
    session_times::SessionTimes,
    session_verdict::{SessionVerdict, is_simulated},
    session_watch::{self, Observation},
};
use regatta_lab_store::{MeterRow, MeterSettings, PowerVerdict, RunDraft};

/// The largest file whose hash is recorded; the official programs' logs of a day are smaller.
const MAX: u64 = 1 << 30;

/// The record's name in the session's directory.
const FILE: &str = "session.json";
/// The largest record that is read.
const MAX_RECORD: u64 = 16 << 20;

/// A recorded session.
pub struct SessionRecord {
    document: Value,
    energy: Option<SessionEnergy>,
}

/// The facts of a session that its record contains.
pub struct SessionFacts<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its meter.
    pub meter: &'a MeterRow,
    /// The machine of the official client, in words.
    pub machine: String,
    /// The run that was made twice.
    pub draft: &'a RunDraft,
    /// The runs that were requested.
    pub runs: Vec<(&'static str, RunId)>,
    /// Ranging runs that were INVALID by a guessed rate, and were repeated in the session.
    pub repeated: Vec<RunId>,
    /// The reasons why these runs cannot be submitted.
    pub obstacles: Vec<String>,
    /// The observations beside the session.
    pub observations: Vec<Observation>,
    /// The times of its steps.
    pub times: SessionTimes,
    /// The power of the board's rails in the testing run.
    pub rails: Option<RailsPower>,
    /// Whether Regatta's own programs made it.
    pub informative: bool,
    /// The directory on the machine of the official client that has the files, when they could not be fetched.
    pub unfetched: Option<String>,
}

/// A session that did not end, or could not be judged.
pub struct UnjudgedSession {
    /// The error chain as a sentence, and the hint on lines of its own.
    pub reason: String,
}

impl SessionRecord {
    /// Writes `session.json` into the session's directory. `judged` has the verdict on a complete session.
    ///
    /// # Errors
    /// Returns an error when a file of the session cannot be read, or the document cannot be written.
    pub fn write(
        directory: &Path,
        facts: &SessionFacts<'_>,
        judged: Result<SessionVerdict, UnjudgedSession>,
    ) -> io::Result<Self> {
        let session = directory.join("session");
        let simulated = is_simulated(directory);
        let SessionFacts {
            meter, draft, runs, ..
        } = facts;
        let mut document = json!({
            "schema": 1,
            "session": facts.id,
            "meter": { "name": meter.name, "settings": meter.settings },
            "device": draft.spec.device.as_str(),
            "machine": facts.machine,
            "benchmark": draft.spec.benchmark.name,
            "scenario": draft.spec.scenario,
            "round": draft.spec.round,
            "state": draft.spec.state,
            "simulated": simulated,
            "informative": facts.informative,
            "obstacles": facts.obstacles,
            "unfetched": facts.unfetched,
            "steps": facts.times.document(),
            "observations": session_watch::document(&facts.observations),
            "runs": runs.iter().map(|(part, run)| ((*part).to_owned(), json!(run))).collect::<serde_json::Map<_, _>>(),
            "repeated": facts.repeated,
            "directory": session.display().to_string(),
            "sha256": hashes(&session)?,
        });
        let energy = match judged {
            Ok(verdict) => add_verdict(&mut document, verdict),
            Err(UnjudgedSession { reason }) => {
                set(&mut document, "reason", json!(reason));
                None
            }
        };
        let beside = energy.and_then(|energy| facts.times.beside(energy.seconds));
        set(&mut document, "seconds_beside_window", json!(beside));
        add_rails(&mut document, energy.as_ref(), facts.rails.as_ref());
        store(directory, &document)?;
        Ok(Self { document, energy })
    }

    /// Returns the login and the directory of files that could not be fetched.
    pub fn unfetched(&self) -> Option<(&str, &str)> {
        let text = |key: &str| self.document.get(key).and_then(Value::as_str);
        text("machine").zip(text("unfetched"))
    }

    /// Returns whether a run was a ranging run of the session that was repeated.
    pub fn has_repeated(&self, run: RunId) -> bool {
        let runs = self.document.get("repeated").and_then(Value::as_array);
        runs.is_some_and(|runs| runs.contains(&json!(run)))
    }

    /// Returns the round whose rules apply, and the settings of the meter at that time.
    pub fn rules(&self) -> Option<(&str, MeterSettings)> {
        let settings = self.document.get("meter")?.get("settings")?.clone();
        let round = self.document.get("round")?.as_str()?;
        Some((round, serde_json::from_value(settings).ok()?))
    }

    /// Records the verdict on a session whose files were fetched later.
    ///
    /// # Errors
    /// Returns an error when a file of the session cannot be read, or the document cannot be written.
    pub fn fetched(
        mut self,
        directory: &Path,
        verdict: SessionVerdict,
        rails: Option<&RailsPower>,
    ) -> io::Result<Self> {
        let why = self
            .document
            .as_object_mut()
            .and_then(|fields| fields.remove("reason"));
        let fetched = json!({ "time": jiff::Timestamp::now(), "failed_before": why });
        for (key, value) in [
            ("unfetched", Value::Null),
            ("fetched", fetched),
            ("simulated", json!(is_simulated(directory))),
            ("sha256", json!(hashes(&directory.join("session"))?)),
        ] {
            set(&mut self.document, key, value);
        }
        self.energy = add_verdict(&mut self.document, verdict);
        add_rails(&mut self.document, self.energy.as_ref(), rails);
        store(directory, &self.document)?;
        Ok(self)
    }

    /// Reads the record of the session in `directory`. `None` while the session goes on, or when it ended without a readable record.
    pub fn read(directory: &Path) -> Option<Self> {
        let bytes = regular_file::read(&directory.join(FILE), MAX_RECORD).ok()?;
        let document: Value = serde_json::from_slice(&bytes).ok().filter(Value::is_object)?;
        let energy = document.get("energy").cloned();
        Some(Self {
            energy: energy.and_then(|energy| serde_json::from_value(energy).ok()),
            document,
        })
    }

    /// Returns the document.
    pub const fn document(&self) -> &Value {
        &self.document
    }

    /// Returns the verdict of a complete session.
    pub fn verdict(&self) -> Option<PowerVerdict> {
        let word = self.document.get("verdict").and_then(Value::as_str)?;
        word.parse().ok()
    }

    /// Returns the reason why it is not complete.
    pub fn reason(&self) -> Option<&str> {
        self.document.get("reason").and_then(Value::as_str)
    }

    /// Returns whether PTDaemon was a simulated one. `None` when it has not reported what it is.
    pub fn simulated(&self) -> Option<bool> {
        self.document.get("simulated").and_then(Value::as_bool)
    }

    /// Returns whether Regatta's own programs made it.
    pub fn is_informative(&self) -> bool {
        self.document.get("informative") == Some(&Value::Bool(true))
    }

    /// Returns the power of the board's rails in the testing run, and the meter's divided by it.
    pub fn rails(&self) -> Option<(f64, f64)> {
        let number = |key: &str| self.document.pointer(key).and_then(Value::as_f64);
        number("/rails/watts").zip(number("/rails/meter_over_rails"))
    }

    /// Returns the reasons why its runs cannot be submitted.
    pub fn obstacles(&self) -> Vec<String> {
        self.texts("obstacles")
    }

    /// Returns the findings of the checks.
    pub fn findings(&self) -> Vec<String> {
        self.texts("findings")
    }

    /// Returns the observations beside the session, with times.
    pub fn observations(&self) -> Vec<String> {
        let values = self.document.get("observations").and_then(Value::as_array);
        let words = |value: &Value| {
            Some(format!(
                "{}  {}",
                value.get("time")?.as_str()?,
                value.get("text")?.as_str()?
            ))
        };
        values.into_iter().flatten().filter_map(words).collect()
    }

    fn texts(&self, key: &str) -> Vec<String> {
        let values = self
            .document
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        values
            .filter_map(|value| value.as_str().map(str::to_owned))
            .collect()
    }

    /// Returns whether the checkers accept it, also as a rehearsal or an informative session.
    pub fn passes(&self) -> bool {
        self.verdict()
            .is_some_and(|verdict| verdict != PowerVerdict::Fail)
    }

    /// Returns the energy of a complete session's testing run.
    pub const fn energy(&self) -> Option<&SessionEnergy> {
        self.energy.as_ref()
    }
}

/// Writes the document beside the session's files.
fn store(directory: &Path, document: &Value) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(document)?;
    text.push('\n');
    AtomicFile::new(&directory.join(FILE)).write(text.as_bytes())
}

fn set(document: &mut Value, key: &str, value: Value) {
    if let Value::Object(fields) = document {
        fields.insert(key.to_owned(), value);
    }
}

/// Adds a verdict. A session that is known to be no measurement never passes.
fn add_verdict(document: &mut Value, verdict: SessionVerdict) -> Option<SessionEnergy> {
    let is_measured = document.get("simulated") == Some(&Value::Bool(false));
    let has_obstacles = document
        .get("obstacles")
        .and_then(Value::as_array)
        .is_none_or(|obstacles| !obstacles.is_empty());
    let found = match (verdict.accepts(), is_measured && !has_obstacles) {
        (true, _) if verdict.official.is_none() => PowerVerdict::Informative,
        (true, true) => PowerVerdict::Pass,
        (true, false) => PowerVerdict::Rehearsal,
        (false, _) => PowerVerdict::Fail,
    };
    set(document, "verdict", json!(found));
    if let Some(official) = &verdict.official {
        set(document, "official_checks", json!(official.checks));
        set(document, "official_summary", json!(official.summary()));
    }
    set(document, "findings", json!(verdict.findings));
    set(document, "energy", json!(verdict.energy));
    verdict.energy
}

/// Adds the power of the board's rails beside the meter's.
fn add_rails(document: &mut Value, energy: Option<&SessionEnergy>, rails: Option<&RailsPower>) {
    if let Some((energy, rails)) = energy.zip(rails) {
        set(document, "rails", rails.beside(energy.watts));
    }
}

/// Returns the SHA-256 of every file, by its path below the directory.
fn hashes(directory: &Path) -> io::Result<serde_json::Map<String, Value>> {
    let mut hashes = serde_json::Map::new();
    let mut open = vec![PathBuf::new()];
    while let Some(below) = open.pop() {
        let Ok(entries) = fs::read_dir(directory.join(&below)) else {
            continue;
        };
        for entry in entries {
            let entry = entry?;
            let path = below.join(entry.file_name());
            if entry.path().is_dir() {
                open.push(path);
            } else {
                let bytes = regular_file::read(&entry.path(), MAX)?;
                hashes.insert(path.display().to_string(), json!(sha256_hex(&bytes)));
            }
        }
    }
    Ok(hashes)
}
