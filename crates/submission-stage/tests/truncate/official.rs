//! Tests against each round's own `truncate_accuracy_log.py`, where it is installed. `REGATTA_OFFICIAL_TOOLS` names a directory
//! with a checkout of mlcommons/inference per tag (`v2.1` ... `v5.1`, `HEAD`).

use std::{path::Path, process::Command};

use regatta_catalogue::known;
use regatta_submission_stage::truncate::{Destination, TruncationRequest, truncate};
use regatta_test_requirements::official_tools;
use regatta_test_support::tree::{files, put};

/// Our round, the tag of its tool.
const ROUNDS: [(&str, &str); 9] = [
    ("v2.1", "v2.1"),
    ("v3.0", "v3.0"),
    ("v3.1", "v3.1"),
    ("v4.0", "v4.0"),
    ("v4.1", "v4.1"),
    ("v5.0", "v5.0"),
    ("v5.1", "v5.1"),
    ("v6.0", "HEAD"),
    ("v6.1", "HEAD"),
];

/// Writes logs in every place that a round reads, and in some that none reads, with lengths at the limits.
fn put_tree(root: &Path) {
    let line = b"{ \"seq_id\" : 0, \"qsl_idx\" : 3, \"data\" : \"0123456789ABCDEF\" },\n";
    let log = |bytes: usize| line.iter().copied().cycle().take(bytes).collect::<Vec<_>>();
    let mut bytes = 4096;
    for division in ["closed", "open", "network", "other"] {
        for submitter in ["ACME", "OTHER"] {
            let root = root.join(division).join(submitter);
            for model in ["resnet", "bert-99"] {
                let results = root.join("results/sys").join(model).join("Offline");
                let compliance = root.join("compliance/sys").join(model).join("Offline");
                put(
                    &results.join("performance/run_1/mlperf_log_summary.txt"),
                    "summary\n",
                );
                for place in [
                    results.join("accuracy"),
                    results.join("TEST01/accuracy"),
                    results.join("TEST04/accuracy"),
                    results.join("TEST09/accuracy"),
                    compliance.join("TEST01/accuracy"),
                    compliance.join("TEST05/accuracy"),
                ] {
                    put(&place.join("mlperf_log_accuracy.json"), log(bytes));
                    put(&place.join("accuracy.txt"), "accuracy=76.46%\n");
                    bytes += 613;
                }
            }
            // Text that is not ASCII, at its beginning; line ends of Windows.
            let odd = root.join("results/sys/odd");
            put(
                &odd.join("SingleStream/accuracy/mlperf_log_accuracy.json"),
                ["äöü€".repeat(700).into_bytes(), log(9_001)].concat(),
            );
            put(
                &odd.join("SingleStream/accuracy/accuracy.txt"),
                "Genauigkeit=76,46 % übrigens\n",
            );
            let windows = String::from_utf8(log(30_000)).unwrap().replace('\n', "\r\n");
            put(
                &odd.join("MultiStream/accuracy/mlperf_log_accuracy.json"),
                windows,
            );
            put(&odd.join("MultiStream/accuracy/accuracy.txt"), "accuracy=1\r\n");
            put(
                &odd.join("Server/performance/run_1/mlperf_log_summary.txt"),
                "no accuracy run\n",
            );
        }
    }
}

#[test]
fn each_rounds_own_tool_makes_the_same_tree() {
    let Some(tools) = official_tools("") else { return };
    let rounds = known::rounds().unwrap();
    for (name, tag) in ROUNDS {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        put_tree(&at("tree"));
        let script = tools.join(tag).join("tools/submission/truncate_accuracy_log.py");
        let theirs = Command::new("python3")
            .arg(script)
            .args(["--input", "tree", "--submitter", "ACME", "--output", "theirs"])
            .current_dir(dir.path())
            .output()
            .unwrap();
        assert!(
            theirs.status.success(),
            "{name}: {}",
            String::from_utf8_lossy(&theirs.stderr)
        );
        let round = rounds.iter().find(|round| round.name == name).unwrap();
        let report = truncate(&TruncationRequest {
            input: &at("tree"),
            submitter: "ACME",
            destination: Destination::Output(at("ours")),
            skip_scenarios: &[],
            rule: round.truncation.as_ref().unwrap(),
        })
        .unwrap();
        let (ours, theirs) = (files(&at("ours")), files(&at("theirs")));
        assert_eq!(
            ours.keys().collect::<Vec<_>>(),
            theirs.keys().collect::<Vec<_>>(),
            "{name}"
        );
        let uncut = files(&at("tree"));
        let mut changed = 0;
        for (path, bytes) in &theirs {
            assert!(
                ours[path] == *bytes,
                "{name}: {path} differs from the official one"
            );
            changed += usize::from(uncut[path] != *bytes && path.ends_with(".json"));
        }
        assert_eq!(report.cut(), changed, "{name}");
    }
}
