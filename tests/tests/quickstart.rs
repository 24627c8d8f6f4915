//! The quickstart as a user starts it: eight runs, one table, and the same bytes on both sides.
//! Whether a loaded machine is fast enough to be VALID is not asked here: that is the machine's affair.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "test code")]

use std::{collections::BTreeMap, fs, path::Path, process::Command};

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

#[test]
fn the_quickstart_takes_every_scenario_from_the_device_to_the_record() {
    let place = tempfile::tempdir().unwrap();
    let output = Command::new(regatta_tests::regatta())
        .args(["quickstart", "--duration", "1s", "--dir", "lab"])
        .current_dir(place.path())
        // The agent beside the binary is the one under test, not one that cargo would build.
        .env_remove("CARGO")
        .output()
        .expect("regatta starts");
    let said = format!(
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        matches!(output.status.code(), Some(0 | 1)),
        "{:?}\n{said}",
        output.status
    );

    let table: Vec<&str> = said
        .lines()
        .filter(|line| line.trim_end().ends_with("yes"))
        .collect();
    for scenario in ["SingleStream", "MultiStream", "Server", "Offline"] {
        for mode in ["AccuracyOnly", "PerformanceOnly"] {
            assert!(
                table
                    .iter()
                    .any(|line| line.contains(scenario) && line.contains(mode)),
                "no equal row for {scenario} {mode}:\n{said}"
            );
        }
    }

    let lab = place.path().join("lab");
    let coordinator = hashes(&lab.join("coordinator/runs"));
    let device = hashes(&lab.join("device/state/runs"));
    assert_eq!(coordinator, device, "{said}");
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
}
