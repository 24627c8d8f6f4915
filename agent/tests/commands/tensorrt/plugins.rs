//! Tests of libraries with TensorRT plug-ins: builds and runs of a network that needs one.

use std::fs;

use crate::support::place::{Place, expected};

const NEEDED: [(&str, &str); 1] = [("FAKE_TRT_PLUGIN", "1")];

#[test]
fn a_network_with_a_plug_in_is_built_and_run_with_its_library() {
    let place = Place::new();
    fs::create_dir(place.fixture.path("plugins")).unwrap();
    place
        .fakes
        .compile_plugin(&place.fixture.path("plugins/liblayer.so"));
    let build = |flags: &[&str]| {
        let words = ["engine", "build", "--onnx", "model.onnx", "--batch", "4"];
        place.agent(&[&words[..], flags].concat(), &NEEDED)
    };
    let without = build(&[]);
    assert_eq!(without.code, 2, "{without:?}");
    assert!(
        without
            .stderr
            .contains("No importer registered for op: FakeLayer"),
        "{without:?}"
    );

    let run = |settings: &[&str]| {
        let settings = [&["gpu_batch_size=4"], settings].concat();
        place.bench("Offline", "AccuracyOnly", &settings, &NEEDED)
    };
    let setting = "tensorrt_plugins=plugins/liblayer.so";
    let missing = run(&[setting]);
    assert_eq!(missing.code, 3, "{missing:?}");
    assert!(
        missing.stderr.contains(" --plugins ./plugins/liblayer.so"),
        "{missing:?}"
    );
    let built = build(&["--plugins", "plugins/liblayer.so"]);
    assert_eq!(built.code, 0, "{built:?}");
    let found = build(&["--plugins", "plugins/liblayer.so"]);
    assert!(found.stderr.contains("found in "), "{found:?}");
    let ended = run(&[setting]);
    assert_eq!((ended.code, place.answers()), (0, expected()), "{ended:?}");
    let other = run(&[]);
    assert!(
        other
            .stderr
            .contains("1 engine of this model is built with other plug-in libraries than the run has"),
        "{other:?}"
    );
    // The benchmark's file can name the library as well.
    let file = place.fixture.path("benchmark.toml");
    let text = fs::read_to_string(&file).unwrap();
    let named = "file = \"model.onnx\"\ntensorrt_plugins = [\"plugins/liblayer.so\"]";
    fs::write(&file, text.replace("file = \"model.onnx\"", named)).unwrap();
    let ended = run(&[]);
    assert_eq!((ended.code, place.answers()), (0, expected()), "{ended:?}");
}

#[test]
fn libraries_without_plugins_are_refused_by_name() {
    let place = Place::new();
    place.build(&["--batch", "4"], &[]);
    fs::write(place.fixture.path("text.so"), "no library").unwrap();
    let mut foreign = b"\x7fELF\x02\x01\x01".to_vec();
    foreign.resize(16, 0);
    foreign.extend([3, 0, 243, 0]);
    fs::write(place.fixture.path("foreign.so"), &foreign).unwrap();
    let machine: u16 = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
    foreign[18..20].copy_from_slice(&machine.to_le_bytes());
    fs::write(place.fixture.path("short.so"), &foreign).unwrap();
    for (file, words) in [
        (
            "nowhere.so",
            "the plug-in library ./nowhere.so cannot be read; hint: ",
        ),
        (
            "text.so",
            "./text.so is not a shared library, so it has no TensorRT plug-ins",
        ),
        (
            "foreign.so",
            "the plug-in library ./foreign.so is for machine 243 of ELF, but this machine is ",
        ),
        (
            "short.so",
            "the plug-in library ./short.so cannot be loaded: ./short.so: file too short",
        ),
    ] {
        let setting = format!("tensorrt_plugins={file}");
        let ended = place.bench("Offline", "AccuracyOnly", &["gpu_batch_size=4", &setting], &[]);
        assert_eq!(ended.code, 3, "{ended:?}");
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
    let outside = ["tensorrt_plugins=../elsewhere.so"];
    let ended = place.bench("Offline", "AccuracyOnly", &outside, &[]);
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(
        ended.stderr.contains("must be paths below the scratch directory"),
        "{ended:?}"
    );
}
