//! Tests of a model of several networks on the fake of TensorRT, which computes them: each is built by the command that a run prints, and the
//! answers are those of tract.

#[cfg(feature = "tract")]
use std::path::Path;
use std::{ffi::OsStr, fs};

use regatta_test_support::oracle;

use crate::support::place::Place;
#[cfg(feature = "tract")]
use crate::support::place::missing_engine;

const COMPUTES: [(&str, &str); 1] = [("FAKE_TRT_COMPUTES", "1")];
const SAMPLES: &str = "7";

/// Changes the benchmark to RNN-T with small networks. `None` without the oracle's libraries.
fn place() -> Option<Place> {
    let python = oracle::librispeech()?;
    let place = Place::new();
    let text = include_str!("../../../../configs/benchmarks/rnnt.toml")
        .replace("= \"rnnt\"", "= \"pixels\"")
        .replace("\"rnnt.", "\"pixels.")
        .replace("_samples = 2513", &format!("_samples = {SAMPLES}"))
        .replace(
            "\"preprocessed_data/LibriSpeech/fp32\"",
            "\"samples\"\nmap = \"map.txt\"",
        )
        .replace("shape = [1024]", "shape = [32]")
        .replace("shape = [320]", "shape = [24]");
    let map = fs::read_to_string(place.fixture.path("map.txt")).unwrap();
    let lines: Vec<&str> = map.lines().take(7).collect();
    fs::write(place.fixture.path("map.txt"), lines.join("\n") + "\n").unwrap();
    fs::write(place.fixture.path("benchmark.toml"), text).unwrap();
    let run = |script: &str, words: &[&OsStr]| oracle::run(&python, "librispeech", script, words);
    let samples = place.fixture.path("samples");
    run("rnnt.py", &["waveforms".as_ref(), samples.as_os_str()]);
    let (weights, networks) = (
        place.fixture.path("weights.npz"),
        place.fixture.path("models/rnnt"),
    );
    run(
        "rnnt.py",
        &["weights".as_ref(), weights.as_os_str(), "32".as_ref()],
    );
    run(
        "../../../tools/export-rnnt",
        &[weights.as_os_str(), networks.as_os_str()],
    );
    Some(place)
}

/// Builds what runs lack until one succeeds. Returns the models that were built.
#[cfg(feature = "tract")]
fn run_with_builds(place: &Place, scenario: &str, settings: &[&str]) -> Vec<String> {
    let mut built = Vec::new();
    loop {
        let ended = place.bench(scenario, "AccuracyOnly", settings, &COMPUTES);
        if ended.code == 0 {
            return built;
        }
        assert!(ended.code == 3 && built.len() < 3, "{ended:?}");
        let words = missing_engine(&ended.stdout);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let onnx = Path::new(words[3]).file_name().unwrap().to_string_lossy();
        built.push(format!("{onnx} {}", words[4..6].join(" ")));
        let building = place.agent(&words, &COMPUTES);
        assert_eq!(building.code, 0, "{building:?}");
    }
}

#[cfg(feature = "tract")]
#[test]
fn each_network_has_an_engine_and_the_answers_are_those_of_tract() {
    let Some(mut place) = place() else { return };
    place.sut = "tract";
    let ended = place.bench("Offline", "AccuracyOnly", &["batch_size=3"], &[]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let expected = place.raw_answers();
    assert!(expected.iter().any(|answer| answer.len() > 20), "{expected:?}");
    place.sut = "tensorrt";
    let networks = ["encoder", "prediction", "joint"];
    let of_batch = |batch: usize| networks.map(|name| format!("{name}.onnx --batch {batch}"));
    let settings = ["batch_size=3", "gpu_copy_streams=2"];
    assert_eq!(run_with_builds(&place, "Offline", &settings), of_batch(3));
    assert_eq!(place.raw_answers(), expected);
    assert_eq!(run_with_builds(&place, "SingleStream", &[]), [""; 0]);
    assert_eq!(place.raw_answers(), expected);

    let report = place.bench("Offline", "AccuracyOnly", &settings, &COMPUTES);
    let report: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
    let engines = report["engine"].as_str().unwrap();
    assert_eq!(engines.matches(": engine ").count(), 3, "{engines}");
    let keys: Vec<&str> = engines
        .split(": engine ")
        .skip(1)
        .filter_map(|words| words.split(',').next())
        .collect();
    // Named engines are found by their models, in any order.
    let named = format!("gpu_engine={},{},{}", keys[2], keys[0], keys[1]);
    run_with_builds(&place, "Offline", &["batch_size=3", "gpu_copy_streams=2", &named]);
    assert_eq!(place.raw_answers(), expected);
    let two = format!("gpu_engine={},{}", keys[0], keys[1]);
    let refused = place.bench("Offline", "AccuracyOnly", &["batch_size=3", &two], &COMPUTES);
    assert!(
        refused.stderr.contains("was built from this model"),
        "{refused:?}"
    );
}

#[test]
fn single_network_settings_are_refused_for_several_networks() {
    let Some(place) = place() else { return };
    let refused = |settings: &[&str]| {
        let ended = place.bench("Offline", "AccuracyOnly", settings, &COMPUTES);
        assert_eq!(ended.code, 3, "{ended:?}");
        ended.stderr
    };
    let message = refused(&["max_dlas=1"]);
    assert!(
        message.contains("a model of several networks runs on GPUs"),
        "{message}"
    );
    let message = refused(&["calibration=samples"]);
    assert!(
        message.contains("samples has no encoder.cache, and each network needs its scales"),
        "{message}"
    );
    fs::write(place.fixture.path("samples/encoder.cache"), "scales").unwrap();
    let message = refused(&["calibration=samples"]);
    assert!(
        message.contains("--precision int8")
            && message.contains("--calibration-cache ./samples/encoder.cache"),
        "{message}"
    );
    let shapes = ["--batch", "3", "--benchmark-file", "benchmark.toml"];
    let build = [
        &["engine", "build", "--onnx", "models/rnnt/joint.onnx"][..],
        &shapes,
    ];
    let ended = place.agent(&build.concat(), &COMPUTES);
    assert!(
        ended.code == 2
            && ended
                .stderr
                .contains("its model has several networks; hint: use --input-shape"),
        "{ended:?}"
    );
}
