//! Tests of the checker on a small run: the good one passes, and each damage is reported as what it is.

use std::fs;

use ring::{
    rand::SystemRandom,
    signature::{Ed25519KeyPair, KeyPair as _},
};
use tempfile::TempDir;

use super::{
    run_checker::{self, ACCURACY_LOG, CheckedRun, Compared, EVIDENCE, RunViolation, SIGNATURE},
    run_mutation,
    write_log::{Content, FileWrites, Writes},
};

/// A good run on both sides, and the account of its files.
struct GoodRun {
    directory: TempDir,
    key: Ed25519KeyPair,
    writes: Writes,
}

const RESULT: [(&str, &str); 8] = [
    ("attempt.json", "{}"),
    ("mlperf.conf", "*.*.x = 1\n"),
    (ACCURACY_LOG, "[{\"qsl_idx\": 0},\n{\"qsl_idx\": 1}]"),
    (
        "mlperf_log_detail.txt",
        ":::MLLOG {\"key\": \"loadgen_version\"}\n",
    ),
    ("mlperf_log_summary.txt", "Result is : VALID\n"),
    ("run.log", ""),
    ("telemetry.csv", "time\n"),
    ("user.conf", "*.*.y = 1\n"),
];

impl GoodRun {
    fn make() -> Self {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let key = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
        let listed: Vec<_> = RESULT
            .iter()
            .map(|(name, text)| {
                let content = Content::of(text.as_bytes());
                serde_json::json!({ "name": name, "bytes": content.bytes, "sha256": content.sha256 })
            })
            .collect();
        let evidence = serde_json::json!({ "run": "r1", "attempts": [{}], "files": listed }).to_string();
        let signature: String = key
            .sign(evidence.as_bytes())
            .as_ref()
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        let mut run = Self {
            directory: tempfile::tempdir().unwrap(),
            key,
            writes: Writes::new(),
        };
        for (name, text) in RESULT {
            run.write(name, text.as_bytes());
        }
        run.write(EVIDENCE, evidence.as_bytes());
        run.write(SIGNATURE, (signature + "\n").as_bytes());
        run
    }

    fn write(&mut self, name: &str, bytes: &[u8]) {
        for side in ["device", "coordinator"] {
            let files = self.directory.path().join(side).join("files");
            fs::create_dir_all(&files).unwrap();
            fs::write(files.join(name), bytes).unwrap();
        }
        let last = Some(Content::of(bytes));
        self.writes.insert(
            name.to_owned(),
            FileWrites {
                last,
                replacements: Vec::new(),
            },
        );
    }

    fn as_reported(&self) -> CheckedRun<'_> {
        CheckedRun {
            id: "r1",
            phase: "done",
            reason: "",
            is_recorded: true,
            is_complete: true,
            device: self.directory.path().join("device"),
            coordinator: self.directory.path().join("coordinator"),
            writes: &self.writes,
            disk_was_full: false,
            key: self.key.public_key().as_ref(),
            answers: Some(2),
        }
    }
}

fn violations(run: &CheckedRun<'_>) -> Vec<RunViolation> {
    run_checker::check(run).unwrap().1
}

#[test]
fn a_good_run_has_no_violation() {
    let run = GoodRun::make();
    let (compared, found) = run_checker::check(&run.as_reported()).unwrap();
    assert_eq!(found, []);
    assert_eq!(compared.files, RESULT.len() as u64 + 2);
    assert_eq!(
        compared.reported_incomplete,
        Compared::default().reported_incomplete
    );
}

#[test]
fn every_damage_is_reported() {
    let run = GoodRun::make();
    let scratch = tempfile::tempdir().unwrap();
    assert_eq!(
        run_mutation::undetected(&run.as_reported(), &run.key, scratch.path()).unwrap(),
        [""; 0]
    );
    // The device may have removed the run after its release.
    fs::remove_dir_all(run.directory.path().join("device")).unwrap();
    assert_eq!(violations(&run.as_reported()), []);
    assert_eq!(
        run_mutation::undetected(&run.as_reported(), &run.key, scratch.path()).unwrap(),
        [""; 0]
    );
}

#[test]
fn checker_that_misses_damage_is_reported() {
    let run = GoodRun::make();
    let scratch = tempfile::tempdir().unwrap();
    // Without the account of what was written, a loss before the device signs cannot be seen.
    let mut writes = run.writes.clone();
    writes.remove(ACCURACY_LOG);
    let blind = CheckedRun {
        phase: "failed",
        reason: "interrupted",
        writes: &writes,
        answers: None,
        ..run.as_reported()
    };
    assert_eq!(
        run_mutation::undetected(&blind, &run.key, scratch.path()).unwrap(),
        ["a file lost before the device signed"]
    );
}

#[test]
fn evidence_is_demanded_unless_the_disk_was_full() {
    let run = GoodRun::make();
    for name in [EVIDENCE, SIGNATURE] {
        fs::remove_file(run.directory.path().join("coordinator/files").join(name)).unwrap();
    }
    let failed = CheckedRun {
        phase: "failed",
        reason: "its files could not be sealed: no space",
        is_complete: false,
        ..run.as_reported()
    };
    assert!(violations(&failed).contains(&RunViolation::NoEvidence));
    let full = CheckedRun {
        disk_was_full: true,
        device: failed.device.clone(),
        coordinator: failed.coordinator.clone(),
        ..failed
    };
    assert_eq!(violations(&full), []);
    let (compared, _) = run_checker::check(&full).unwrap();
    assert_eq!(compared.reported_incomplete, 2);
    let done = CheckedRun {
        phase: "done",
        ..full
    };
    assert!(
        violations(&done).contains(&RunViolation::NoEvidence),
        "a result is never without evidence"
    );
}

#[test]
fn run_that_was_aborted_needs_evidence_only_if_the_device_began_it() {
    let run = GoodRun::make();
    let nowhere = run.directory.path().join("nowhere");
    let never_wrote = Writes::new();
    let aborted = CheckedRun {
        phase: "aborted",
        is_complete: false,
        device: nowhere.clone(),
        coordinator: nowhere,
        writes: &never_wrote,
        ..run.as_reported()
    };
    assert_eq!(violations(&aborted), []);
    let begun = CheckedRun {
        writes: &run.writes,
        ..aborted
    };
    let found = violations(&begun);
    assert!(found.contains(&RunViolation::NoEvidence), "{found:?}");
}

#[test]
fn a_replacement_that_a_kill_prevented_is_not_a_loss() {
    let mut run = GoodRun::make();
    let attempt = run.writes.get_mut("attempt.json").unwrap();
    attempt.replacements = vec![attempt.last.take().unwrap(), Content::of(b"a later attempt")];
    assert_eq!(violations(&run.as_reported()), []);
}

#[test]
fn a_second_attempt_and_missing_answers_are_reported() {
    let mut run = GoodRun::make();
    run.write(
        "mlperf_log_detail.txt",
        b"\"loadgen_version\"\n\"loadgen_version\"\n",
    );
    run.write(ACCURACY_LOG, b"[{\"qsl_idx\": 0}]");
    let found = violations(&run.as_reported());
    assert!(found.contains(&RunViolation::Twice), "{found:?}");
    assert!(
        found.contains(&RunViolation::Answers {
            found: 1,
            expected: 2
        }),
        "{found:?}"
    );
}
