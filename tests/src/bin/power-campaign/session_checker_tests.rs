//! Tests of the checker on a small session: the good one passes, and each damage is reported as what it is.

use std::fs;

use regatta_tests::faults::{
    run_checker::{EVIDENCE, SIGNATURE},
    run_mutation::seal_again,
    write_log::{Content, FileWrites, Writes},
};
use ring::{
    rand::SystemRandom,
    signature::{Ed25519KeyPair, KeyPair as _},
};
use serde_json::json;
use tempfile::TempDir;

use crate::{
    session_checker::{self, CheckedSession, SessionRun, SessionViolation},
    session_mutation,
};

/// A good session and the account of its files.
struct GoodSession {
    directory: TempDir,
    key: Ed25519KeyPair,
    server: Writes,
    client: Writes,
    runs: [Writes; 2],
}

const RUNS: [&str; 2] = ["r1", "r2"];
const LOGS: [&str; 2] = ["mlperf_log_detail.txt", "mlperf_log_summary.txt"];

impl GoodSession {
    fn make() -> Self {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let mut session = Self {
            directory: tempfile::tempdir().unwrap(),
            key: Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap(),
            server: Writes::new(),
            client: Writes::new(),
            runs: [Writes::new(), Writes::new()],
        };
        for name in ["ptd_logs.txt", "server.json", "server.log"] {
            session.download(&format!("power/{name}"));
        }
        for name in ["client.json", "client.log"] {
            session.write(&format!("power/{name}"), name);
        }
        for (number, part) in ["ranging", "run_1"].into_iter().enumerate() {
            session.download(&format!("{part}/spl.txt"));
            for log in LOGS {
                let text = format!("{log} of {part}");
                session.write(&format!("{part}/{log}"), &text);
                session.runs[number].insert(log.to_owned(), written(&text));
                let files = session.directory.path().join(RUNS[number]).join("files");
                fs::create_dir_all(&files).unwrap();
                fs::write(files.join(log), text).unwrap();
            }
            let files = session.directory.path().join(RUNS[number]).join("files");
            fs::write(
                files.join(EVIDENCE),
                json!({ "run": RUNS[number], "attempts": [{}], "files": [] }).to_string(),
            )
            .unwrap();
            seal_again(&files, &session.key).unwrap();
        }
        let hashes: serde_json::Map<_, _> = session
            .client
            .iter()
            .map(|(name, writes)| (name.clone(), json!(writes.last.as_ref().unwrap().sha256)))
            .collect();
        let record = json!({ "session": "s1", "sha256": hashes }).to_string();
        fs::write(session.directory.path().join("s1/session.json"), record).unwrap();
        session
    }

    /// The client writes a file of the session.
    fn write(&mut self, name: &str, text: &str) {
        let path = self.directory.path().join("s1/session").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self.client.insert(name.to_owned(), written(text));
    }

    /// The client receives a file that the server has written.
    fn download(&mut self, name: &str) {
        let text = format!("{name} of the server");
        self.server.insert(name.to_owned(), written(&text));
        self.write(name, &text);
    }

    fn as_recorded(&self) -> CheckedSession<'_> {
        let run = |number: usize| {
            Some(SessionRun {
                id: RUNS[number],
                coordinator: self.directory.path().join(RUNS[number]),
                writes: &self.runs[number],
            })
        };
        CheckedSession {
            id: "s1",
            is_good: true,
            may_lack_record: false,
            directory: self.directory.path().join("s1"),
            server: &self.server,
            client: &self.client,
            runs: [run(0), run(1)],
            key: self.key.public_key().as_ref(),
        }
    }
}

fn written(text: &str) -> FileWrites {
    FileWrites {
        last: Some(Content::of(text.as_bytes())),
        replacements: Vec::new(),
    }
}

fn violations(session: &CheckedSession<'_>) -> Vec<SessionViolation> {
    session_checker::check(session).unwrap().1
}

#[test]
fn a_good_session_has_no_violation() {
    let session = GoodSession::make();
    let (compared, found) = session_checker::check(&session.as_recorded()).unwrap();
    assert_eq!((compared, found), (11, Vec::new()));
}

#[test]
fn every_damage_is_reported() {
    let session = GoodSession::make();
    let scratch = tempfile::tempdir().unwrap();
    let missed = session_mutation::undetected(&session.as_recorded(), &session.key, scratch.path());
    assert_eq!(missed.unwrap(), [""; 0]);
}

#[test]
fn checker_that_trusts_the_session_misses_damage_and_is_reported() {
    let mut session = GoodSession::make();
    // An account that allows whatever is there, as a checker would that compares the session with its own documents.
    let shortened = |text: String| Content::of(&text.as_bytes()[..text.len() / 2]);
    for (name, writes) in &mut session.server {
        writes
            .replacements
            .push(shortened(format!("{name} of the server")));
    }
    let scratch = tempfile::tempdir().unwrap();
    let missed = session_mutation::undetected(&session.as_recorded(), &session.key, scratch.path());
    assert_eq!(
        missed.unwrap(),
        [
            "a file shortened before the record",
            "samples lost before the record"
        ]
    );
}

#[test]
fn losses_are_named() {
    let session = GoodSession::make();
    let official = session.directory.path().join("s1/session");
    fs::write(official.join("run_1/spl.txt"), "fewer").unwrap();
    fs::remove_file(official.join("power/client.log")).unwrap();
    let found = violations(&session.as_recorded());
    let unequal = SessionViolation::Unequal {
        name: "run_1/spl.txt".to_owned(),
        written: 27,
        found: 5,
    };
    assert!(found.contains(&unequal), "{found:?}");
    let name = "power/client.log".to_owned();
    assert!(found.contains(&SessionViolation::Lost { name }), "{found:?}");
}

#[test]
fn a_record_is_demanded_unless_the_fault_prevents_it() {
    let session = GoodSession::make();
    fs::remove_file(session.directory.path().join("s1/session.json")).unwrap();
    let failed = CheckedSession {
        is_good: false,
        ..session.as_recorded()
    };
    assert_eq!(violations(&failed), [SessionViolation::NoRecord]);
    let killed = CheckedSession {
        may_lack_record: true,
        ..failed
    };
    assert_eq!(violations(&killed), []);
    let good = CheckedSession {
        is_good: true,
        ..killed
    };
    assert!(
        violations(&good).contains(&SessionViolation::NoRecord),
        "a good session always has a record"
    );
}

#[test]
fn the_logs_of_a_session_must_be_in_the_signed_evidence_of_its_runs() {
    let session = GoodSession::make();
    let testing = session.directory.path().join("r2/files");
    fs::write(testing.join(LOGS[0]), "another log").unwrap();
    seal_again(&testing, &session.key).unwrap();
    let name = format!("run_1/{}", LOGS[0]);
    let part = "testing";
    assert_eq!(
        violations(&session.as_recorded()),
        [SessionViolation::SignedOtherwise { part, name }]
    );
    fs::remove_file(testing.join(SIGNATURE)).unwrap();
    assert_eq!(
        violations(&session.as_recorded()),
        [SessionViolation::Unsigned { part }]
    );
    let without = CheckedSession {
        runs: [session.as_recorded().runs[0].clone(), None],
        ..session.as_recorded()
    };
    assert!(violations(&without).contains(&SessionViolation::NoRun { part }));
}
