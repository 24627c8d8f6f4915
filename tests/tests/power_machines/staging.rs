//! A session with the meter at the coordinator's machine, staged beside its runs and read by the round's official checker.

use std::{fs, path::PathBuf};

use regatta_tests::{
    power_sessions::{add_meter, write_simulated_ptd},
    printed, regatta, succeed_output,
};
use serde_json::Value;

use crate::bench::{Bench, POWER_ROUND};

/// The meter is connected to the coordinator's machine, and the device is another one.
pub(crate) fn a_director_on_this_machine(bench: &Bench) {
    let program = bench.lab.workspace().join("ptd-here");
    bench.lab.add_device("here");
    write_simulated_ptd(&program, &regatta(), "");
    let added = add_meter(&mut bench.regatta(), "here", &bench.power_dev, &program)
        .output()
        .expect("regatta starts");
    assert!(added.status.success(), "{}", printed(&added));
    let (record, _) = bench.complete_session("here");
    assert_eq!(record["official_summary"], "11 of 11 checks passed", "{record}");
    a_session_is_staged(bench, &record);
}

/// Stages the session beside its runs, and has the official checker of the round read the tree.
pub(crate) fn a_session_is_staged(bench: &Bench, record: &Value) {
    let id = record["session"].as_str().expect("an id");
    let refused = bench
        .regatta()
        .args([
            "submission",
            "stage",
            "--division",
            "open",
            "--version",
            POWER_ROUND,
        ])
        .args(["--power", id, "--output", "refused"])
        .output()
        .expect("regatta starts");
    let words = printed(&refused);
    assert!(
        !refused.status.success() && words.contains(&format!("power/{id}/session")),
        "{words}"
    );
    let mut measure = bench.regatta();
    measure.args([
        "run",
        "--benchmark",
        "digits",
        "--scenario",
        "SingleStream",
        "--engine",
        "tract",
        "--device",
        "here",
    ]);
    measure.args([
        "--mode",
        "AccuracyOnly",
        "--round",
        POWER_ROUND,
        "--format",
        "json",
    ]);
    let accuracy: Value = serde_json::from_slice(&succeed_output(&mut measure).stdout).expect("JSON");
    let runs =
        [&record["runs"]["testing"], &accuracy["runs"][0]["run"]].map(|run| run.as_str().expect("a run"));
    // What the operator writes about the meter.
    let session = PathBuf::from(record["directory"].as_str().expect("a directory"));
    for name in ["analyzer_table.md", "power_settings.md"] {
        fs::write(session.join(name), "A simulated meter.\n").expect("the session's directory");
    }
    let tree = bench.lab.workspace().join("staged");
    let mut stage = bench.regatta();
    stage.args([
        "submission",
        "stage",
        "--rehearsal",
        "--version",
        POWER_ROUND,
        "--power",
        id,
    ]);
    stage
        .args(["--run", runs[0], "--run", runs[1], "--output"])
        .arg(&tree);
    let words = printed(&succeed_output(&mut stage));
    assert!(words.contains("its PTDaemon is a simulation"), "{words}");
    // The submission checker includes the power checker.
    if let Some(words) = bench.lab.officially_checked(&tree, POWER_ROUND) {
        assert!(words.contains("Detected power logs for"), "{words}");
        assert_eq!(words.matches("[x] Check").count(), 11, "{words}");
    }
}
