//! What must be true for one power session, by the account of what the official programs and the run process wrote, the files in the workspace,
//! and the device's key. Of Regatta's reports it takes only whether the session is good, and which runs it is of; both must agree with the rest.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::PathBuf,
};

use regatta_tests::faults::{
    run_checker::{Files, read_files, signed_files},
    write_log::{Content, FileWrites, Writes},
};
use serde::Deserialize;

/// The record of a session, beside its files.
pub(crate) const RECORD: &str = "session.json";
/// The directory of the official files in a session's directory.
pub(crate) const OFFICIAL: &str = "session";
/// The parts of a session and their directories.
pub(crate) const PARTS: [(&str, &str); 2] = [("ranging", "ranging"), ("testing", "run_1")];

/// The program that writes a file of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writer {
    Server,
    Client,
    RunProcess,
}

/// The files of a complete session, with their writers.
const FILES: [(&str, Writer); 11] = [
    ("power/client.json", Writer::Client),
    ("power/client.log", Writer::Client),
    ("power/ptd_logs.txt", Writer::Server),
    ("power/server.json", Writer::Server),
    ("power/server.log", Writer::Server),
    ("ranging/mlperf_log_detail.txt", Writer::RunProcess),
    ("ranging/mlperf_log_summary.txt", Writer::RunProcess),
    ("ranging/spl.txt", Writer::Server),
    ("run_1/mlperf_log_detail.txt", Writer::RunProcess),
    ("run_1/mlperf_log_summary.txt", Writer::RunProcess),
    ("run_1/spl.txt", Writer::Server),
];

/// A run of a session.
#[derive(Clone)]
pub(crate) struct SessionRun<'a> {
    /// Its id, as the list of sessions names it.
    pub(crate) id: &'a str,
    /// Its directory on the coordinator.
    pub(crate) coordinator: PathBuf,
    /// What was written on the device while the session ran.
    pub(crate) writes: &'a Writes,
}

pub(crate) struct CheckedSession<'a> {
    pub(crate) id: &'a str,
    /// Whether it is recorded as good.
    pub(crate) is_good: bool,
    /// Whether its fault may have prevented the record: its process was killed, or the workspace's disk was full.
    pub(crate) may_lack_record: bool,
    /// Its directory in the workspace.
    pub(crate) directory: PathBuf,
    /// What the official server wrote.
    pub(crate) server: &'a Writes,
    /// What the official client wrote.
    pub(crate) client: &'a Writes,
    /// The ranging run and the testing run, as far as they are known.
    pub(crate) runs: [Option<SessionRun<'a>>; 2],
    /// The device's Ed25519 public key, from the device.
    pub(crate) key: &'a [u8],
}

/// Something that must not be true for a session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SessionViolation {
    #[error("{name} was lost")]
    Lost { name: String },
    #[error("{name} differs: {written} bytes were written, {found} were found")]
    Unequal { name: String, written: u64, found: u64 },
    #[error("{name} was not written by any program")]
    Unwritten { name: String },
    #[error("there is no readable {RECORD}")]
    NoRecord,
    #[error("{RECORD} is of another session")]
    RecordOfAnother,
    #[error("{name} is not what {RECORD} lists")]
    RecordedOtherwise { name: String },
    #[error("it is good without a {part} run")]
    NoRun { part: &'static str },
    #[error("both parts are the same run")]
    OneRun,
    #[error("the {part} run has no evidence that is signed with the device's key")]
    Unsigned { part: &'static str },
    #[error("the evidence of the {part} run does not list {name}")]
    SignedOtherwise { part: &'static str, name: String },
}

#[derive(Deserialize)]
struct Record {
    session: String,
    sha256: BTreeMap<String, String>,
}

/// Checks a session. Returns the number of files compared with what was written, and the violations.
pub(crate) fn check(session: &CheckedSession<'_>) -> io::Result<(u64, Vec<SessionViolation>)> {
    let found = read_files(&session.directory.join(OFFICIAL))?;
    let mut wrong = record_violations(session, &found)?;
    if !session.is_good {
        // No part of a failed session is used, and its programs may have ended between any two writes.
        return Ok((0, wrong));
    }
    let mut compared = 0;
    for (name, writer) in FILES {
        let written = match writer {
            Writer::Server => session.server.get(name),
            Writer::Client => session.client.get(name),
            Writer::RunProcess => run_log(session, name),
        };
        let Some((writes, bytes)) = written.zip(found.get(name)) else {
            wrong.push(SessionViolation::Lost {
                name: name.to_owned(),
            });
            continue;
        };
        compared += 1;
        let content = Content::of(bytes);
        if !writes.allow(&content) {
            wrong.push(SessionViolation::Unequal {
                name: name.to_owned(),
                written: writes.last.as_ref().map_or(0, |content| content.bytes),
                found: content.bytes,
            });
        }
    }
    for (name, bytes) in found
        .iter()
        .filter(|(name, _)| FILES.iter().all(|file| file.0 != **name))
    {
        match session.client.get(name) {
            Some(writes) if writes.allow(&Content::of(bytes)) => compared += 1,
            _ => wrong.push(SessionViolation::Unwritten { name: name.clone() }),
        }
    }
    wrong.extend(run_violations(session, &found)?);
    Ok((compared, wrong))
}

/// Returns what the run process wrote to the log of a session with this name.
fn run_log<'a>(session: &'a CheckedSession<'_>, name: &str) -> Option<&'a FileWrites> {
    let (directory, log) = name.split_once('/')?;
    let part = PARTS.iter().position(|part| part.1 == directory)?;
    session.runs[part].as_ref()?.writes.get(log)
}

fn record_violations(session: &CheckedSession<'_>, found: &Files) -> io::Result<Vec<SessionViolation>> {
    let mut wrong = Vec::new();
    let bytes = match std::fs::read(session.directory.join(RECORD)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        bytes => bytes?,
    };
    let Ok(record) = serde_json::from_slice::<Record>(&bytes) else {
        if session.is_good || !session.may_lack_record {
            wrong.push(SessionViolation::NoRecord);
        }
        return Ok(wrong);
    };
    if record.session != session.id {
        wrong.push(SessionViolation::RecordOfAnother);
    }
    let names: BTreeSet<&String> = record.sha256.keys().chain(found.keys()).collect();
    let differs = |name: &&String| {
        let hash = found.get(*name).map(|bytes| Content::of(bytes).sha256);
        hash.as_ref() != record.sha256.get(*name)
    };
    let differing = names.into_iter().filter(differs);
    wrong.extend(differing.map(|name| SessionViolation::RecordedOtherwise { name: name.clone() }));
    Ok(wrong)
}

/// Checks that both parts are runs whose signed evidence lists the logs in the session.
fn run_violations(session: &CheckedSession<'_>, found: &Files) -> io::Result<Vec<SessionViolation>> {
    let mut wrong = Vec::new();
    if let [Some(ranging), Some(testing)] = &session.runs
        && ranging.id == testing.id
    {
        wrong.push(SessionViolation::OneRun);
    }
    for ((part, directory), run) in PARTS.into_iter().zip(&session.runs) {
        let Some(run) = run else {
            wrong.push(SessionViolation::NoRun { part });
            continue;
        };
        let arrived = read_files(&run.coordinator.join("files"))?;
        let Some(signed) = signed_files(run.id, &arrived, session.key) else {
            wrong.push(SessionViolation::Unsigned { part });
            continue;
        };
        for (name, bytes) in found {
            let Some(log) = name
                .strip_prefix(directory)
                .and_then(|name| name.strip_prefix("/mlperf_log_"))
            else {
                continue;
            };
            if signed.get(&format!("mlperf_log_{log}")) != Some(&Content::of(bytes)) {
                let name = name.clone();
                wrong.push(SessionViolation::SignedOtherwise { part, name });
            }
        }
    }
    Ok(wrong)
}
