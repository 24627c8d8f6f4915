//! `session.json`: the record of a power session beside its files, also of one that failed. The document is a type of `regatta-types`.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use regatta_fsutil::{
    atomic_file::AtomicFile,
    hash::sha256_of_file,
    regular_file::{self, MAX_TEXT},
};
use regatta_types::{
    RunId,
    documents::{
        Document, DocumentError, LateTransfer, PowerSessionRecord, PowerVerdict, RecordedFailure,
        SessionMeter, SessionObservation, SessionRuns, document_name,
    },
};

use super::{
    rails_power::RailsPower,
    session_times::SessionTimes,
    session_verdict::{SessionVerdict, is_simulated},
};
use regatta_lab_store::{MeterRow, RunDraft};

/// The record of a session that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SessionRecordError {
    /// The bytes are not such a record.
    #[error("{}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The position and the cause.
        #[source]
        source: DocumentError,
    },
    /// The record, or a file that it describes, cannot be used.
    #[error("cannot use {}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
}

impl SessionRecordError {
    fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}

/// The facts of a session that its record contains.
pub(crate) struct SessionFacts<'a> {
    pub id: &'a str,
    pub meter: &'a MeterRow,
    /// The machine of the official client, in words.
    pub machine: String,
    /// The run that was made twice.
    pub draft: &'a RunDraft,
    /// The runs that were requested.
    pub runs: SessionRuns,
    /// Ranging runs that were INVALID by a guessed rate, and were repeated in the session.
    pub repeated: Vec<RunId>,
    /// The reasons why these runs cannot be submitted.
    pub obstacles: Vec<String>,
    /// The observations beside the session.
    pub observations: Vec<SessionObservation>,
    /// The times of its steps.
    pub times: SessionTimes,
    /// The power of the board's rails in the testing run.
    pub rails: Option<RailsPower>,
    /// Whether Regatta's own programs made it.
    pub informative: bool,
    /// The directory on the machine of the official client that has the files, when they could not be fetched.
    pub unfetched: Option<String>,
}

/// Writes the record into the session's directory. `judged` has the verdict on a complete session.
///
/// # Errors
/// Returns an error when a file of the session cannot be read, or the document cannot be written.
pub(crate) fn write_session_record(
    directory: &Path,
    facts: SessionFacts<'_>,
    judged: Result<SessionVerdict, RecordedFailure>,
) -> Result<PowerSessionRecord, SessionRecordError> {
    let session = directory.join("session");
    let spec = &facts.draft.spec;
    let mut record = PowerSessionRecord {
        schema: PowerSessionRecord::SCHEMA,
        session: facts.id.to_owned(),
        meter: SessionMeter {
            name: facts.meter.name.clone(),
            settings: facts.meter.settings.clone(),
        },
        device: spec.device.clone(),
        machine: facts.machine,
        benchmark: spec.benchmark.name.clone(),
        scenario: spec.scenario,
        round: spec.round.clone(),
        state: spec.state.clone(),
        simulated: is_simulated(directory),
        informative: facts.informative,
        obstacles: facts.obstacles,
        steps: facts.times.steps(),
        observations: facts.observations,
        runs: facts.runs,
        repeated: facts.repeated,
        directory: session.display().to_string(),
        unfetched: facts.unfetched,
        fetched: None,
        sha256: hashes(&session)?,
        verdict: None,
        official_checks: None,
        official_summary: None,
        findings: Vec::new(),
        energy: None,
        failure: None,
        seconds_beside_window: None,
        rails: None,
    };
    match judged {
        Ok(verdict) => add_verdict(&mut record, verdict, facts.rails.as_ref()),
        Err(failure) => record.failure = Some(failure),
    }
    let window = record.energy.map(|energy| energy.seconds);
    record.seconds_beside_window = window.and_then(|seconds| facts.times.beside(seconds));
    store(directory, &record)?;
    Ok(record)
}

/// Reads the record of the session in `directory`. Returns `None` while the session runs, or when it ended without a record.
///
/// # Errors
/// [`SessionRecordError`], with the file and the position in it.
pub fn read_session_record(directory: &Path) -> Result<Option<PowerSessionRecord>, SessionRecordError> {
    let path = directory.join(document_name::POWER_SESSION_RECORD);
    let bytes = match regular_file::read(&path, MAX_TEXT) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(SessionRecordError::at(&path)(error)),
    };
    match PowerSessionRecord::from_json(&bytes) {
        Ok(record) => Ok(Some(record)),
        Err(source) => Err(SessionRecordError::Malformed { path, source }),
    }
}

/// Records the verdict on a session whose files were fetched after its end.
///
/// # Errors
/// Returns an error when the record cannot be written.
pub fn record_late_transfer(
    mut record: PowerSessionRecord,
    directory: &Path,
    verdict: SessionVerdict,
    rails: Option<&RailsPower>,
) -> Result<PowerSessionRecord, SessionRecordError> {
    record.unfetched = None;
    record.fetched = Some(LateTransfer {
        time: jiff::Timestamp::now().to_string(),
        failed_before: record.failure.take(),
    });
    record.simulated = is_simulated(directory);
    record.sha256 = hashes(&directory.join("session"))?;
    add_verdict(&mut record, verdict, rails);
    store(directory, &record)?;
    Ok(record)
}

/// Writes the document beside the session's files.
fn store(directory: &Path, record: &PowerSessionRecord) -> Result<(), SessionRecordError> {
    let path = directory.join(document_name::POWER_SESSION_RECORD);
    let text = serde_json::to_string_pretty(record).map_err(io::Error::from);
    let written = text.and_then(|text| AtomicFile::new(&path).write(format!("{text}\n").as_bytes()));
    written.map_err(SessionRecordError::at(&path))
}

/// Adds a verdict. A session that is known not to be a measurement never passes.
fn add_verdict(record: &mut PowerSessionRecord, verdict: SessionVerdict, rails: Option<&RailsPower>) {
    let is_measured = record.simulated == Some(false) && record.obstacles.is_empty();
    record.verdict = Some(match (verdict.accepts(), is_measured) {
        (true, _) if verdict.official.is_none() => PowerVerdict::Informative,
        (true, true) => PowerVerdict::Pass,
        (true, false) => PowerVerdict::Rehearsal,
        (false, _) => PowerVerdict::Fail,
    });
    record.official_summary = verdict.official.as_ref().map(|official| official.summary());
    record.official_checks = verdict.official.map(|official| official.checks);
    record.findings = verdict.findings;
    record.energy = verdict.energy;
    record.rails = rails
        .zip(verdict.energy)
        .map(|(rails, energy)| rails.beside(energy.watts));
}

/// Returns the SHA-256 of every file, by its path below the directory.
fn hashes(directory: &Path) -> Result<BTreeMap<String, String>, SessionRecordError> {
    let mut hashes = BTreeMap::new();
    let mut open = vec![PathBuf::new()];
    while let Some(below) = open.pop() {
        let Ok(entries) = fs::read_dir(directory.join(&below)) else {
            continue;
        };
        for entry in entries {
            let entry = entry.map_err(SessionRecordError::at(directory))?;
            let path = below.join(entry.file_name());
            if entry.path().is_dir() {
                open.push(path);
            } else {
                let hash = sha256_of_file(&entry.path()).map_err(SessionRecordError::at(&entry.path()))?;
                hashes.insert(path.display().to_string(), hash.hex());
            }
        }
    }
    Ok(hashes)
}

#[cfg(test)]
mod tests {
    use regatta_types::documents::{EndCause, SessionEnergy};

    use super::*;
    use crate::official_verdict::OfficialVerdict;
    use regatta_lab_store::{Store, examples::example_draft};

    fn written(directory: &Path) -> PowerSessionRecord {
        let store = Store::open(&directory.join("db")).unwrap();
        let settings = serde_json::from_str(
            r#"{"ptd": "/opt/ptd", "python": "python3", "device_type": 49, "interface": "", "device_port": "/dev/usbtmc0",
                "channel": [], "gpib_board": null, "port": 4950, "ptd_port": 8888, "ntp": "ntp"}"#,
        );
        store.meters().put("lab", &settings.unwrap(), false).unwrap();
        let draft = example_draft("ab".repeat(16).parse().unwrap());
        let facts = SessionFacts {
            id: "one",
            meter: &store.meters().get("lab").unwrap().unwrap(),
            machine: "me@boat".to_owned(),
            draft: &draft,
            runs: SessionRuns::default(),
            repeated: Vec::new(),
            obstacles: Vec::new(),
            observations: Vec::new(),
            times: SessionTimes::default(),
            rails: None,
            informative: false,
            unfetched: Some("/home/me/session".to_owned()),
        };
        fs::create_dir_all(directory.join("session/power")).unwrap();
        fs::write(directory.join("session/power/client.json"), "{}").unwrap();
        let failure = RecordedFailure {
            cause: EndCause::Infrastructure,
            reason: "it broke".to_owned(),
        };
        write_session_record(directory, facts, Err(failure)).unwrap()
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_takes_a_later_verdict() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(read_session_record(directory.path()).unwrap(), None);
        let record = written(directory.path());
        assert_eq!((record.reason(), record.passes()), (Some("it broke"), false));
        assert_eq!(record.sha256.keys().collect::<Vec<_>>(), ["power/client.json"]);
        assert_eq!(
            read_session_record(directory.path()).unwrap().as_ref(),
            Some(&record)
        );
        let verdict = SessionVerdict {
            official: Some(OfficialVerdict::read(&"[x] Check\n".repeat(11), true)),
            findings: Vec::new(),
            energy: Some(SessionEnergy {
                watts: 10.0,
                seconds: 2.0,
                joules: 20.0,
                millijoules_per_query: None,
                samples_per_joule: None,
            }),
        };
        let record = record_late_transfer(record, directory.path(), verdict, None).unwrap();
        assert_eq!(
            (record.verdict, record.reason(), &record.unfetched),
            (Some(PowerVerdict::Rehearsal), None, &None),
            "no PTDaemon has said that it is a real one"
        );
        let before = record
            .fetched
            .as_ref()
            .and_then(|late| late.failed_before.as_ref());
        assert_eq!(before.map(|failure| failure.reason.as_str()), Some("it broke"));
        assert_eq!(read_session_record(directory.path()).unwrap(), Some(record));
    }

    #[test]
    fn a_foreign_or_damaged_record_is_refused_with_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let record = written(directory.path());
        let path = directory.path().join(document_name::POWER_SESSION_RECORD);
        let text = serde_json::to_string_pretty(&record).unwrap();
        for (bytes, part) in [
            (text.replace("\"Offline\"", "\"Online\""), "line 22 column"),
            (text.replace("\"schema\": 1", "\"schema\": 9"), "has schema 9"),
            ("{\"schema\": 1}".to_owned(), "missing field `session`"),
            (text[..text.len() / 2].to_owned(), "EOF while parsing"),
            ("not JSON".to_owned(), "line 1 column"),
        ] {
            fs::write(&path, &bytes).unwrap();
            let error = read_session_record(directory.path()).unwrap_err();
            let sentence = regatta_text::ErrorChain(&error).to_string();
            assert!(
                sentence.starts_with(&path.display().to_string()) && sentence.contains(part),
                "{sentence}"
            );
        }
    }
}
