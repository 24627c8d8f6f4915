//! The variant of the page for 3D-UNet on a Xavier NX, whose published settings are an int8 engine that takes packed windows and is calibrated with the
//! extremes of all values.

use std::{collections::BTreeMap, fs};

use regatta_test_support::file_server::FileServer;
use serde_json::Value;

use super::{
    board::{Board, LOADGEN, XAVIER_NX},
    kidneys, page,
    published_files::sha256,
    workstation::Workstation,
};

/// The published files.
const LIST: &str = "calibration_cases.txt";
const MODEL: &str = "3dunet_kits19_128x128x128_dynbatch.onnx";

#[test]
fn the_commands_for_3d_unet_on_a_xavier_nx_lead_to_all_results() {
    let parts = tempfile::tempdir().unwrap();
    let packages = parts.path().join("packages");
    let Some(board) = Board::start(&XAVIER_NX, &packages) else {
        return;
    };
    let workstation = Workstation::with_archive(&packages);
    kidneys::write_cases(&workstation.path(""));
    let list = kidneys::CALIBRATION.join("\n") + "\n";
    let checksums = [sha256(list.as_bytes()), sha256(&kidneys::network())];
    let address = FileServer::start(BTreeMap::from([
        (LIST, list.into_bytes()),
        (MODEL, kidneys::network()),
    ]))
    .address;
    let commands = page::variant_commands("3d-unet-99");
    page::execute(&commands, &[], &board, &workstation, |workspace| {
        let shipped = include_str!("../../../configs/benchmarks/3d-unet-99.toml").to_owned();
        let benchmarks = workspace.join("configs/benchmarks");
        fs::create_dir_all(&benchmarks).unwrap();
        let text = kidneys::resized(shipped, &address, &checksums[0], &checksums[1]);
        fs::write(benchmarks.join("3d-unet-99.toml"), text).unwrap();
    });
    page::results_are_complete(&workstation, &["SingleStream", "Offline"], &["TEST01"]);
    for scenario in ["SingleStream", "Offline"] {
        let (runs, build) = page::runs_of(&workstation, scenario);
        assert!(
            build.contains("samples, with the network's own input") || build.contains("scales found in "),
            "{build}"
        );
        for run in &runs {
            let loaded = run["loaded_engine"].as_str().unwrap();
            assert!(
                loaded.starts_with("tensorrt 8.5.2 ") && loaded.contains("batch 1, "),
                "{loaded}"
            );
            assert_eq!(run["loadgen"], format!("official:{LOADGEN}-NA"), "{run:#}");
        }
        let accuracy = runs.iter().find(|run| run["mode"] == "AccuracyOnly").unwrap();
        assert_eq!(accuracy["accuracy"]["metric"], "DICE", "{accuracy:#}");
        assert_eq!(accuracy["accuracy"]["value"].as_f64(), Some(1.0), "{accuracy:#}");
        settings_are_those_of_the_board(&workstation, accuracy);
    }
}

/// The samples are linear, and the settings select an engine whose input is packed.
fn settings_are_those_of_the_board(workstation: &Workstation, run: &Value) {
    let directory = workstation.path("lab/runs").join(run["run"].as_str().unwrap());
    let spec: Value = serde_json::from_slice(&fs::read(directory.join("spec.json")).unwrap()).unwrap();
    let settings = &spec["engine"]["settings"];
    for (name, value) in [
        ("precision", "int8"),
        ("input_dtype", "int8"),
        ("input_format", "cdhw32"),
        ("calibration_method", "min-max"),
    ] {
        assert_eq!(settings[name], value, "{settings:#}");
    }
    let samples = spec["benchmark"]["dataset"]["dir"].as_str().unwrap();
    assert!(samples.ends_with("/int8_linear"), "{samples}");
}
