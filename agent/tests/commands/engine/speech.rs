//! The real TensorRT-RTX builds the networks of RNN-T and Whisper, as the tools export them, for several batches and contexts.

use std::path::Path;

use regatta_test_support::oracle;

use super::Place;

/// Builds an engine of each network in `directory`.
fn build(place: &Place, directory: &Path, networks: &[&str]) {
    for network in networks {
        let onnx = directory.join(network);
        let onnx = onnx.to_str().unwrap();
        let flags = ["--batch", "8", "--profiles", "2", "--cache", "engines"];
        let built = place.engine(&[&["build", "--onnx", onnx][..], &flags].concat());
        assert!(built.status.success(), "{network}: {built:?}");
    }
}

#[test]
fn the_real_tensorrt_builds_the_networks_of_speech() {
    let (Some(place), Some(python)) = (Place::real(), oracle::librispeech()) else {
        return;
    };
    let path = |name: &str| place.scratch.path().join(name);
    let (weights, rnnt) = (path("weights.npz"), path("rnnt"));
    let words = ["weights".as_ref(), weights.as_os_str(), "32".as_ref()];
    oracle::run(&python, "librispeech", "rnnt.py", &words);
    let words = [weights.as_os_str(), rnnt.as_os_str()];
    oracle::run(&python, "librispeech", "../../../tools/export-rnnt", &words);
    build(&place, &rnnt, &["encoder.onnx", "prediction.onnx", "joint.onnx"]);

    let (checkpoint, whisper) = (path("checkpoint"), path("whisper"));
    let words = ["checkpoint".as_ref(), checkpoint.as_os_str()];
    oracle::run(&python, "whisper", "speech.py", &words);
    let words = [
        "--positions".as_ref(),
        "27".as_ref(),
        checkpoint.as_os_str(),
        whisper.as_os_str(),
    ];
    oracle::run(&python, "whisper", "../../../tools/export-whisper", &words);
    build(&place, &whisper, &["encoder.onnx", "decoder.onnx"]);
}
