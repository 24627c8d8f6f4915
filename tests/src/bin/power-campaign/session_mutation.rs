//! Damages to a good session, each of which the checker must report: also such that every document of Regatta agrees with, under a new valid
//! signature. Every lab ends with them on a real session, so that a checker that sees nothing fails its campaign.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use regatta_tests::faults::{
    run_checker::{EVIDENCE, SIGNATURE, read_files},
    run_mutation::{change_middle, copy_files, seal_again, shorten},
    write_log::Content,
};
use ring::signature::Ed25519KeyPair;
use serde_json::{Value, json};

use crate::session_checker::{self, CheckedSession, OFFICIAL, RECORD, SessionRun};

const PTD_LOG: &str = "power/ptd_logs.txt";
const SAMPLES: &str = "run_1/spl.txt";
const TESTING_LOG: &str = "run_1/mlperf_log_detail.txt";
const RANGING_LOG: &str = "ranging/mlperf_log_detail.txt";

/// Copies of a session that a damage changes.
struct Copies<'a> {
    session: &'a Path,
    /// The official files of the session.
    official: PathBuf,
    /// The files of its testing run.
    run: PathBuf,
    /// The device's key.
    key: &'a Ed25519KeyPair,
}

type Damage = fn(&Copies<'_>) -> io::Result<()>;

/// The damages by name.
const DAMAGES: [(&str, Damage); 14] = [
    ("a lost file", |copies| {
        fs::remove_file(copies.official.join(PTD_LOG))
    }),
    ("a shortened file", |copies| {
        shorten(&copies.official.join(PTD_LOG))
    }),
    ("a changed file", |copies| {
        change_middle(&copies.official.join(TESTING_LOG))
    }),
    ("an added file", |copies| {
        fs::write(copies.official.join("power/foreign.txt"), "x")
    }),
    ("a lost record", |copies| {
        fs::remove_file(copies.session.join(RECORD))
    }),
    ("a record of another session", |copies| {
        change_record(copies.session, |record| record["session"] = json!("another"))
    }),
    ("a lost session", |copies| fs::remove_dir_all(copies.session)),
    ("a file lost before the record", |copies| {
        fs::remove_file(copies.official.join("power/server.json"))?;
        record_again(copies.session)
    }),
    ("a file shortened before the record", |copies| {
        shorten(&copies.official.join(PTD_LOG))?;
        record_again(copies.session)
    }),
    ("samples lost before the record", |copies| {
        shorten(&copies.official.join(SAMPLES))?;
        record_again(copies.session)
    }),
    ("the ranging run's log in both parts", |copies| {
        fs::copy(
            copies.official.join(RANGING_LOG),
            copies.official.join(TESTING_LOG),
        )?;
        record_again(copies.session)
    }),
    ("lost evidence", |copies| {
        fs::remove_file(copies.run.join(EVIDENCE))
    }),
    ("a forged signature", |copies| {
        fs::write(copies.run.join(SIGNATURE), "00".repeat(64) + "\n")
    }),
    ("a log shortened before the device signed", |copies| {
        shorten(&copies.official.join(TESTING_LOG))?;
        fs::copy(
            copies.official.join(TESTING_LOG),
            copies.run.join("mlperf_log_detail.txt"),
        )?;
        seal_again(&copies.run, copies.key)?;
        record_again(copies.session)
    }),
];

/// Returns the damages to a good session that the checker does not report. `scratch` is an existing directory for copies.
pub(crate) fn undetected(
    session: &CheckedSession<'_>,
    key: &Ed25519KeyPair,
    scratch: &Path,
) -> io::Result<Vec<&'static str>> {
    let mut undetected = Vec::new();
    let [ranging, Some(testing)] = &session.runs else {
        return Ok(vec!["no testing run"]);
    };
    for (number, (name, damage)) in DAMAGES.into_iter().enumerate() {
        let copy = scratch.join(number.to_string());
        let [directory, coordinator] = ["session", "testing"].map(|name| copy.join(name));
        copy_files(&session.directory, &directory)?;
        copy_files(&testing.coordinator, &coordinator)?;
        damage(&Copies {
            session: &directory,
            official: directory.join(OFFICIAL),
            run: coordinator.join("files"),
            key,
        })?;
        let testing = SessionRun {
            coordinator,
            ..testing.clone()
        };
        let damaged = CheckedSession {
            directory,
            runs: [ranging.clone(), Some(testing)],
            ..*session
        };
        if session_checker::check(&damaged)?.1.is_empty() {
            undetected.push(name);
        }
        fs::remove_dir_all(&copy)?;
    }
    let one_run = CheckedSession {
        directory: session.directory.clone(),
        runs: [ranging.clone(), ranging.clone()],
        ..*session
    };
    if session_checker::check(&one_run)?.1.is_empty() {
        undetected.push("one run as both parts");
    }
    Ok(undetected)
}

fn change_record(session: &Path, change: impl FnOnce(&mut Value)) -> io::Result<()> {
    let path = session.join(RECORD);
    let mut record: Value = serde_json::from_slice(&fs::read(&path)?)?;
    change(&mut record);
    fs::write(path, serde_json::to_vec(&record)?)
}

/// Makes the record list the present files.
fn record_again(session: &Path) -> io::Result<()> {
    let present = read_files(&session.join(OFFICIAL))?;
    let hashes = present
        .iter()
        .map(|(name, bytes)| (name.clone(), json!(Content::of(bytes).sha256)));
    let hashes = hashes.collect();
    change_record(session, |record| record["sha256"] = Value::Object(hashes))
}
