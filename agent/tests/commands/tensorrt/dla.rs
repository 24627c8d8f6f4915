//! Tests of runs on DLA cores: without the GPU, and where TensorRT finds fewer cores than the settings request.

use crate::support::place::{Place, expected};

const DLA_ENGINE: [&str; 6] = ["--batch", "2", "--dla-core", "0", "--precision", "fp16"];
/// The settings with which NVIDIA's files request DLA.
const REQUESTS_DLA: [&str; 2] = ["dla_batch_size=2", "gpu_batch_size=4"];

/// Returns the description of the engine that ran, and the log on standard error.
fn described(
    place: &Place,
    scenario: &str,
    settings: &[&str],
    environment: &[(&str, &str)],
) -> (String, String) {
    let ended = place.bench(scenario, "PerformanceOnly", settings, environment);
    assert!(ended.code == 0 || ended.code == 1, "{settings:?}: {ended:?}");
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let engine = report["engine"].as_str().unwrap();
    (engine.to_owned(), ended.stderr)
}

fn refused(place: &Place, settings: &[&str], environment: &[(&str, &str)]) -> String {
    let ended = place.bench("Offline", "AccuracyOnly", settings, environment);
    assert_eq!(ended.code, 3, "{settings:?}: {ended:?}");
    ended.stderr
}

#[test]
fn both_dla_cores_compute_without_the_gpu() {
    let place = Place::new();
    place.build(&DLA_ENGINE, &[]);
    let without_gpu = ["no_gpu=true", "dla_copy_streams=2", "gpu_batch_size=64"];
    for (scenario, settings, units) in [
        ("Offline", &without_gpu[..], &["dla0", "dla1"][..]),
        ("Server", &without_gpu, &["dla0", "dla1"]),
        ("MultiStream", &without_gpu, &["dla0", "dla1"]),
        ("SingleStream", &["no_gpu=true"], &["dla0"]),
        ("Offline", &["no_gpu=true", "max_dlas=1"], &["dla0"]),
        ("Offline", &["no_gpu=true", "dla_core=1"], &["dla1"]),
    ] {
        let ended = place.bench(scenario, "AccuracyOnly", settings, &[]);
        assert_eq!(
            (ended.code, place.answers()),
            (0, expected()),
            "{scenario} {settings:?}: {ended:?}"
        );
        let (engine, _) = described(&place, scenario, settings, &[]);
        for unit in ["gpu", "dla0", "dla1"] {
            let takes_part = engine.contains(&format!("; {unit}: engine "));
            assert_eq!(
                takes_part,
                units.contains(&unit),
                "{scenario} {settings:?} {unit}: {engine}"
            );
        }
    }
    let message = refused(&place, &["no_gpu=true", "max_dlas=0"], &[]);
    assert!(
        message
            .contains("no_gpu excludes the GPU, and max_dlas=0 the DLA cores; hint: leave out one of them"),
        "{message}"
    );
}

/// A missing engine of a run without the GPU is one for DLA.
#[test]
fn missing_engine_without_the_gpu_is_one_for_dla() {
    let place = Place::new();
    place.build(&["--batch", "2"], &[]);
    let message = refused(&place, &["no_gpu=true", "dla_batch_size=2"], &[]);
    assert!(
        message.contains("--batch 2 --precision fp16 --dla-core 0 "),
        "{message}"
    );
}

#[test]
fn gpu_computes_alone_where_tensorrt_drives_no_dla() {
    let place = Place::new();
    place.fakes.become_version("libnvinfer.so.10", &["10.3.0"]);
    // TensorRT of JetPack 7.2.
    let newer = [("FAKE_TRT_VERSION", "101602")];
    place.build(&["--batch", "4"], &newer);
    let reason = "TensorRT 10.16.2 finds no DLA core here: this version drives no DLA: 10.8 to 11.4.0 do not";
    for settings in [&REQUESTS_DLA[..], &["max_dlas=2", "gpu_batch_size=4"]] {
        let ended = place.bench("Offline", "AccuracyOnly", settings, &newer);
        assert_eq!(
            (ended.code, place.answers()),
            (0, expected()),
            "{settings:?}: {ended:?}"
        );
        let (engine, log) = described(&place, "Offline", settings, &newer);
        assert!(
            engine.contains("; gpu: engine ")
                && engine.ends_with(&format!("; without DLA, which was requested: {reason})"))
                && !engine.contains("dla0"),
            "{engine}"
        );
        assert!(
            log.contains("WARN")
                && log.contains(&format!(
                    "the GPU computes without DLA, which the settings request: {reason}"
                )),
            "{log}"
        );
    }
    let (engine, log) = described(&place, "Offline", &["gpu_batch_size=4"], &newer);
    assert!(!engine.contains("DLA") && !log.contains("DLA"), "{engine} {log}");
    // Without the GPU, nothing is left that could compute.
    for settings in [&["dla_core=0"][..], &["no_gpu=true"]] {
        let message = refused(&place, settings, &newer);
        assert!(
            message.contains(
                "DLA core 0 was requested, but TensorRT 10.16.2 finds 0 here: this version drives no DLA"
            ),
            "{message}"
        );
    }
    // A chip without DLA is treated likewise.
    place.build(&["--batch", "4"], &[("FAKE_TRT_VERSION", "100300")]);
    let older = [("FAKE_TRT_VERSION", "100300"), ("FAKE_TRT_NO_DLA", "1")];
    let (engine, _) = described(&place, "Offline", &REQUESTS_DLA, &older);
    assert!(
        engine.contains("TensorRT 10.3.0 finds no DLA core here: "),
        "{engine}"
    );
}

#[test]
fn dla_cores_are_those_that_tensorrt_finds() {
    let place = Place::new();
    place.build(&["--batch", "4"], &[]);
    place.build(&DLA_ENGINE, &[]);
    let one = [("FAKE_TRT_DLA_CORES", "1")];
    for settings in [
        &REQUESTS_DLA[..],
        &["max_dlas=2", "gpu_batch_size=4", "dla_batch_size=2"],
    ] {
        let (engine, _) = described(&place, "Offline", settings, &one);
        assert!(
            engine.contains("; dla0: ") && !engine.contains("dla1"),
            "{engine}"
        );
        let (engine, _) = described(&place, "Offline", settings, &[]);
        assert!(
            engine.contains("; dla0: ") && engine.contains("; dla1: "),
            "{engine}"
        );
    }
    let message = refused(&place, &["dla_core=1"], &one);
    assert!(
        message.contains("DLA core 1 was requested, but TensorRT 8.5.2 finds 1 here"),
        "{message}"
    );
}
