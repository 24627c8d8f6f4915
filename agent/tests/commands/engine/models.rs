//! Tests of networks that the real TensorRT-RTX builds, and of the reports about them.

#![cfg(feature = "tract")]

use std::fs;

use regatta_test_support::{fake_tensorrt::FakeTensorrt, fixture::onnx};

use super::Place;

/// Weights beside the ONNX file are part of the model: other weights make another engine.
#[test]
fn weights_in_a_file_of_their_own_are_part_of_the_key() {
    let Some(place) = Place::real() else { return };
    let build = ["build", "--onnx", "model.onnx"];
    let (model, weights) = onnx::with_weights_beside("weights.bin");
    fs::write(place.scratch.path().join("model.onnx"), model).unwrap();
    let beside = place.scratch.path().join("weights.bin");
    let missing = place.refused(&build, 2);
    assert!(
        missing.contains("the model model.onnx has weights in weights.bin, which cannot be read"),
        "{missing}"
    );
    fs::write(&beside, &weights).unwrap();
    let built = place.json(&build, 0);
    let found = place.engine(&build);
    assert!(
        String::from_utf8_lossy(&found.stderr).contains("found in engines"),
        "{found:?}"
    );
    fs::write(&beside, vec![0; weights.len()]).unwrap();
    let other = place.json(&build, 0);
    assert_ne!(other["manifest"]["onnx_sha256"], built["manifest"]["onnx_sha256"]);
    assert_ne!(other["plan_sha256"], built["plan_sha256"]);
}

/// The one way to 8-bit integers in TensorRT-RTX and from 11 on.
#[test]
fn a_network_with_its_own_scales_is_built() {
    let Some(place) = Place::real() else { return };
    fs::write(place.scratch.path().join("qdq.onnx"), onnx::quantised()).unwrap();
    let built = place.json(&["build", "--onnx", "qdq.onnx", "--batch", "4"], 0);
    assert_eq!(built["manifest"]["precision"], "as-in-network");
    assert!(built["plan_bytes"].as_u64().unwrap() > 1_000, "{built:#}");
}

/// A library that registers its plug-ins itself, as this one would, needs no more than to be loaded.
#[test]
fn a_library_with_plug_ins_is_loaded_and_part_of_the_key() {
    let Some(place) = Place::real() else { return };
    FakeTensorrt::new().compile_plugin(&place.scratch.path().join("liblayer.so"));
    let without = place.json(&["build", "--onnx", "digits.onnx"], 0);
    let with = place.json(
        &["build", "--onnx", "digits.onnx", "--plugins", "./liblayer.so"],
        0,
    );
    assert_eq!(without["manifest"]["plugins_sha256"], serde_json::Value::Null);
    assert_eq!(with["manifest"]["plugins_sha256"].as_array().unwrap().len(), 1);
    fs::write(place.scratch.path().join("text.so"), "no library").unwrap();
    let refused = place.refused(&["build", "--onnx", "digits.onnx", "--plugins", "text.so"], 2);
    assert!(refused.contains("text.so is not a shared library"), "{refused}");
}
