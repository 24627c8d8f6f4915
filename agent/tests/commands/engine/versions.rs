//! Tests of the differences between versions of TensorRT, over fakes, and of shims and libraries that do not match.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use super::Place;

const BUILD: [&str; 3] = ["build", "--onnx", "digits.onnx"];

#[test]
fn of_several_shims_the_one_that_serves_the_version_best_is_loaded() {
    let place = Place::fake(&[]);
    place.become_version("libnvinfer.so.8", &["8.5.2", "8.6.1", "10.3.0", "10.16.0"]);
    for (number, version, shim) in [
        ("8502", "8.5.2", "8.5.2"),
        ("8601", "8.6.1", "8.6.1"),
        ("101303", "10.13.3", "10.3.0"),
        ("101600", "10.16.0", "10.16.0"),
    ] {
        let fake = [("FAKE_TRT_VERSION", number)];
        let built = place.json_with(&fake, &BUILD, 0);
        assert_eq!(built["manifest"]["tensorrt"], version);
        let engine = place.only_engine();
        let inspected = place.json_with(&fake, &["inspect", engine.to_str().unwrap()], 0);
        assert_eq!(inspected["shim"], shim, "for {version}");
        fs::remove_dir_all(engine).unwrap();
    }
    let none = place.refused_with(&[("FAKE_TRT_VERSION", "110000")], &BUILD, 3);
    assert!(
        none.contains("TensorRT 11.0.0 is installed, but there is no shim for it; found are 8.5.2, 8.6.1, 10.3.0, 10.16.0;"),
        "{none}"
    );
}

#[test]
fn options_missing_in_a_tensorrt_version_are_refused_by_name() {
    let place = Place::fake(&[]);
    place.become_version("libnvinfer.so.10", &["8.5.2", "8.6.1", "10.3.0", "11.0.0"]);
    let refused = |version: &str, flags: &str| {
        let flags: Vec<&str> = flags.split_ascii_whitespace().collect();
        place.refused_with(
            &[("FAKE_TRT_VERSION", version)],
            &[&BUILD[..], &flags].concat(),
            2,
        )
    };
    let alone = "DLA only computes in fp16 and int8, so the network would run completely on the GPU";
    for (version, flags, reason) in [
        ("8502", "--level 3", "an optimisation level was requested, which TensorRT 8.5.2 does not know".to_owned()),
        ("8502", "--dla-core 0", format!("{alone}; hint: use --precision fp16 or int8")),
        ("100300", "--dla-core 0", format!("{alone}; hint: use --precision fp16 or int8")),
        ("110401", "--dla-core 0", format!("{alone}; hint: use an ONNX file in fp16 or with Q/DQ layers")),
        ("110401", "--dla-core 2", "finds 2 here: this version drives DLA on AGX Orin".to_owned()),
        ("110401", "--precision fp16", "TensorRT 11.0.0 takes types from the network alone".to_owned()),
        (
            "100800",
            "--dla-core 0 --precision fp16",
            "DLA core 0 was requested, but TensorRT 10.8.0 finds 0 here: this version drives no DLA: 10.8 to 11.4.0 do not".to_owned(),
        ),
        (
            "110400",
            "--dla-core 0",
            "DLA core 0 was requested, but TensorRT 11.4.0 finds 0 here: this version drives no DLA: 10.8 to 11.4.0 do not".to_owned(),
        ),
    ] {
        let message = refused(version, flags);
        assert!(message.contains(&reason), "{version} {flags}: {message}");
    }
    // A version gets the flags that it has, with the requested values.
    let flags = "--level 3 --dla-core 1 --dla-sram 1024 --precision fp16";
    let flags: Vec<&str> = flags.split_ascii_whitespace().collect();
    place.json_with(&[("FAKE_TRT_VERSION", "8601")], &[&BUILD[..], &flags].concat(), 0);
    let plan = fs::read_to_string(place.only_engine().join("engine.plan")).unwrap();
    assert!(
        plan.contains(" dla 1 ") && plan.contains(" level 3 sram 1048576 "),
        "{plan}"
    );
}

#[test]
fn timing_cache_is_used_by_the_same_version_only() {
    let place = Place::fake(&[]);
    place.become_version("libnvinfer.so.8", &["8.5.2", "8.6.1"]);
    let engines = place.scratch.path().join("engines");
    let timings = |version: &str| -> PathBuf {
        let names = fs::read_dir(&engines).unwrap().map(|entry| entry.unwrap());
        let prefix = format!("timing-{version}-");
        let mut named = names.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
        named.next().unwrap().path()
    };
    let build = |version: &str, batch: &str| {
        place.json_with(
            &[("FAKE_TRT_VERSION", version)],
            &[&BUILD[..], &["--batch", batch]].concat(),
            0,
        );
    };
    build("8502", "1");
    build("8502", "2");
    build("8601", "1");
    let output_text = |version: &str| fs::read_to_string(timings(version)).unwrap();
    assert_eq!(output_text("8.5.2"), "timings of TensorRT 8502 after 2 build(s)");
    assert_eq!(output_text("8.6.1"), "timings of TensorRT 8601 after 1 build(s)");
    // TensorRT refuses this timing cache, so the build replaces it.
    fs::write(timings("8.6.1"), output_text("8.5.2")).unwrap();
    build("8601", "2");
    assert_eq!(output_text("8.6.1"), "timings of TensorRT 8601 after 1 build(s)");
    // The next build may be another user's, as with engines.
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let engine = fs::read_dir(&engines)
        .unwrap()
        .map(|entry| entry.unwrap().path().join("engine.json"));
    let engine = engine.into_iter().find(|path| path.exists()).unwrap();
    assert_eq!(mode(timings("8.6.1")), mode(engine) & 0o644);
}

/// Only TensorRT reports DLA placement of a model that the agent cannot parse. The fake refuses files that are not ONNX.
#[test]
fn every_layer_of_fp32_falls_back() {
    let place = Place::fake(&[]);
    place.become_version("libnvinfer.so.10", &["10.3.0"]);
    fs::write(place.scratch.path().join("unknown.onnx"), "no model").unwrap();
    let fake = [("FAKE_TRT_VERSION", "100300")];
    let build = ["build", "--onnx", "unknown.onnx", "--dla-core", "0"];
    let built = place.json_with(&fake, &build, 0);
    let layers = built["placement"]["layers"].as_array().unwrap();
    assert!(layers.iter().all(|layer| layer["on_dla"] == false), "{layers:?}");
    assert_eq!(
        layers[0]["reason"],
        "DLA supports only FP16 and INT8 precision type"
    );
    let refused = place.refused_with(&fake, &[&build[..], &["--no-fallback"]].concat(), 2);
    assert!(
        refused.contains("3 of 3 layers cannot (conv1, top_k, pool1)"),
        "{refused}"
    );
}

/// The shim behaves as on a board.
#[test]
fn the_real_tensorrt_takes_no_timing_cache_that_is_none() {
    let Some(place) = Place::real() else { return };
    place.json(&BUILD, 0);
    let engines = place.scratch.path().join("engines");
    let kept = || {
        let files = fs::read_dir(&engines).unwrap().map(|entry| entry.unwrap().path());
        let mut files = files.filter(|path| {
            path.file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with("timing-rtx-1.7.1-")
        });
        files.next().unwrap()
    };
    let whole = fs::read(kept()).unwrap();
    assert!(!whole.is_empty());
    fs::write(kept(), "no timings").unwrap();
    place.json(&[&BUILD[..], &["--batch", "2"]].concat(), 0);
    assert_ne!(fs::read(kept()).unwrap(), b"no timings");
}

#[test]
fn the_real_shim_reports_a_library_that_is_not_tensorrt() {
    let Some(mut real) = Place::real() else { return };
    // It only reports a version.
    let fake = Place::fake(&[]);
    fake.become_version("libtensorrt_rtx.so.1", &["8.5.2"]);
    let libraries = std::mem::replace(&mut real.tensorrt, fake.tensorrt.clone());
    let message = real.refused_with(&[("FAKE_TRT_VERSION", "10701")], &BUILD, 3);
    assert!(
        message.contains("TensorRT rtx-1.7.1 cannot be opened: ")
            && message.contains("libtensorrt_rtx.so.1 is not a TensorRT"),
        "{message}"
    );
    // Without its parser, engines can be loaded but not built.
    real.tensorrt = real.scratch.path().join("alone");
    fs::create_dir(&real.tensorrt).unwrap();
    std::os::unix::fs::symlink(
        libraries.join("libtensorrt_rtx.so.1"),
        real.tensorrt.join("libtensorrt_rtx.so.1"),
    )
    .unwrap();
    let message = real.refused(&BUILD, 3);
    assert!(
        message.contains("libtensorrt_onnxparser_rtx.so.1: cannot open shared object file"),
        "{message}"
    );
}
