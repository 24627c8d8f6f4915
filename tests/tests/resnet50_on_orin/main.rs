//! Executes the main path of `docs/resnet50-on-orin.md`: the commands are read from the page, and lead from the released archive to results of all
//! scenarios with their audits, in a tree that the submission checkers accept but for the size of the data set and the length of the runs. The data set
//! is made up in its published form, and the network finds the colour of an image. The board is not a Jetson: its device tree, CUDA driver and TensorRT
//! are fakes.

#![expect(clippy::panic, clippy::unwrap_used, reason = "test code")]

mod board;
mod colour_network;
mod jpeg;
mod published_imagenet;
mod workstation;

use std::{collections::BTreeSet, fs, path::Path};

use regatta_tests::{free_port, mlperf_benchmark::official_checker};
use serde_json::Value;

use self::{
    board::Board,
    published_imagenet::{CALIBRATION_IMAGES, IMAGES, PublishedImagenet, WRONG_LABELS},
    workstation::Workstation,
};

/// Returns the commands in the page's first block, without their comments.
fn commands_of_the_page() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/resnet50-on-orin.md");
    let page = fs::read_to_string(page).unwrap();
    let block = page.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let lines = block
        .lines()
        .map(|line| line.split(" #").next().unwrap_or_default().trim());
    lines.map(str::to_owned).collect()
}

/// What a test must replace in the page's commands: the page's words and the test's. Each must occur. Besides, the workspace gets the benchmark's
/// file with the sizes and addresses of the made-up data, once it is there.
fn substitutions(board: &Board) -> [(&'static str, String); 4] {
    let [broker, enrollment, assets] = [(); 3].map(|()| format!("127.0.0.1:{}", free_port()));
    [
        // Tests run as root, for whom the script installs into /usr/local.
        (
            "sh install.sh",
            "sh install.sh --prefix \"$HOME/.local\"".to_owned(),
        ),
        // Other tests need the usual ports as well.
        (
            "regatta init lab",
            format!(
                "regatta init lab --host 127.0.0.1 --listen {broker} --enroll-listen {enrollment} --assets-listen {assets}"
            ),
        ),
        // The test's board, and answers to the questions about its key and password.
        ("nvidia@192.168.1.20", format!("{} {}", board.login, board.flags)),
        // A run of ten minutes becomes one of a second. The test's board has no clocks that could be set.
        (
            "--benchmark resnet50 --submission",
            "--benchmark resnet50 --submission --duration 1s --state as-is".to_owned(),
        ),
    ]
}

/// All findings about the tree, by severity and rule: the runs are too short, and the data set is too small.
const EXPECTED_FINDINGS: [(&str, &str); 3] = [
    ("error", "min-duration"),
    ("error", "performance-samples"),
    ("note", "dataset"),
];

#[test]
fn the_commands_of_the_page_lead_to_a_submission() {
    let parts = tempfile::tempdir().unwrap();
    let packages = parts.path().join("packages");
    let Some(board) = Board::start(&packages) else {
        return;
    };
    let workstation = Workstation::with_archive(&packages);
    let imagenet = PublishedImagenet::new(&workstation.path(""));
    let substitutions = substitutions(&board);
    let mut unused: BTreeSet<&str> = substitutions.iter().map(|(from, _)| *from).collect();
    let commands = commands_of_the_page();
    assert_eq!(commands.len(), 6, "{commands:?}");
    for command in &commands {
        let mut line = command.clone();
        for (from, to) in &substitutions {
            if line.contains(from) {
                line = line.replace(from, to);
                unused.remove(from);
            }
        }
        // A busy machine may fail an audit of the speed.
        let judges = command.contains("submission");
        let input = board.password.as_deref().unwrap_or_default();
        let _ = workstation.ends(&line, input, if judges { &[0, 1] } else { &[0] });
        if command.contains("regatta init") {
            imagenet.write_benchmark(&workstation.path("lab"));
        }
    }
    assert!(unused.is_empty(), "not in the page: {unused:?}");
    results_are_complete(&workstation);
    engines_are_those_of_the_boards_settings(&workstation);
    checkers_accept_the_tree(&workstation);
}

/// Every result has its accuracy, performance and audits. They are a rehearsal only because the runs are short.
fn results_are_complete(workstation: &Workstation) {
    let status = workstation.document("regatta submission status");
    let results = status["results"].as_array().unwrap();
    let scenarios = results.iter().map(|result| result["scenario"].as_str().unwrap());
    assert_eq!(
        scenarios.collect::<Vec<_>>(),
        ["SingleStream", "MultiStream", "Offline"],
        "{status:#}"
    );
    for result in results {
        let states = ["accuracy", "performance"].map(|part| result[part]["state"].as_str().unwrap());
        assert_eq!(states, ["done", "rehearsal"], "{result:#}");
        for audit in ["TEST01", "TEST04"] {
            // Whether its speed is that of the submission's run depends on the machine.
            let state = result["audits"][audit]["state"].as_str().unwrap();
            assert!(["rehearsal", "failed"].contains(&state), "{result:#}");
        }
    }
}

/// The board built int8 engines from the prepared list before the first run, with the published settings of an AGX Orin, and they answer right.
fn engines_are_those_of_the_boards_settings(workstation: &Workstation) {
    let listed = workstation.document("regatta runs list");
    let runs = listed["runs"].as_array().unwrap();
    for (scenario, engines) in [
        ("SingleStream", &["gpu: engine ", "batch 1, "][..]),
        ("MultiStream", &["gpu: engine ", "batch 8, "]),
        (
            "Offline",
            &[
                "gpu: engine ",
                "batch 256, ",
                "dla0: engine ",
                "dla1: engine ",
                "batch 2, ",
            ],
        ),
    ] {
        let own: Vec<&Value> = runs.iter().filter(|run| run["scenario"] == scenario).collect();
        let build = own.iter().find(|run| run["task"] == "engine-build").unwrap();
        let loaded = build["loaded_engine"]
            .as_str()
            .unwrap_or_else(|| panic!("{build:#}"));
        assert!(loaded.starts_with("tensorrt 8.5.2 "), "{loaded}");
        for part in engines {
            assert!(loaded.contains(part), "{scenario}: {loaded}");
        }
        let directory = workstation.path("lab/runs").join(build["run"].as_str().unwrap());
        let log = fs::read_to_string(directory.join("files/run.log")).unwrap();
        let calibrated = format!("calibrating over {CALIBRATION_IMAGES} samples");
        assert!(log.contains(&calibrated), "{scenario}: {log}");
        for run in own.iter().filter(|run| run["task"] == "measurement") {
            assert_eq!(run["loaded_engine"], loaded, "{run:#}");
        }
        let accuracy = own.iter().find(|run| run["mode"] == "AccuracyOnly").unwrap();
        assert_eq!(
            accuracy["accuracy"]["correct"],
            IMAGES - WRONG_LABELS,
            "{accuracy:#}"
        );
        assert_eq!(accuracy["loadgen"], "official", "{accuracy:#}");
    }
}

fn checkers_accept_the_tree(workstation: &Workstation) {
    let _ = workstation.ends("regatta submission stage --rehearsal --output tree", "", &[0]);
    let truncate = "regatta submission truncate --input tree --submitter REHEARSAL-nobody --output cut";
    let _ = workstation.ends(truncate, "", &[0]);
    let checked = workstation.document("regatta submission check --input cut --version v6.1");
    assert_eq!(checked["results"].as_array().unwrap().len(), 3, "{checked:#}");
    let of = |finding: &Value| {
        let rule = finding["rule"].as_str().unwrap();
        let name = rule.split(':').next().unwrap_or(rule);
        (finding["severity"].as_str().unwrap().to_owned(), name.to_owned())
    };
    let findings: BTreeSet<_> = checked["findings"].as_array().unwrap().iter().map(of).collect();
    let expected = EXPECTED_FINDINGS.map(|(severity, rule)| (severity.to_owned(), rule.to_owned()));
    assert_eq!(findings, BTreeSet::from(expected), "{checked:#}");
    let _ = official_checker(&workstation.path("cut"), "v6.1");
}
