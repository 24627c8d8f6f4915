//! `session.json`: what is kept of a power session beside its files, also of one that failed.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use regatta_fsutil::{atomic_file::AtomicFile, hash::sha256_hex, regular_file};
use regatta_submission::check::power::SessionEnergy;
use regatta_types::RunId;
use serde_json::{Value, json};

use super::{
    session_verdict::{SessionVerdict, is_simulated},
    session_watch::{self, Observation},
};
use crate::{
    exit::Failure,
    store::{MeterRow, RunDraft},
};

/// The largest file whose hash is recorded; the official programs' logs of a day are smaller.
const LARGEST: u64 = 1 << 30;

/// The record's name in the session's directory.
const FILE: &str = "session.json";
/// The largest record that is read.
const LARGEST_RECORD: u64 = 16 << 20;

/// A recorded session.
pub(crate) struct SessionRecord {
    document: Value,
    energy: Option<SessionEnergy>,
}

/// The facts of a session that its record contains.
pub(crate) struct SessionFacts<'a> {
    /// Its id.
    pub(crate) id: &'a str,
    /// Its meter.
    pub(crate) meter: &'a MeterRow,
    /// The machine of the official client, in words.
    pub(crate) machine: String,
    /// The run that was made twice.
    pub(crate) draft: &'a RunDraft,
    /// The runs that were requested.
    pub(crate) runs: Vec<(&'static str, RunId)>,
    /// Why these runs cannot be submitted.
    pub(crate) obstacles: Vec<String>,
    /// What was found beside the session.
    pub(crate) observations: Vec<Observation>,
}

impl SessionRecord {
    /// Writes `session.json` into the session's directory. `judged` has the verdict on a complete session.
    ///
    /// # Errors
    /// When a file of the session cannot be read, or the document cannot be written.
    pub(crate) fn write(
        directory: &Path,
        facts: &SessionFacts<'_>,
        judged: Result<SessionVerdict, Failure>,
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
            "obstacles": facts.obstacles,
            "observations": session_watch::document(&facts.observations),
            "runs": runs.iter().map(|(part, run)| ((*part).to_owned(), json!(run))).collect::<serde_json::Map<_, _>>(),
            "directory": session.display().to_string(),
            "sha256": hashes(&session)?,
        });
        let mut energy = None;
        let more = match judged {
            Ok(verdict) => {
                // A session that is known to be no measurement never passes.
                let is_result = simulated == Some(false) && facts.obstacles.is_empty();
                let word = match (verdict.accepts(), is_result) {
                    (true, true) => "pass",
                    (true, false) => "rehearsal",
                    (false, _) => "fail",
                };
                energy = verdict.energy;
                json!({
                    "verdict": word,
                    "official_checks": verdict.official.checks,
                    "official_summary": verdict.official.summary(),
                    "findings": verdict.findings,
                    "energy": energy,
                })
            }
            Err(failure) => {
                let reason = failure.to_string();
                json!({ "reason": reason.trim_start_matches("regatta: ") })
            }
        };
        if let (Value::Object(document), Value::Object(more)) = (&mut document, more) {
            document.extend(more);
        }
        let mut text = serde_json::to_string_pretty(&document)?;
        text.push('\n');
        AtomicFile::new(&directory.join(FILE)).write(text.as_bytes())?;
        Ok(Self { document, energy })
    }

    /// Reads the record of the session in `directory`. `None` while the session goes on, or when it ended without a readable record.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        let bytes = regular_file::read(&directory.join(FILE), LARGEST_RECORD).ok()?;
        let document: Value = serde_json::from_slice(&bytes).ok().filter(Value::is_object)?;
        let energy = document.get("energy").cloned();
        Some(Self {
            energy: energy.and_then(|energy| serde_json::from_value(energy).ok()),
            document,
        })
    }

    /// The document.
    pub(crate) const fn document(&self) -> &Value {
        &self.document
    }

    /// The verdict of a complete session.
    pub(crate) fn verdict(&self) -> Option<&str> {
        self.document.get("verdict").and_then(Value::as_str)
    }

    /// Why it is not complete.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.document.get("reason").and_then(Value::as_str)
    }

    /// Whether PTDaemon was a simulated one. `None` when it has not reported what it is.
    pub(crate) fn simulated(&self) -> Option<bool> {
        self.document.get("simulated").and_then(Value::as_bool)
    }

    /// Why its runs cannot be submitted.
    pub(crate) fn obstacles(&self) -> Vec<String> {
        self.texts("obstacles")
    }

    /// The findings of the checks.
    pub(crate) fn findings(&self) -> Vec<String> {
        self.texts("findings")
    }

    /// What was found beside the session, with times.
    pub(crate) fn observations(&self) -> Vec<String> {
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

    /// Whether both checkers accept it, also as a rehearsal.
    pub(crate) fn passes(&self) -> bool {
        matches!(self.verdict(), Some("pass" | "rehearsal"))
    }

    /// The energy of a complete session's testing run.
    pub(crate) const fn energy(&self) -> Option<&SessionEnergy> {
        self.energy.as_ref()
    }
}

/// SHA-256 of every file, by its path below the directory.
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
                let bytes = regular_file::read(&entry.path(), LARGEST)?;
                hashes.insert(path.display().to_string(), json!(sha256_hex(&bytes)));
            }
        }
    }
    Ok(hashes)
}
