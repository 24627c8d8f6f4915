//! Tests of settings that require how an engine was built: its workspace, its exact batch, profiles for the streams.

use std::fs;

use crate::support::place::{Place, expected, missing_engine};

fn refused(place: &Place, settings: &[&str]) -> String {
    let ended = place.bench("Offline", "AccuracyOnly", settings, &[]);
    assert_eq!(ended.code, 3, "{ended:?}");
    ended.stderr
}

fn runs(place: &Place, settings: &[&str]) {
    let ended = place.bench("Offline", "AccuracyOnly", settings, &[]);
    assert_eq!((ended.code, place.answers()), (0, expected()), "{ended:?}");
}

#[test]
fn workspace_batch_and_profiles_are_those_that_the_settings_request() {
    let place = Place::new();
    place.build(&["--batch", "8"], &[]);
    // The settings have bytes, the command MiB.
    let workspace = "workspace_size=4000000000";
    let message = refused(&place, &[workspace]);
    assert!(
        message.contains("1 engine of this model is of another workspace_size than the settings request")
            && message.contains(" --workspace 3814 "),
        "{message}"
    );
    place.build(&["--batch", "8", "--workspace", "3814"], &[]);
    runs(&place, &[workspace]);
    runs(&place, &["workspace_size=0"]);

    // A workspace larger than any machine's memory is limited in the same way by the build and by the run.
    place.build(
        &["--batch", "8", "--workspace", "4000000000", "--ignore-memory"],
        &[],
    );
    runs(&place, &["workspace_size=3000000000000000"]);

    let default = "workspace_size=0";
    runs(&place, &[default, "gpu_batch_size=4"]);
    let exact = [default, "gpu_batch_size=4", "exact_batch=true"];
    let message = refused(&place, &exact);
    assert!(message.contains("has a batch of 4; hint: "), "{message}");
    place.build(&["--batch", "4"], &[]);
    runs(&place, &exact);

    // An engine with more profiles is beside it, and is used where they are needed.
    let streams = [default, "gpu_batch_size=4", "gpu_copy_streams=2"];
    let message = refused(&place, &streams);
    assert!(message.contains("--batch 4 --profiles 2"), "{message}");
    place.build(&["--batch", "4", "--profiles", "2"], &[]);
    place.build(&["--batch", "4", "--profiles", "4"], &[]);
    runs(&place, &streams);
    runs(&place, &exact);
}

/// DLA's memory is that of NVIDIA's harness unless the settings say otherwise.
#[test]
fn dla_engines_have_the_memory_and_fallback_that_the_settings_request() {
    let place = Place::new();
    place.build(&["--batch", "16"], &[]);
    let build = |settings: &[&str]| {
        let settings = [&["max_dlas=1", "precision=fp16"], settings].concat();
        let ended = place.bench("Offline", "AccuracyOnly", &settings, &[]);
        let words = missing_engine(&ended.stdout);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        (words.join(" "), place.agent(&words, &[]), ended.stderr)
    };
    place.build(&["--batch", "16", "--precision", "fp16"], &[]);
    let (command, built, _) = build(&[]);
    assert!(!command.contains("--dla-sram"), "{command}");
    assert_eq!(built.code, 0, "{built:?}");
    let engine = |sram: u64| {
        let engines = fs::read_dir(place.fakes.engines()).unwrap();
        let plans =
            engines.filter_map(|entry| fs::read_to_string(entry.unwrap().path().join("engine.plan")).ok());
        let is_of_sram = |plan: &String| plan.contains(" dla 0 ") && plan.contains(&format!(" sram {sram} "));
        plans.filter(is_of_sram).count()
    };
    assert_eq!((engine(1 << 20), engine(512 << 10)), (1, 0));

    let (command, built, message) = build(&["dla_sram_size=524288"]);
    assert!(
        message.contains("1 engine of this model is of another dla_sram_size than the settings request"),
        "{message}"
    );
    assert!(command.contains(" --dla-core 0 --dla-sram 512 "), "{command}");
    assert_eq!(built.code, 0, "{built:?}");
    assert_eq!((engine(1 << 20), engine(512 << 10)), (1, 1));
    for size in ["dla_sram_size=524288", "dla_sram_size=1048576"] {
        runs(&place, &["max_dlas=1", "precision=fp16", size]);
    }

    // The fake's network has a layer that DLA cannot run.
    let (command, built, message) = build(&["dla_gpu_fallback=false"]);
    assert!(
        message.contains("2 engines of this model are of another dla_gpu_fallback than the settings request"),
        "{message}"
    );
    assert!(command.contains(" --dla-core 0 --no-fallback "), "{command}");
    assert!(built.code == 2 && built.stderr.contains("top_k"), "{built:?}");

    let (command, built, _) = build(&["dla_sram_size=1000000"]);
    assert!(command.contains(" --dla-sram 976 "), "{command}");
    assert!(
        built.code == 2
            && built.stderr.contains(
                "DLA's managed SRAM cannot be 999424 bytes: use a power of two of at least 4096, or 0 for TensorRT's choice"
            ),
        "{built:?}"
    );
}

#[test]
fn engines_have_the_level_of_optimisation_that_the_settings_request() {
    let place = Place::new();
    place.build(&["--batch", "16"], &[]);
    let message = refused(&place, &["builder_optimization_level=4"]);
    assert!(
        message.contains(
            "1 engine of this model is of another builder_optimization_level than the settings request"
        ) && message.contains(" --level 4 "),
        "{message}"
    );
}

/// JSON has the arguments of the command that the error's text contains.
#[test]
fn the_missing_engine_is_in_the_json() {
    let place = Place::new();
    let ended = place.bench("Offline", "AccuracyOnly", &["gpu_batch_size=4"], &[]);
    let words = missing_engine(&ended.stdout);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert_eq!(
        words[..6],
        ["engine", "build", "--onnx", "./model.onnx", "--batch", "4"]
    );
    assert!(ended.stderr.contains(&words.join(" ")), "{ended:?}");
    let built = place.agent(&words, &[]);
    assert_eq!(built.code, 0, "{built:?}");
    runs(&place, &["gpu_batch_size=4"]);
}

/// Builds the missing engine of a run in Offline with batches of 8. Returns the command.
fn build_missing(place: &Place, environment: &[(&str, &str)]) -> String {
    let missing = place.bench("Offline", "AccuracyOnly", &["gpu_batch_size=8"], environment);
    let words = missing_engine(&missing.stdout);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let built = place.agent(&words, environment);
    assert_eq!(built.code, 0, "{built:?}");
    words.join(" ")
}

/// As exporters of detection networks leave it by default.
#[test]
fn a_network_with_a_fixed_batch_is_built_and_run_in_it() {
    let place = Place::new();
    place.write_network(&[1, 1, 8, 8]);
    let environment = [("FAKE_TRT_FIXED", "1")];
    let command = build_missing(&place, &environment);
    assert!(command.contains(" --batch 1 "), "{command}");
    let run = |settings: &[&str]| {
        let ended = place.bench("Offline", "AccuracyOnly", settings, &environment);
        assert_eq!((ended.code, place.answers()), (0, expected()), "{ended:?}");
        ended.stderr
    };
    let warning = "the batch of ./model.onnx is fixed at 1, so batches of 1 are computed instead of 8";
    assert_eq!(run(&["gpu_batch_size=8"]).matches(warning).count(), 1);
    let quiet = run(&["gpu_batch_size=1"]);
    assert!(!quiet.contains("fixed"), "{quiet}");
}

/// As exporters of detection networks leave them if the batch should be free.
#[test]
fn free_dimensions_of_an_image_are_those_of_the_samples() {
    let place = Place::new();
    place.write_network(&[0, 1, 0, 0]);
    let environment = [("FAKE_TRT_FREE", "1")];
    let command = build_missing(&place, &environment);
    assert!(
        command.contains(" --batch 8 ") && command.contains(" --input-shape 1,8,8"),
        "{command}"
    );
    let ended = place.bench("Offline", "AccuracyOnly", &["gpu_batch_size=8"], &environment);
    assert_eq!((ended.code, place.answers()), (0, expected()), "{ended:?}");
}
