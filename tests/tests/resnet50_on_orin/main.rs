//! Executes `docs/resnet50-on-orin.md`, the main path and the variants: the commands are read from the page, and lead from the released archive to
//! results of all scenarios with their audits. Those of the main path are in a tree that the submission checkers accept but for the size of the data
//! set and the length of the runs. Data sets are made up in their published form; ResNet50's network finds the colour of an image. The boards are not
//! Jetsons: device tree, CUDA driver and TensorRT are fakes.

#![expect(clippy::panic, clippy::unwrap_used, reason = "test code")]

mod board;
mod colour_network;
mod kidneys;
mod onnx;
mod page;
mod published_files;
mod published_imagenet;
mod unet_on_xavier_nx;
mod whisper_on_thor;
mod workstation;

use std::{collections::BTreeSet, fs};

use regatta_tests::mlperf_benchmark::official_checker;
use serde_json::Value;

use self::{
    board::{Board, LOADGEN},
    published_imagenet::{CALIBRATION_IMAGES, IMAGES, PublishedImagenet, WRONG_LABELS},
    workstation::Workstation,
};

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
    let Some(board) = Board::start_orin(&packages) else {
        return;
    };
    let workstation = Workstation::with_archive(&packages);
    let imagenet = PublishedImagenet::new(&workstation.path(""));
    page::execute(&page::main_commands(), &[], &board, &workstation, |workspace| {
        imagenet.write_benchmark(workspace);
    });
    let scenarios = ["SingleStream", "MultiStream", "Offline"];
    page::results_are_complete(&workstation, &scenarios, &["TEST01", "TEST04"]);
    engines_are_those_of_the_boards_settings(&workstation);
    checkers_accept_the_tree(&workstation);
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
        assert_eq!(
            accuracy["loadgen"],
            format!("official:{LOADGEN}-NA"),
            "{accuracy:#}"
        );
    }
}

fn checkers_accept_the_tree(workstation: &Workstation) {
    let _ = workstation.ends("regatta submission stage --rehearsal --output tree", "", &[0]);
    let truncate = "regatta submission truncate --input tree --submitter REHEARSAL-nobody --output cut";
    let _ = workstation.ends(truncate, "", &[0]);
    let checked = workstation.document("regatta submission check --input cut --round v6.1");
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
