//! Tests of the quickstart as a user starts it: eight runs and their audits, the same bytes on both sides, and a rehearsed
//! submission. They do not require that a loaded machine is fast and steady enough to be VALID.

#![expect(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "test code")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use regatta_test_requirements::{Requirement, skip};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Run and file name to hash, of every run below `runs`.
fn hashes(runs: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for run in fs::read_dir(runs).expect("there are runs") {
        let files = run.unwrap().path().join("files");
        for file in fs::read_dir(&files).expect("a run has files") {
            let path = file.unwrap().path();
            let name = path.strip_prefix(runs).unwrap().display().to_string();
            found.insert(name, Sha256::digest(fs::read(&path).unwrap()).to_vec());
        }
    }
    found
}

/// Runs the quickstart in `place/lab` with further options, and returns its report.
fn quickstart(place: &Path, options: &[&str]) -> Value {
    let output = Command::new(regatta_tests::regatta())
        .args([
            "quickstart",
            "--duration",
            "500ms",
            "--dir",
            "lab",
            "--format",
            "json",
        ])
        .args(options)
        .current_dir(place)
        // The agent beside the binary is the one under test, not one that cargo would build.
        .env_remove("CARGO")
        .output()
        .expect("regatta starts");
    let printed = String::from_utf8_lossy(&output.stderr);
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {printed}"));
    let verdict = match output.status.code() {
        Some(0) => "pass",
        Some(1) => "fail",
        _ => panic!("{}: {printed}", output.status),
    };
    assert_eq!(report["verdict"], verdict, "{report:#}");
    report
}

fn of<'a>(runs: &'a [Value], scenario: &str, key: &str, word: &str) -> Option<&'a Value> {
    runs.iter().find(|run| {
        run["scenario"] == scenario && run[key] == word && (key == "test" || run["test"].is_null())
    })
}

#[test]
fn the_quickstart_takes_every_scenario_from_the_device_to_a_package() {
    let place = tempfile::tempdir().unwrap();
    let report = quickstart(place.path(), &[]);
    let runs = report["runs"].as_array().expect("runs");
    assert!(runs.iter().all(|run| run["hash_equal"] == true), "{report:#}");
    for scenario in ["SingleStream", "MultiStream", "Server", "Offline"] {
        let ran = |mode: &str| of(runs, scenario, "mode", mode).expect("a run of each mode");
        assert!(
            ran("AccuracyOnly")["accuracy"]["value"].as_f64() > Some(97.0),
            "{report:#}"
        );
        let audited = scenario != "Server" && ran("PerformanceOnly")["valid"] == true;
        for test in ["TEST01", "TEST04"] {
            let audit = of(runs, scenario, "test", test);
            assert_eq!(audit.is_some(), audited, "{scenario} {test}: {report:#}");
            if let Some(audit) = audit {
                assert_eq!(audit["audit"]["performance"], ran("PerformanceOnly")["run"]);
                assert_eq!(audit["audit"]["fault"], Value::Null, "{audit:#}");
            }
        }
    }

    let lab = place.path().join("lab");
    let coordinator = hashes(&lab.join("coordinator/runs"));
    assert_eq!(coordinator, hashes(&lab.join("device/state/runs")), "{report:#}");
    assert!(
        coordinator.len() >= 8 * 6,
        "eight runs of at least six files: {}",
        coordinator.len()
    );
    for run in fs::read_dir(lab.join("coordinator/runs")).unwrap() {
        assert!(
            run.unwrap().path().join("record.json").exists(),
            "every run has its record"
        );
    }
    let valid = runs.iter().all(|run| run["valid"] != false);
    rehearsed(place.path(), &report["rehearsal"], valid);
}

#[test]
fn the_quickstart_rehearses_a_power_session_on_request() {
    let Some(power_dev) = regatta_tests::power_dev() else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let power_dev = power_dev.to_str().unwrap();
    let report = quickstart(place.path(), &["--power", "--power-dev", power_dev]);
    let power = &report["power"];
    assert_eq!(power["official_pass"], true, "{report:#}");
    assert_eq!(power["official_checks"].as_array().map(Vec::len), Some(11));
    assert_eq!(power["rehearsal"], true);
    let session = power["session"].as_str().expect("a session");
    for part in ["ranging", "run_1", "power"] {
        assert!(Path::new(session).join(part).is_dir(), "{part}");
    }
}

#[test]
fn a_power_session_without_the_official_programs_is_refused_before_anything_is_run() {
    let place = tempfile::tempdir().unwrap();
    let output = Command::new(regatta_tests::regatta())
        .args(["quickstart", "--power"])
        .current_dir(place.path())
        .env_remove("REGATTA_POWER_DEV")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert!(printed.contains("--power-dev power-dev"), "{printed}");
    assert!(!place.path().join("regatta-quickstart").exists());
}

/// Checks that the rehearsal's tree is marked, breaks only the expected rules, and is equal after packing and unpacking.
fn rehearsed(place: &Path, rehearsal: &Value, valid: bool) {
    assert_eq!(rehearsal["results"], 3, "{rehearsal:#}");
    assert!(
        rehearsal["cut"].as_u64() >= Some(3) && rehearsal["cut"] == rehearsal["proven"],
        "{rehearsal:#}"
    );
    let rules = rehearsal["rules"].as_array().expect("rules");
    assert!(rules.iter().any(|rule| rule["rule"] == "min-duration"));
    let unexpected: Vec<_> = rules.iter().filter(|rule| rule["expected"].is_null()).collect();
    // An INVALID run, which depends on the machine, breaks further rules.
    assert!(unexpected.is_empty() || !valid, "{unexpected:#?}");
    assert_eq!(rehearsal["official"]["verdict"], "reject", "{rehearsal:#}");

    let path = |key: &str| rehearsal[key].as_str().map(|path| place.join(path));
    let tree = path("tree").expect("a tree");
    assert!(tree.join("REHEARSAL.md").exists() && tree.join("open/REHEARSAL-nobody").is_dir());
    let Some(package) = path("package") else {
        let why = rehearsal["no_package"].as_str().expect("why there is no package");
        assert!(why.contains("openssl"), "{why}");
        skip(Requirement::Package, "openssl is not installed (Debian: openssl)");
        return;
    };
    fs::write(place.join("password"), rehearsal["password"].as_str().unwrap()).unwrap();
    let output = Command::new(regatta_tests::regatta())
        .args([
            "submission",
            "unpack",
            "--submitter",
            "REHEARSAL-nobody",
            "--output",
            "back",
        ])
        .args(["--password-file", "password", "--input"])
        .arg(package.parent().unwrap())
        .current_dir(place)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let open = |root: PathBuf| below(&root.join("open"));
    assert_eq!(open(place.join("back")), open(tree));
}

/// Every file below a directory with its content.
fn below(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(directory).unwrap().to_owned();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}
