//! `session.json`: what is kept of a power session beside its files, also of one that failed.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use regatta_fsutil::{atomic_file::AtomicFile, hash::sha256_hex, regular_file};
use regatta_submission::check::power::SessionEnergy;
use regatta_types::RunId;
use serde_json::{Value, json};

use crate::{
    exit::Failure,
    store::{MeterRow, RunDraft},
};

/// The largest file whose hash is recorded; the official programs' logs of a day are smaller.
const LARGEST: u64 = 1 << 30;

/// A recorded session.
pub(crate) struct SessionRecord {
    document: Value,
    energy: Option<SessionEnergy>,
}

impl SessionRecord {
    /// Writes `session.json` into the session's directory. `judged` has the verdicts of a complete session.
    pub(crate) fn write(
        directory: &Path,
        id: &str,
        meter: &MeterRow,
        draft: &RunDraft,
        runs: &[(&'static str, RunId)],
        judged: Result<(Value, Option<SessionEnergy>), Failure>,
    ) -> io::Result<Self> {
        let session = directory.join("session");
        let mut document = json!({
            "schema": 1,
            "session": id,
            "meter": { "name": meter.name, "settings": meter.settings },
            "device": draft.spec.device.as_str(),
            "benchmark": draft.spec.benchmark.name,
            "scenario": draft.spec.scenario,
            "round": draft.spec.round,
            "state": draft.spec.state,
            "runs": runs.iter().map(|(part, run)| ((*part).to_owned(), json!(run))).collect::<serde_json::Map<_, _>>(),
            "directory": session.display().to_string(),
            "sha256": hashes(&session)?,
        });
        let mut measured = None;
        if let Value::Object(map) = &mut document {
            match judged {
                Ok((verdict, energy)) => {
                    measured = energy;
                    map.insert("energy".to_owned(), json!(energy));
                    map.extend(verdict.as_object().cloned().unwrap_or_default());
                }
                Err(failure) => {
                    let reason = failure.to_string();
                    map.insert("reason".to_owned(), json!(reason.trim_start_matches("regatta: ")));
                }
            }
        }
        let mut text = serde_json::to_string_pretty(&document)?;
        text.push('\n');
        AtomicFile::new(&directory.join("session.json")).write(text.as_bytes())?;
        Ok(Self {
            document,
            energy: measured,
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
