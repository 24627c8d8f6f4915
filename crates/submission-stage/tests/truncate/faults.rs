//! Tests of truncation where the official tool fails: killed processes, odd files, wrong requests, forged trees.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use proptest::prelude::*;
use regatta_catalogue::{known, procedures::Truncation};
use regatta_submission_stage::{
    DraftError,
    truncate::{
        Destination, Outcome, Problem, ProofFinding, TruncateError, TruncationRequest, truncate, verify,
    },
};
use regatta_test_support::tree::{copy, files, put};
use tempfile::TempDir;

const LOG: &str = "closed/ACME/results/sys/resnet/Offline/accuracy/mlperf_log_accuracy.json";
const TEXT: &str = "closed/ACME/results/sys/resnet/Offline/accuracy/accuracy.txt";

fn rule(round: &str) -> Truncation {
    let rounds = known::rounds().unwrap();
    rounds
        .into_iter()
        .find(|known| known.name == round)
        .unwrap()
        .truncation
        .unwrap()
}

/// A tree and the directory for its backup.
struct TruncationFixture {
    dir: TempDir,
    rule: Truncation,
}

impl TruncationFixture {
    fn new(round: &str, log: &[u8], text: &str) -> Self {
        let fixture = Self {
            dir: tempfile::tempdir().unwrap(),
            rule: rule(round),
        };
        put(&fixture.tree().join(LOG), log);
        put(&fixture.tree().join(TEXT), text);
        fixture
    }

    fn tree(&self) -> std::path::PathBuf {
        self.dir.path().join("tree")
    }

    fn backup(&self) -> std::path::PathBuf {
        self.dir.path().join("backup")
    }

    fn run(&self) -> Outcome {
        let report = self.run_to(Destination::Backup(self.backup())).unwrap();
        let [treated] = report.treated.as_slice() else {
            panic!("{report:?}")
        };
        treated.outcome.clone()
    }

    fn run_to(
        &self,
        destination: Destination,
    ) -> Result<regatta_submission_stage::truncate::TruncationReport, TruncateError> {
        truncate(&self.request(&self.tree(), destination))
    }

    fn request<'a>(&'a self, input: &'a Path, destination: Destination) -> TruncationRequest<'a> {
        TruncationRequest {
            input,
            submitter: "ACME",
            destination,
            skip_scenarios: &[],
            rule: &self.rule,
        }
    }

    fn findings(&self) -> Vec<ProofFinding> {
        let tree = self.tree();
        let request = self.request(&tree, Destination::Backup(self.backup()));
        verify(&request, &self.backup()).unwrap().remove(0).findings
    }

    fn text(&self) -> String {
        fs::read_to_string(self.tree().join(TEXT)).unwrap()
    }

    fn log(&self) -> Vec<u8> {
        fs::read(self.tree().join(LOG)).unwrap()
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn log_of(bytes: usize) -> Vec<u8> {
    b"{ \"seq_id\" : 0, \"data\" : \"0123456789ABCDEF\" },\n"
        .iter()
        .copied()
        .cycle()
        .take(bytes)
        .collect()
}

#[test]
fn every_round_marks_a_line_of_its_own_also_without_a_last_line_feed() {
    for round in ["v2.1", "v4.1", "v5.1", "v6.1"] {
        for size in [0, 1, 4095, 4096, 20_000] {
            let fixture = TruncationFixture::new(round, &log_of(size), "accuracy=76.1%");
            assert!(
                matches!(
                    fixture.run(),
                    Outcome::Cut {
                        second_hash: false,
                        ..
                    }
                ),
                "{round} {size}"
            );
            let text = fixture.text();
            let line = text.strip_prefix("accuracy=76.1%\nhash=").unwrap();
            assert_eq!(line.len(), 65, "{text}");
            assert_eq!(fixture.log().len(), if size < 4096 { size } else { 8199 });
            assert_eq!(fixture.findings(), [], "{round} {size}");
        }
    }
}

#[test]
fn interrupted_truncation_is_completed_by_the_next_call() {
    for size in [100, 9_000, 20_000] {
        let whole = TruncationFixture::new("v5.1", &log_of(size), "acc\n");
        whole.run();
        let (tree, text) = (files(&whole.tree()), whole.text());

        // Killed after the original was kept.
        let fixture = TruncationFixture::new("v5.1", &log_of(size), "acc\n");
        put(&fixture.backup().join(LOG), log_of(size));
        fixture.run();
        assert!(
            files(&fixture.tree()) == tree && fixture.findings().is_empty(),
            "{size}"
        );

        // Killed after the hash was written: it is not written again.
        let fixture = TruncationFixture::new("v5.1", &log_of(size), &text);
        put(&fixture.backup().join(LOG), log_of(size));
        fixture.run();
        assert!(
            files(&fixture.tree()) == tree && fixture.findings().is_empty(),
            "{size}"
        );

        // Killed while a file was being written beside its place.
        let fixture = TruncationFixture::new("v5.1", &log_of(size), "acc\n");
        let beside = Path::new(LOG).with_file_name(".mlperf_log_accuracy.json.new");
        put(&fixture.tree().join(&beside), "half");
        put(&fixture.backup().join(&beside), "half");
        fixture.run();
        assert_eq!(fixture.findings(), [], "{size}");
    }
}

#[test]
fn a_killed_copy_is_made_anew_and_nothing_else_is_removed() {
    let fixture = TruncationFixture::new("v6.0", &log_of(20_000), "acc\n");
    let part = fixture.dir.path().join(".cut.regatta-part");
    put(&part.join("somebody's file"), "precious");
    let destination = Destination::Output(fixture.dir.path().join("cut"));
    let error = fixture.run_to(destination.clone()).unwrap_err();
    assert!(matches!(error, TruncateError::InTheWay { .. }), "{error}");
    assert!(part.join("somebody's file").is_file());

    put(&part.join(".regatta-truncation-in-progress"), "");
    fixture.run_to(destination.clone()).unwrap();
    assert!(!part.exists() && fixture.dir.path().join("cut").join(LOG).is_file());
    assert_eq!(files(&fixture.dir.path().join("cut")).len(), 2);
    assert_eq!(fixture.log(), log_of(20_000), "the input stays as it was");

    let error = fixture.run_to(destination).unwrap_err();
    assert!(matches!(error, TruncateError::OutputExists { .. }), "{error}");
}

#[test]
fn a_copy_that_another_process_makes_is_left_alone() {
    let fixture = TruncationFixture::new("v6.0", &log_of(20_000), "acc\n");
    let part = fixture.dir.path().join(".cut.regatta-part");
    put(&part.join(".regatta-truncation-in-progress"), "");
    let locked = fs::File::open(&part).unwrap();
    rustix::fs::flock(&locked, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let destination = Destination::Output(fixture.dir.path().join("cut"));
    let error = fixture.run_to(destination.clone()).unwrap_err();
    assert!(
        matches!(error, TruncateError::Draft(DraftError::Busy { .. })),
        "{error}"
    );
    assert!(part.join(".regatta-truncation-in-progress").is_file());
    drop(locked);
    fixture.run_to(destination).unwrap();
}

#[test]
fn another_original_in_the_backup_is_never_overwritten() {
    let fixture = TruncationFixture::new("v5.1", &log_of(20_000), "acc\n");
    put(&fixture.backup().join(LOG), "another run's log");
    assert!(matches!(
        fixture.run(),
        Outcome::Left(Problem::BackupDiffers { .. })
    ));
    assert_eq!(
        (fixture.text().as_str(), fixture.log()),
        ("acc\n", log_of(20_000))
    );
    assert_eq!(
        fs::read(fixture.backup().join(LOG)).unwrap(),
        b"another run's log"
    );
}

#[test]
fn requests_that_would_spoil_the_submission_are_refused() {
    let fixture = TruncationFixture::new("v5.1", &log_of(20_000), "acc\n");
    let before = files(&fixture.tree());
    for inside in ["backup", "closed/ACME/backup", "."] {
        let error = fixture
            .run_to(Destination::Backup(fixture.tree().join(inside)))
            .unwrap_err();
        assert!(matches!(error, TruncateError::Inside { .. }), "{error}");
    }
    let tree = fixture.tree();
    for submitter in ["NOBODY", "", ".", "..", "../../etc", "a/b"] {
        let request = TruncationRequest {
            submitter,
            ..fixture.request(&tree, Destination::Backup(fixture.backup()))
        };
        let error = truncate(&request).unwrap_err();
        assert!(
            matches!(
                error,
                TruncateError::NoSubmission { .. } | TruncateError::NoName { .. }
            ),
            "{submitter}: {error}"
        );
    }
    assert!(files(&fixture.tree()) == before);
    assert!(!fixture.backup().exists());
}

#[test]
fn a_linked_log_is_left_alone() {
    let fixture = TruncationFixture::new("v5.1", &log_of(20_000), "acc\n");
    let elsewhere = fixture.dir.path().join("log");
    fs::rename(fixture.tree().join(LOG), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, fixture.tree().join(LOG)).unwrap();
    assert_eq!(fixture.run(), Outcome::Left(Problem::NoFile));
    assert_eq!(fs::read(elsewhere).unwrap(), log_of(20_000));
}

/// A pipe would block for ever, and a link upwards would never end.
#[test]
fn pipes_and_circles_are_named_and_not_waited_for() {
    let fixture = TruncationFixture::new("v6.1", &log_of(20_000), "accuracy=76.1%\n");
    let out = || Destination::Output(fixture.dir.path().join("out"));
    let refused = |destination: Destination, path: &str| {
        let error = fixture.run_to(destination).unwrap_err();
        let text = format!(
            "{error}: {:?}",
            std::error::Error::source(&error).map(ToString::to_string)
        );
        assert!(text.contains(path), "{text}");
    };
    let pipe = |path: &Path| {
        let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    };
    let text = fixture.tree().join(TEXT);
    fs::remove_file(&text).unwrap();
    pipe(&text);
    refused(Destination::Backup(fixture.backup()), "accuracy.txt");
    refused(out(), "accuracy.txt");
    fs::remove_file(&text).unwrap();
    put(&text, "accuracy=76.1%\n");
    let stray = fixture.tree().join("closed/ACME/systems");
    pipe(&stray);
    refused(out(), "closed/ACME/systems");
    assert_eq!(names(fixture.dir.path()), ["tree"], "nothing is left behind");
    fs::remove_file(&stray).unwrap();
    std::os::unix::fs::symlink("..", &stray).unwrap();
    refused(out(), "closed/ACME/systems");
    fs::remove_file(&stray).unwrap();
    assert_eq!(fixture.run_to(out()).unwrap().cut(), 1, "and then it goes on");
}

/// Twenty directories, each with two links to the next one, would be a million copies.
#[test]
fn directory_of_links_is_refused() {
    let fixture = TruncationFixture::new("v6.1", &log_of(20_000), "accuracy=76.1%\n");
    let farm = fixture.tree().join("closed/ACME/code");
    for level in 0..20 {
        let directory = farm.join(level.to_string());
        fs::create_dir_all(&directory).unwrap();
        for link in ["one", "two"] {
            symlink(format!("../{}", level + 1), directory.join(link)).unwrap();
        }
    }
    fs::create_dir(farm.join("20")).unwrap();
    let error = fixture
        .run_to(Destination::Output(fixture.dir.path().join("out")))
        .unwrap_err();
    assert!(matches!(error, TruncateError::LinkedTwice { .. }), "{error}");
    assert_eq!(names(fixture.dir.path()), ["tree"], "nothing is left behind");
}

/// A FIFO that replaces a file after its check does not block.
#[test]
fn pipes_that_appear_meanwhile_are_not_waited_for() {
    let fixture = TruncationFixture::new("v6.1", &log_of(20_000), "accuracy=76.1%\n");
    let (file, pipe) = (fixture.dir.path().join("file"), fixture.dir.path().join("pipe"));
    put(&file, "accuracy=76.1%\n");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let path = fixture.tree().join(TEXT);
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let beside = fixture.dir.path().join("beside");
            for source in [&pipe, &file].into_iter().cycle() {
                if is_done.load(Ordering::Relaxed) {
                    break;
                }
                fs::hard_link(source, &beside).unwrap();
                fs::rename(&beside, &path).unwrap();
            }
        });
        let mut refused = 0;
        for number in 0..200 {
            let out = fixture.dir.path().join(format!("out-{number}"));
            refused += u32::from(fixture.run_to(Destination::Output(out)).is_err());
        }
        is_done.store(true, Ordering::Relaxed);
        assert!(refused > 0, "the pipe was never met");
    });
}

#[test]
fn a_faulty_manifest_names_its_place() {
    let fixture = TruncationFixture::new("v5.1", &log_of(20_000), "acc\n");
    put(
        &fixture.backup().join("truncation-manifest.json"),
        "{\n  \"schema\": \"one\"\n}",
    );
    let error = fixture.run_to(Destination::Backup(fixture.backup())).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(
        error.to_string().contains("truncation-manifest.json") && cause.contains("line 2"),
        "{cause}"
    );
    assert_eq!(fixture.log(), log_of(20_000));
}

#[test]
fn forged_trees_do_not_prove() {
    type Forge = fn(&TruncationFixture);
    type Expected = fn(&[ProofFinding]) -> bool;
    let forgeries: [(Forge, Expected); 5] = [
        (
            |fixture| {
                let mut log = fixture.log();
                log[100] ^= 1;
                put(&fixture.tree().join(LOG), log);
            },
            |findings| findings == [ProofFinding::OtherContent],
        ),
        (
            |fixture| put(&fixture.tree().join(TEXT), "acc\nhash=00ff\n"),
            |findings| matches!(findings, [ProofFinding::OtherHash { .. }]),
        ),
        (
            |fixture| put(&fixture.tree().join(TEXT), "acc\n"),
            |findings| findings == [ProofFinding::NoHash],
        ),
        (
            |fixture| fs::remove_file(fixture.backup().join(LOG)).unwrap(),
            |findings| matches!(findings, [ProofFinding::NoOriginal { .. }]),
        ),
        (
            |fixture| put(&fixture.backup().join(LOG), log_of(20_001)),
            |findings| findings.contains(&ProofFinding::OtherThanManifest) && findings.len() >= 2,
        ),
    ];
    for (number, (forge, expected)) in forgeries.into_iter().enumerate() {
        let fixture = TruncationFixture::new("v6.1", &log_of(20_000), "acc\n");
        fixture.run();
        assert_eq!(fixture.findings(), [], "{number}");
        forge(&fixture);
        assert!(
            expected(&fixture.findings()),
            "{number}: {:?}",
            fixture.findings()
        );
    }
}

#[test]
fn skipped_scenarios_and_other_submitters_stay_as_they_are() {
    let fixture = TruncationFixture::new("v5.1", &log_of(20_000), "acc\n");
    copy(
        &fixture.tree().join("closed/ACME"),
        &fixture.tree().join("closed/OTHER"),
    );
    let before = files(&fixture.tree());
    let (tree, skip) = (fixture.tree(), ["Offline".to_owned()]);
    let request = TruncationRequest {
        skip_scenarios: &skip,
        ..fixture.request(&tree, Destination::Backup(fixture.backup()))
    };
    assert_eq!(truncate(&request).unwrap().treated, []);
    assert!(files(&tree) == before);
    fixture.run();
    let after = files(&tree);
    assert_eq!(after[&LOG.replace("ACME", "OTHER")].len(), 20_000);
    assert_eq!(after[LOG].len(), 8199);
}

#[test]
fn a_cut_log_as_large_as_an_uncut_one_is_known_by_its_original() {
    // 4091 characters in 6137 bytes: the whole file, the mark and the last 4096 bytes make 10240.
    let fixture = TruncationFixture::new("v5.1", &[0xc2, 0x80, 0].repeat(2_046)[..6_137], "acc\n");
    assert!(matches!(fixture.run(), Outcome::Cut { .. }));
    let after = files(&fixture.tree());
    assert_eq!(after[LOG].len(), 10_240);
    assert_eq!(fixture.run(), Outcome::AlreadyCut);
    assert!(files(&fixture.tree()) == after);
    assert_eq!(fixture.findings(), []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// With any bytes, the log is truncated or left unchanged, the proof holds, and a second call changes nothing.
    #[test]
    fn any_log_and_any_text_are_treated(
        pattern in prop::collection::vec(any::<u8>(), 1..64),
        size in 0_usize..12_000,
        text in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let log: Vec<u8> = pattern.iter().copied().cycle().take(size).collect();
        let fixture = TruncationFixture::new("v5.1", &log, "");
        put(&fixture.tree().join(TEXT), &text);
        let outcome = fixture.run();
        let cut = matches!(outcome, Outcome::Cut { second_hash: false, .. });
        prop_assert!(cut, "{:?}", outcome);
        prop_assert_eq!(fixture.findings(), []);
        prop_assert!(fs::read(fixture.tree().join(TEXT)).unwrap().starts_with(&text));
        let after = files(&fixture.tree());
        prop_assert_eq!(fixture.run(), Outcome::AlreadyCut);
        prop_assert!(files(&fixture.tree()) == after);
    }
}
