//! Tests of `bench --engine tensorrt` through the binary, over fakes of CUDA's driver and of TensorRT. They cover complete runs with
//! the right answers, and a message for each fault of a board.

mod calibration;
mod choice;
mod dla;
mod faults;
mod gpus;
mod making;
mod networks;
mod plugins;
mod sequences;

#[cfg(feature = "tract")]
use std::path::PathBuf;

use regatta_test_requirements::{Requirement, require};
use regatta_test_support::real_tensorrt;
use regatta_unit_sharing::board_model::BoardModel;

use crate::support::place::{Place, expected};

#[test]
fn every_scenario_gives_the_right_answers_and_a_result() {
    let place = Place::new();
    place.build(&["--batch", "8", "--profiles", "2"], &[]);
    let dla = ["--batch", "2", "--dla-core", "0", "--precision", "fp16"];
    place.build(&dla, &[]);
    let copies = [
        "use_direct_host_access=false",
        "use_graphs=false",
        "use_spin_wait=true",
    ];
    let dla = [
        "max_dlas=2",
        "dla_enqueue_count=3",
        "gpu_batch_size=8",
        "gpu_copy_streams=2",
    ];
    let shared = ["gpu_copy_streams=2", "gpu_inference_streams=1"];
    let graphs = ["use_graphs=true", "use_direct_host_access=true"];
    for (scenario, settings) in [
        ("SingleStream", &[][..]),
        ("SingleStream", &copies),
        ("SingleStream", &["dla_core=1"]),
        ("MultiStream", &[]),
        ("MultiStream", &["max_dlas=1"]),
        ("MultiStream", &["gpu_batch_size=2", "gpu_copy_streams=2"]),
        (
            "MultiStream",
            &[
                "max_dlas=1",
                "gpu_batch_size=2",
                "gpu_copy_streams=2",
                "gpu_inference_streams=1",
            ],
        ),
        ("Offline", &graphs),
        ("Offline", &copies),
        ("Offline", &shared),
        ("Offline", &dla),
        ("Server", &["batch_size=4"]),
    ] {
        let ended = place.bench(scenario, "AccuracyOnly", settings, &[]);
        assert_eq!(ended.code, 0, "{scenario} {settings:?}: {ended:?}");
        assert_eq!(place.answers(), expected(), "{scenario} {settings:?}");
    }
    for scenario in ["SingleStream", "MultiStream", "Offline", "Server"] {
        let ended = place.bench(scenario, "PerformanceOnly", &[], &[]);
        let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        assert!(report["metric"]["value"].as_f64().unwrap() > 0.0, "{report:#}");
        let engine = report["engine"].as_str().unwrap();
        assert!(
            engine.starts_with("tensorrt 8.5.2 on fake GPU (CUDA 11.4, in host memory; gpu: engine "),
            "{engine}"
        );
    }
}

#[test]
fn the_times_of_the_units_are_a_board_for_the_model() {
    let mut place = Place::new();
    place.build(&["--batch", "4", "--profiles", "2"], &[]);
    let dla = ["--batch", "2", "--dla-core", "0", "--precision", "fp16"];
    place.build(&dla, &[]);
    let both = ["max_dlas=1", "gpu_copy_streams=2"];
    for (scenario, settings, units) in [
        ("Offline", &both[..], &[("gpu", 4, 2), ("dla0", 2, 1)][..]),
        ("SingleStream", &[], &[("gpu", 1, 1)]),
    ] {
        place.sut = "tensorrt";
        let flags = ["--write-board", "found.toml"];
        let ended = place.bench_with(scenario, "AccuracyOnly", settings, &flags, &[]);
        assert_eq!(ended.code, 0, "{ended:?}");
        let text = std::fs::read_to_string(place.fixture.path("found.toml")).unwrap();
        assert!(
            text.starts_with("# Measured in the warm-up of regatta-agent "),
            "{text}"
        );
        assert!(text.contains("\n# On: tensorrt 8.5.2 on fake GPU "), "{text}");
        let board = BoardModel::parse(&text).unwrap();
        let found = board
            .units
            .iter()
            .map(|unit| (unit.name.as_str(), unit.batch, unit.streams));
        assert_eq!(found.collect::<Vec<_>>(), units);
        place.sut = "sim";
        let ended = place.bench(scenario, "AccuracyOnly", &["sim_board=found.toml"], &[]);
        assert_eq!(ended.code, 0, "{ended:?}");
    }
}

#[test]
fn types_are_converted_where_a_number_says_enough_and_refused_where_not() {
    for (environment, settings) in [
        (&[("FAKE_TRT_INPUT", "fp16")][..], &[][..]),
        (&[("FAKE_TRT_OUTPUT", "index")], &["use_direct_host_access=false"]),
        (&[("FAKE_TRT_FIXED", "1")], &[]),
    ] {
        let place = Place::new();
        place.build(&["--batch", "4"], environment);
        for scenario in ["SingleStream", "Offline"] {
            let ended = place.bench(scenario, "AccuracyOnly", settings, &[]);
            assert_eq!(ended.code, 0, "{environment:?}: {ended:?}");
            assert_eq!(place.answers(), expected(), "{environment:?}");
        }
    }
    let place = Place::new();
    place.build(&[], &[("FAKE_TRT_INPUT", "int8")]);
    let refused = place.fault(&[], &[]);
    assert!(
        refused.contains("its engine takes int8 [1, 1, 8, 8] image, but its samples are fp32"),
        "{refused}"
    );
}

/// The real TensorRT-RTX builds without a driver; operations that need one say so.
#[cfg(feature = "tract")]
#[test]
fn without_a_driver_the_real_tensorrt_builds_and_does_not_run() {
    let Some(root) = real_tensorrt::root_with("libs/libtensorrt_rtx.so.1") else {
        return;
    };
    let has_driver = PathBuf::from("/proc/driver/nvidia").exists();
    if !require(!has_driver, Requirement::Machine, "this machine has a driver") {
        return;
    }
    let place = Place::new();
    let (libs, shims) = (root.join("libs"), root.join("shims"));
    let real = [
        ("REGATTA_TENSORRT", libs.to_str().unwrap()),
        ("REGATTA_PLUGINS", shims.to_str().unwrap()),
        ("LD_LIBRARY_PATH", ""),
    ];
    place.build(&["--batch", "8"], &real);
    let message = place.fault(&[], &real);
    assert!(
        message.starts_with(
            "regatta-agent: the tensorrt engine cannot be used here: no CUDA driver was found (libcuda.so.1"
        ),
        "{message}"
    );
}
