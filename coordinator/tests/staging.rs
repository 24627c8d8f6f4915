//! Tests of `regatta submission stage` and `infer`, and of `regatta accuracy --official`, as users call them. The tests of
//! `crates/submission-stage` verify content and refusals.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    process::{Command, Output, Stdio},
};

use regatta_catalogue::known;
use regatta_test_requirements::{official_tools, program};
use regatta_test_support::staging::{self, StagingFixture};
use serde_json::Value;

/// Exit code, standard output and standard error.
fn regatta(fixture: &StagingFixture, words: &str) -> (i32, String, String) {
    let output: Output = Command::new(env!("CARGO_BIN_EXE_regatta"))
        .current_dir(fixture.at(""))
        .env_remove("REGATTA_WORKSPACE")
        .env_remove("MLPERF_SCRATCH_PATH")
        .stdin(Stdio::null())
        .args(words.split_whitespace())
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(!printed.contains("panicked"), "{printed}");
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        printed,
    )
}

/// The fixture's runs as words of the command line.
fn runs(fixture: &StagingFixture) -> String {
    let runs = fixture.all_runs().into_iter();
    runs.map(|run| format!(" --run {}", run.display())).collect()
}

#[test]
fn the_commands_that_staging_prints_lead_to_the_package() {
    let fixture = StagingFixture::new("v6.1");
    fixture.put("desk/answers.toml", staging::ANSWERS);
    let stage = format!(
        "submission stage --round v6.1 --division closed --answers desk/answers.toml --output tree{}",
        runs(&fixture)
    );
    let (code, printed, _) = regatta(&fixture, &stage);
    assert_eq!(code, 0, "{printed}");
    let next: Vec<&str> = printed
        .lines()
        .filter_map(|line| line.trim().strip_prefix("regatta "))
        .collect();
    let [truncate, check, pack] = next.as_slice() else {
        panic!("{printed}")
    };
    let (code, printed, _) = regatta(&fixture, truncate);
    assert!(
        code == 0 && printed.contains("2 of 2 truncated logs match"),
        "{printed}"
    );
    let (code, printed, _) = regatta(&fixture, check);
    assert_eq!(code, 0, "{printed}");
    let (code, printed, _) = regatta(&fixture, &format!("{check} --as-official"));
    assert_eq!(code, 0, "{printed}");
    if program("openssl", "openssl").is_none() {
        return;
    }
    fixture.put("desk/word", "harbour\n");
    let (code, printed, _) = regatta(&fixture, &format!("{pack} --password-file desk/word"));
    assert!(
        code == 0 && fixture.at("tree-package/mlperf_submission_ACME.sha1").is_file(),
        "{printed}"
    );
}

#[test]
fn missing_answers_exit_with_1_and_nothing_is_prompted_without_a_terminal() {
    let fixture = StagingFixture::new("v6.1");
    let stage = format!(
        "submission stage --division closed --output tree{}",
        runs(&fixture)
    );
    let (code, printed, error) = regatta(&fixture, &stage);
    assert_eq!((code, error.as_str()), (1, ""), "{printed}");
    assert!(
        printed.contains("answers: the submitter's name is missing"),
        "{printed}"
    );
    let (code, printed, _) = regatta(&fixture, &format!("{stage} --format json"));
    let document: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((code, &document["tree"]), (1, &Value::Null));
    let lacks = document["missing"].as_array().unwrap();
    assert!(
        lacks.len() > 20 && lacks.iter().all(|lack| lack["fix"] != ""),
        "{printed}"
    );
    assert!(!fixture.at("tree").exists());
    // A rehearsal stages the same runs, and its document names it a rehearsal.
    let rehearsal = stage.replace("--division closed", "--rehearsal --format json");
    let (code, printed, _) = regatta(&fixture, &rehearsal);
    let document: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(
        (code, document["submitter"].as_str()),
        (0, Some("REHEARSAL-nobody")),
        "{printed}"
    );
}

#[test]
fn misuse_exits_2() {
    let fixture = StagingFixture::new("v6.1");
    fixture.put("desk/wrong.toml", "submiter = 'x'\n");
    fixture.put("tree/closed/ACME/results/x", "");
    let runs = runs(&fixture);
    for (words, part) in [
        (format!("submission stage --output new{runs}"), "--division"),
        (
            format!("submission stage --output new --division wide{runs}"),
            "closed, open, network",
        ),
        (
            format!("submission stage --output tree --rehearsal{runs}"),
            "exists already",
        ),
        (
            format!("submission stage --output new --rehearsal --answers desk/wrong.toml{runs}"),
            "submiter",
        ),
        (
            "submission stage --output new --rehearsal".to_owned(),
            "--workspace",
        ),
        (
            format!("submission stage --output new --rehearsal --round v9.9{runs}"),
            "known are",
        ),
        (
            "submission infer --input tree --output new --submitter Nobody".to_owned(),
            "Nobody",
        ),
        (
            "submission infer --input tree --output tree".to_owned(),
            "is inside the submission",
        ),
        (
            "accuracy digits --log a b --official x --keep c".to_owned(),
            "--keep",
        ),
        ("accuracy digits --log a --keep c".to_owned(), "--official"),
        (
            "accuracy digits --log a --official nothing.py".to_owned(),
            "nothing.py does not exist",
        ),
        ("accuracy digits --log a --official .".to_owned(), "is not a file"),
    ] {
        let (code, _, printed) = regatta(&fixture, &words);
        assert_eq!(code, 2, "{words}: {printed}");
        assert!(printed.contains(part), "{words}: {printed}");
    }
    assert!(!fixture.at("new").exists());
}

#[test]
fn infer_reports_the_source_of_each_result() {
    let fixture = StagingFixture::new("v6.1");
    let home = "tree/closed/ACME";
    fixture.put(
        &format!("{home}/systems/board.json"),
        "{\"system_type\": \"edge\"}",
    );
    let run = format!("{home}/results/board/resnet50/SingleStream/performance/run_1");
    let log = staging::log(&[
        ("effective_scenario", "SingleStream".into()),
        ("early_stopping_latency_ms", 409_800.into()),
        ("result_qps_without_loadgen_overhead", 0.into()),
    ]);
    fixture.put(&format!("{run}/mlperf_log_detail.txt"), &log);
    let (code, printed, _) = regatta(
        &fixture,
        "submission infer --input tree --output new --round v6.1",
    );
    assert_eq!(code, 0, "{printed}");
    assert!(
        printed.contains("resnet50/multistream\n") && printed.contains("skipped  "),
        "{printed}"
    );
    assert!(
        fixture
            .at("new/closed/ACME/results/board/resnet50/multistream")
            .is_dir()
    );
}

/// Writes a script in place of a reference script, and the bundled benchmark's labels with a correct log.
fn reference(fixture: &StagingFixture, name: &str, script: &str) {
    fixture.put(name, script);
    fs::set_permissions(fixture.at(name), fs::Permissions::from_mode(0o755)).unwrap();
}

fn digits(fixture: &StagingFixture, right: usize) {
    let benchmark = known::benchmarks().unwrap().remove(0);
    regatta_prep::install_bundled(&benchmark, &fixture.at("scratch"), &mut |_, _| {}).unwrap();
    let map = fs::read_to_string(fixture.at("scratch").join(&benchmark.dataset.map)).unwrap();
    let entries = map.lines().enumerate().map(|(index, line)| {
        let label: i32 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        let answer = if index < right { label } else { label + 1 };
        let hex: String = answer
            .to_le_bytes()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("{{ \"seq_id\" : {index}, \"qsl_idx\" : {index}, \"data\" : \"{hex}\" }}")
    });
    let log = format!("[\n{}\n]\n", entries.collect::<Vec<_>>().join(",\n"));
    fixture.put("runs/x/files/mlperf_log_accuracy.json", &log);
    fixture.put("runs/x/spec.json", "{}");
}

#[test]
fn the_reference_scripts_words_are_kept_to_the_byte_and_ours_checks_them() {
    let fixture = StagingFixture::new("v6.1");
    digits(&fixture, 597);
    let words = "accuracy digits --log runs/x/files/mlperf_log_accuracy.json --scratch scratch --official";
    let kept = |name: &str| fs::read_to_string(fixture.at("runs/x/accuracy").join(name));
    reference(
        &fixture,
        "good",
        "#!/bin/sh\necho \"loading $*\" | sed 's/ [^ ]*scratch/ SCRATCH/'\necho 'accuracy=100.000%, good=597, total=597'\n",
    );
    let (code, printed, error) = regatta(&fixture, &format!("{words} good"));
    assert_eq!((code, error.as_str()), (0, ""), "{printed}");
    assert!(printed.contains("ours agrees"), "{printed}");
    assert_eq!(
        kept("accuracy.txt").unwrap(),
        "loading --mlperf-accuracy-file runs/x/files/mlperf_log_accuracy.json --imagenet-val-file \
         SCRATCH/preprocessed_data/digits/val_map.txt --dtype int32\naccuracy=100.000%, good=597, total=597\n"
    );
    assert!(kept("official.json").unwrap().contains("\"script\": \"good\""));

    reference(&fixture, "other", "#!/bin/sh\necho accuracy=99.000%\n");
    let (code, printed, _) = regatta(&fixture, &format!("{words} other --format json"));
    let document: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(
        (code, &document["accuracy"][0]["official"]["agrees"]),
        (1, &false.into()),
        "{printed}"
    );
    assert_eq!(kept("accuracy.txt").unwrap(), "accuracy=99.000%\n");

    reference(
        &fixture,
        "fails",
        "#!/bin/sh\necho accuracy=100%\necho 'no such module' >&2\nexit 3\n",
    );
    let (code, _, printed) = regatta(&fixture, &format!("{words} fails"));
    assert!(code == 3 && printed.contains("no such module"), "{printed}");
    assert_eq!(
        kept("accuracy.txt").unwrap(),
        "accuracy=99.000%\n",
        "what was kept stays"
    );

    fixture.put("python.py", "");
    let (code, _, printed) = regatta(&fixture, &format!("{words} python.py --python no-such-python"));
    assert!(
        code == 3 && printed.contains("cannot start no-such-python"),
        "{printed}"
    );

    // A performance log: the script divides by zero, and ours says why.
    fixture.put("runs/p/files/mlperf_log_accuracy.json", "[\n]\n");
    let (code, _, printed) = regatta(&fixture, &format!("{} fails", words.replace("runs/x", "runs/p")));
    assert!(code == 3 && printed.contains("AccuracyOnly"), "{printed}");
    assert!(!fixture.at("runs/p/accuracy").exists());
    let (code, _, printed) = regatta(&fixture, &format!("{} good", words.replace("runs/x", "runs/q")));
    assert!(
        code == 2
            && printed.contains("the accuracy log runs/q/files/mlperf_log_accuracy.json does not exist"),
        "{printed}"
    );

    reference(&fixture, "own", "#!/bin/sh\necho \"$1 $2\"\n");
    let (code, printed, _) = regatta(
        &fixture,
        &format!("{words} own --keep elsewhere -- --log_file {{log}}"),
    );
    assert_eq!(code, 0, "{printed}");
    let own = fs::read_to_string(fixture.at("elsewhere/accuracy.txt")).unwrap();
    assert_eq!(own, "--log_file runs/x/files/mlperf_log_accuracy.json\n");
}

#[test]
fn configuration_files_outside_a_workspace_are_ignored_with_a_warning() {
    let fixture = StagingFixture::new("v6.1");
    let (code, _, printed) = regatta(&fixture, "benchmark list");
    assert_eq!((code, printed.as_str()), (0, ""));
    fixture.put("configs/benchmarks/mine.toml", "");
    let (code, _, printed) = regatta(&fixture, "benchmark list");
    assert_eq!(code, 0, "{printed}");
    assert!(
        printed.contains("configs/benchmarks is ignored") && printed.contains("regatta init"),
        "{printed}"
    );
}

#[test]
fn a_partial_accuracy_log_reaches_no_target() {
    let fixture = StagingFixture::new("v6.1");
    digits(&fixture, 597);
    let log = "runs/x/files/mlperf_log_accuracy.json";
    let whole = fs::read_to_string(fixture.at(log)).unwrap();
    let first = whole.split(",\n").next().unwrap();
    fixture.put(log, &format!("{first}\n]\n"));
    let words = format!("accuracy digits --log {log} --scratch scratch");
    let (code, printed, refusal) = regatta(&fixture, &words);
    assert_eq!(
        (code, printed.trim()),
        (
            1,
            "accuracy=100.000%, good=1, total=1; target 98.005%: not reached, 596 samples have no response in the accuracy log"
        ),
        "{refusal}"
    );
    let (code, printed, _) = regatta(&fixture, &format!("{words} --format json"));
    let document: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(
        (code, &document["accuracy"][0]["missing"]),
        (1, &596.into()),
        "{printed}"
    );
    // The reference script notices nothing, with our labels or without.
    reference(
        &fixture,
        "good",
        "#!/bin/sh\necho 'accuracy=100.000%, good=1, total=1'\n",
    );
    for scratch in ["--scratch scratch", "--scratch nowhere"] {
        let words = format!("accuracy digits --log {log} {scratch} --official good");
        let (code, printed, _) = regatta(&fixture, &words);
        assert!(
            code == 1 && printed.contains("INCOMPLETE: 596 of 597 samples have no response"),
            "{scratch}: {printed}"
        );
    }
}

/// Runs the real reference script over the bundled benchmark, where it is installed.
#[test]
fn the_real_reference_script_agrees_with_ours() {
    let Some(script) = official_tools("HEAD/vision/classification_and_detection/tools/accuracy-imagenet.py")
    else {
        return;
    };
    let fixture = StagingFixture::new("v6.1");
    digits(&fixture, 590);
    let words = format!(
        "accuracy digits --log runs/x/files/mlperf_log_accuracy.json --scratch scratch --official {}",
        script.display()
    );
    let (code, printed, error) = regatta(&fixture, &words);
    assert_eq!((code, error.as_str()), (0, ""), "{printed}");
    assert!(
        printed.starts_with("accuracy=98.827%, good=590, total=597\n") && printed.contains("ours agrees"),
        "{printed}"
    );
}
