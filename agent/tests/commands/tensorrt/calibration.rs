//! Tests of INT8 calibration over samples: every sample is read once, each input gets its own, and the scales are kept.

use std::fs;

use regatta_test_support::fixture;

use crate::support::place::{Place, expected, missing_engine};

#[test]
fn int8_is_calibrated_over_samples_once() {
    let place = Place::new();
    let build = |flags: &[&str], environment: &[(&str, &str)]| {
        let usual = ["engine", "build", "--onnx", "model.onnx", "--precision", "int8"];
        place.agent(&[&usual, flags].concat(), environment)
    };
    let samples = ["--calibration-samples", "samples"];
    let four = [&samples[..], &["--batch", "4"]].concat();
    let built = build(&four, &[]);
    assert_eq!(built.code, 0, "{built:?}");
    assert!(
        built.stderr.contains("calibrating over 40 samples"),
        "{}",
        built.stderr
    );
    let caches = || {
        let entries = fs::read_dir(place.fakes.engines()).unwrap();
        let named = entries.map(|entry| entry.unwrap().path()).filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with("calibration-")
        });
        named
            .map(|path| fs::read_to_string(path).unwrap())
            .collect::<Vec<_>>()
    };
    // Every sample has one bright pixel, so the sum of all pixels is the number of samples.
    assert_eq!(caches(), ["TRT-8502-EntropyCalibration2\nbatches: 10\nsum: 40\n"]);
    let again = build(&four, &[]);
    assert!(again.stderr.contains("found in "), "{}", again.stderr);
    let other_batch = build(&[&samples[..], &["--batch", "2"]].concat(), &[]);
    assert!(
        other_batch.stderr.contains("scales found in "),
        "{}",
        other_batch.stderr
    );

    // On request, both are made again.
    let forced = [&four[..], &["--force-calibration"]].concat();
    let built_again = build(&forced, &[]);
    assert_eq!(built_again.code, 0, "{built_again:?}");
    assert!(
        built_again.stderr.contains("calibrating over 40 samples"),
        "{built_again:?}"
    );
    let without_samples = build(&["--force-calibration"], &[]);
    assert_eq!(without_samples.code, 2, "{without_samples:?}");

    // Some of them, by a list; all of them in one file.
    fs::write(place.fixture.path("list.txt"), "sample3 1\nsample5\n").unwrap();
    let listed = build(&[&samples[..], &["--calibration-list", "list.txt"]].concat(), &[]);
    assert_eq!(listed.code, 0, "{listed:?}");
    assert!(caches().contains(&"TRT-8502-EntropyCalibration2\nbatches: 2\nsum: 2\n".to_owned()));
    let data: Vec<u8> = (0..5).flat_map(fixture::pixels).collect();
    let together = fixture::npy("<f4", &[5, 1, 8, 8], &data);
    fs::write(place.fixture.path("together.npy"), together).unwrap();
    let one_file = build(&["--calibration-samples", "together.npy", "--batch", "5"], &[]);
    assert_eq!(one_file.code, 0, "{one_file:?}");
    assert!(caches().contains(&"TRT-8502-EntropyCalibration2\nbatches: 1\nsum: 5\n".to_owned()));

    let refused = |flags: &[&str], environment: &[(&str, &str)], code: i32, words: &str| {
        let ended = build(flags, environment);
        assert_eq!(ended.code, code, "{ended:?}");
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    };
    let bytes = fixture::npy("|i1", &[2, 64], &[0; 128]);
    fs::write(place.fixture.path("bytes.npy"), bytes).unwrap();
    let small = fixture::npy("<f4", &[2, 2], &[0; 16]);
    fs::write(place.fixture.path("small.npy"), small).unwrap();
    for (file, code, words) in [
        ("bytes.npy", 2, "has '|i1' (2, 64), but must be float32"),
        ("small.npy", 2, "a calibration sample is not of the input's size"),
        ("nowhere.npy", 2, "nowhere.npy cannot be read"),
        ("map.txt", 2, "is not a readable .npy file"),
    ] {
        refused(&["--calibration-samples", file], &[], code, words);
    }
    // An interrupted preparation: some samples may be of another kind.
    let unfinished = place.fixture.path("samples/samples.unfinished");
    fs::write(&unfinished, "").unwrap();
    refused(
        &samples,
        &[],
        2,
        "the samples in samples are incomplete: `regatta prep`",
    );
    fs::remove_file(unfinished).unwrap();
    let full = [("FAKE_CUDA_FAULTS", "memory=100")];
    let other = fixture::npy("<f4", &[1, 1, 8, 8], &fixture::pixels(7));
    fs::write(place.fixture.path("other.npy"), other).unwrap();
    let other = ["--calibration-samples", "other.npy"];
    refused(&other, &full, 3, "CUDA_ERROR_OUT_OF_MEMORY");
    let fp16 = place.agent(
        &[&["engine", "build", "--onnx", "model.onnx"], &samples[..]].concat(),
        &[],
    );
    assert_eq!(fp16.code, 2, "{fp16:?}");
    // A stored cache that cannot be read is reported.
    for entry in fs::read_dir(place.fakes.engines()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "cache") {
            fs::remove_file(&path).unwrap();
            fs::create_dir(&path).unwrap();
        }
    }
    refused(
        &["--calibration-samples", "together.npy", "--batch", "4"],
        &[],
        3,
        "cannot be read",
    );
}

/// MLCommons' lists have 500 images, which fill no power of two.
#[test]
fn samples_that_do_not_fill_the_batches_of_an_engine_are_all_used() {
    let place = Place::new();
    let data: Vec<u8> = (0..20).flat_map(fixture::pixels).collect();
    fs::write(
        place.fixture.path("twenty.npy"),
        fixture::npy("<f4", &[20, 1, 8, 8], &data),
    )
    .unwrap();
    // Returns what is printed, and the scales: each sample has one bright pixel.
    let calibrated = |batch: &str, environment: &[(&str, &str)]| {
        let _ = fs::remove_dir_all(place.fakes.engines());
        let words =
            "engine build --onnx model.onnx --precision int8 --calibration-samples twenty.npy --batch";
        let words: Vec<&str> = words.split(' ').chain([batch]).collect();
        let built = place.agent(&words, environment);
        assert_eq!(built.code, 0, "{built:?}");
        let mut files = fs::read_dir(place.fakes.engines())
            .unwrap()
            .map(|entry| entry.unwrap());
        let is_scales = |file: &fs::DirEntry| file.file_name().to_str().unwrap().starts_with("calibration-");
        let scales = files.find(is_scales).unwrap().path();
        (built.stderr, fs::read_to_string(scales).unwrap())
    };
    for (batch, batches, printed) in [
        ("4", 5, "calibrating over 20 samples\n"),
        ("8", 4, "calibrating over 20 samples in batches of 5\n"),
        ("32", 1, "calibrating over 20 samples in batches of 20\n"),
        ("3", 10, "calibrating over 20 samples in batches of 2\n"),
    ] {
        let (stderr, scales) = calibrated(batch, &[]);
        assert_eq!(
            scales,
            format!("TRT-8502-EntropyCalibration2\nbatches: {batches}\nsum: 20\n")
        );
        assert!(stderr.contains(printed), "{batch}: {stderr}");
    }
    // A network of a fixed batch: every sample is read twice, and none more often. No build for another batch is tried before.
    place.write_network(&[8, 1, 8, 8]);
    let (stderr, scales) = calibrated("8", &[("FAKE_TRT_BATCH", "8")]);
    assert_eq!(scales, "TRT-8502-EntropyCalibration2\nbatches: 5\nsum: 40\n");
    assert_eq!(stderr.matches("calibrating ").count(), 1, "{stderr}");
    assert!(
        stderr.contains("calibrating 2 times over the 20 samples\n"),
        "{stderr}"
    );
}

/// Samples have the type of the network's input. The engine's input may have another type, as in NVIDIA's settings for ResNet50.
#[test]
fn an_engine_whose_input_has_another_type_is_calibrated_in_the_same_command() {
    let place = Place::new();
    let words = "engine build --onnx model.onnx --precision int8 --calibration-samples samples --batch 4 --input-dtype int8 \
                 --input-format chw4";
    let words: Vec<&str> = words.split_ascii_whitespace().collect();
    let built = place.agent(&words, &[]);
    assert_eq!(built.code, 0, "{built:?}");
    assert!(
        built
            .stderr
            .contains("calibrating over 40 samples, with the network's own input"),
        "{built:?}"
    );
    let again = place.agent(&words, &[]);
    assert!(again.stderr.contains("found in "), "{again:?}");
    let other = place.agent(&[&words[..], &["--profiles", "2"]].concat(), &[]);
    assert!(other.stderr.contains("calibration scales found in "), "{other:?}");
}

/// A misspelt name would leave the samples with the scale that calibration found, and only the accuracy would show it.
#[test]
fn a_scale_of_samples_is_for_an_input_of_the_network() {
    let place = Place::new();
    let build = |flags: &[&str]| {
        let words = "engine build --onnx model.onnx --precision int8 --input-dtype int8 --input-format chw4";
        let words: Vec<&str> = words.split_ascii_whitespace().collect();
        place.agent(&[&words[..], flags].concat(), &[])
    };
    // Whether it has Q/DQ layers is unknown.
    fs::write(place.fixture.path("model.onnx"), "the fake reads no model").unwrap();
    let unreadable = build(&["--input-scale", "image=0.5"]);
    assert_eq!(unreadable.code, 0, "{unreadable:?}");
    let words = "warning: without calibration, the scales are those of the network's Q/DQ layers; the first one after image must have 0.5";
    assert!(unreadable.stderr.contains(words), "{unreadable:?}");
    place.write_network(&[0, 1, 8, 8]);
    let samples = ["--calibration-samples", "samples"];
    let misspelt = build(&[&samples[..], &["--input-scale", "images=0.5"]].concat());
    assert_eq!(misspelt.code, 2, "{misspelt:?}");
    let words = "model.onnx has no input images, which --input-scale names; its inputs are image\n";
    assert!(misspelt.stderr.contains(words), "{misspelt:?}");
    for scale in ["0.5", "image=0.5"] {
        let built = build(&[&samples[..], &["--input-scale", scale, "--force-calibration"]].concat());
        assert_eq!(built.code, 0, "{built:?}");
        assert!(!built.stderr.contains("warning"), "{built:?}");
    }
}

/// Without scales, TensorRT would run layers in other types, or fail after a long build.
#[test]
fn int8_without_scales_is_refused_before_the_build() {
    let place = Place::new();
    let digits = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../datasets/digits/digits.onnx");
    fs::copy(digits, place.fixture.path("model.onnx")).unwrap();
    let words = ["engine", "build", "--onnx", "model.onnx", "--precision", "int8"];
    let refused = place.agent(&words, &[]);
    assert_eq!(refused.code, 2, "{refused:?}");
    for part in [
        "int8 needs scales, and model.onnx has no Q/DQ layers",
        "--calibration-samples DIR",
        "regatta prep BENCHMARK --calibration LIST",
    ] {
        assert!(refused.stderr.contains(part), "`{part}` in {refused:?}");
    }
    let samples = place.agent(&[&words[..], &["--calibration-samples", "samples"]].concat(), &[]);
    assert_eq!(samples.code, 0, "{samples:?}");
    let half = place.agent(
        &["engine", "build", "--onnx", "model.onnx", "--precision", "fp16"],
        &[],
    );
    assert_eq!(half.code, 0, "{half:?}");
}

/// `regatta prep` names the only input of most networks, and still writes a file for each sample.
#[test]
fn a_network_of_one_named_input_is_calibrated_over_its_files() {
    let place = Place::new();
    let set = serde_json::json!({
        "schema": 1, "benchmark": "pixels", "samples": fixture::TOTAL,
        "tensors": [{ "name": "image", "dtype": "float32", "format": "linear", "shape": [1, 8, 8], "sha256": "" }],
    });
    fs::write(place.fixture.path("samples/samples.json"), set.to_string()).unwrap();
    let words = "engine build --onnx model.onnx --precision int8 --calibration-samples samples --batch 4";
    let built = place.agent(&words.split(' ').collect::<Vec<_>>(), &[]);
    assert_eq!(built.code, 0, "{built:?}");
    assert!(built.stderr.contains("calibrating over 40 samples"), "{built:?}");
}

/// With samples of several inputs, as `regatta prep` writes them, each input gets its own, whatever its type.
#[test]
fn a_network_of_several_inputs_is_calibrated_over_its_arrays() {
    let place = Place::new();
    place.fixture.take_three_inputs();
    let document = |tensors: &[&str]| {
        let tensor = |name: &&str| serde_json::json!({ "name": name, "dtype": "int32", "format": "linear", "shape": [64], "sha256": "" });
        let set = serde_json::json!({
            "schema": 1, "benchmark": "pixels", "samples": fixture::TOTAL,
            "tensors": tensors.iter().map(tensor).collect::<Vec<_>>(),
        });
        fs::write(place.fixture.path("samples/samples.json"), set.to_string()).unwrap();
    };
    let build = |flags: &str| {
        let words = "engine build --onnx model.onnx --precision int8 --calibration-samples samples";
        let words: Vec<&str> = words.split(' ').chain(flags.split_ascii_whitespace()).collect();
        place.agent(&words, &[("FAKE_TRT_INPUTS", "3")])
    };
    // In another order than the network's.
    document(&["segment_ids", "input_ids", "input_mask"]);
    let built = build("--batch 4");
    assert_eq!(built.code, 0, "{built:?}");
    assert!(built.stderr.contains("calibrating over 40 samples"), "{built:?}");
    // MLCommons' list for BERT numbers its samples.
    fs::write(place.fixture.path("list.txt"), "3\n7\n").unwrap();
    let listed = build("--batch 2 --calibration-list list.txt");
    assert_eq!(listed.code, 0, "{listed:?}");
    let mut caches: Vec<String> = fs::read_dir(place.fakes.engines())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with("calibration-")
        })
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    caches.sort();
    // The pixels of every sample sum up to 3.
    assert_eq!(
        caches,
        [
            "TRT-8502-EntropyCalibration2\nbatches: 1\nsum: 6\n",
            "TRT-8502-EntropyCalibration2\nbatches: 10\nsum: 120\n",
        ]
    );
    let refused = |flags: &str, code: i32, words: &str| {
        let ended = build(flags);
        assert_eq!(ended.code, code, "{ended:?}");
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    };
    fs::write(place.fixture.path("list.txt"), "3\n40\n").unwrap();
    refused(
        "--calibration-list list.txt",
        2,
        "names `40`, but its samples have the numbers 0 to 39",
    );
    document(&["input_ids", "input_mask"]);
    refused("", 2, "a calibration sample is for other inputs");
    document(&["input_ids", "input_mask", "token_type_ids"]);
    refused("", 2, "token_type_ids.npy cannot be read");
    fs::copy(
        place.fixture.path("samples/segment_ids.npy"),
        place.fixture.path("samples/token_type_ids.npy"),
    )
    .unwrap();
    refused(
        "",
        3,
        "the calibration samples have no values for the network's input segment_ids",
    );
    let short = fixture::npy("<i4", &[2, 64], &[0; 512]);
    fs::write(place.fixture.path("samples/token_type_ids.npy"), short).unwrap();
    refused(
        "",
        2,
        "there are 40 calibration samples in samples/input_ids.npy, but 2 in samples/token_type_ids.npy",
    );
    fs::write(place.fixture.path("samples/samples.json"), "{}").unwrap();
    refused("", 2, "the form of the samples in samples is unknown");
}

/// NVIDIA calibrates 3D-UNet with the extremes of all values.
#[test]
fn method_of_calibration_is_part_of_the_engine_and_of_its_scales() {
    let place = Place::new();
    let build = |flags: &str, environment: &[(&str, &str)]| {
        let usual = "engine build --onnx model.onnx --precision int8 --batch 4 ";
        let words = format!("{usual}{flags}");
        place.agent(&words.split_ascii_whitespace().collect::<Vec<_>>(), environment)
    };
    let samples = "--calibration-samples samples";
    let entropy = build(samples, &[]);
    assert_eq!(entropy.code, 0, "{entropy:?}");

    let settings = [
        "calibration=samples",
        "calibration_method=min-max",
        "gpu_batch_size=4",
    ];
    let missing = place.bench("Offline", "AccuracyOnly", &settings, &[]);
    assert!(
        missing
            .stderr
            .contains("1 engine of this model is of another calibration_method than the settings request"),
        "{missing:?}"
    );
    let words = missing_engine(&missing.stdout);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert!(
        words.join(" ").contains(" --calibration-method min-max "),
        "{words:?}"
    );
    let built = place.agent(&words, &[]);
    assert!(
        built.code == 0 && built.stderr.contains("calibrating over 40 samples"),
        "{built:?}"
    );
    let ended = place.bench("Offline", "AccuracyOnly", &settings, &[]);
    assert_eq!((ended.code, place.answers()), (0, expected()), "{ended:?}");

    let mut caches: Vec<(String, String)> = fs::read_dir(place.fakes.engines())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .starts_with("calibration-")
        })
        .map(|path| {
            (
                fs::read_to_string(&path).unwrap(),
                path.to_str().unwrap().to_owned(),
            )
        })
        .collect();
    caches.sort();
    let texts: Vec<&str> = caches.iter().map(|(text, _)| text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "TRT-8502-EntropyCalibration2\nbatches: 10\nsum: 40\n",
            "TRT-8502-MinMaxCalibration\nbatches: 10\nsum: 40\n"
        ]
    );
    // Another engine uses the scales of the same method.
    let other = build(
        &format!("{samples} --calibration-method min-max --profiles 2"),
        &[],
    );
    let kept = format!("calibration scales found in {}", caches[1].1);
    assert!(other.code == 0 && other.stderr.contains(&kept), "{other:?}");

    // Scales in a file are used with the method that made them. TensorRT refuses others.
    let min_max = &caches[1].1;
    let from_file = build(&format!("--calibration-cache {min_max}"), &[]);
    assert_eq!(from_file.code, 0, "{from_file:?}");
    // So does a run, whatever method the settings of its board request.
    fs::copy(min_max, place.fixture.path("scales.cache")).unwrap();
    let with_scales = [
        "calibration=scales.cache",
        "calibration_method=entropy",
        "gpu_batch_size=4",
    ];
    let ended = place.bench("Offline", "AccuracyOnly", &with_scales, &[]);
    assert_eq!((ended.code, place.answers()), (0, expected()), "{ended:?}");
    let contradiction = build(
        &format!("--calibration-cache {min_max} --calibration-method entropy"),
        &[],
    );
    assert!(
        contradiction.code == 2
            && contradiction
                .stderr
                .contains("were found with min-max, but entropy was requested; hint: "),
        "{contradiction:?}"
    );
    for (flags, reason) in [
        (
            "--calibration-method min-max",
            "--calibration-method needs --calibration-samples or --calibration-cache",
        ),
        (
            "--calibration-samples samples --calibration-method max",
            "must be entropy or min-max",
        ),
    ] {
        let ended = build(flags, &[]);
        assert!(
            ended.code == 2 && ended.stderr.contains(reason),
            "{flags}: {ended:?}"
        );
    }

    // TensorRT 11 has neither of them.
    place.fakes.become_version("libnvinfer.so.11", &["11.0.0"]);
    let later = build(
        &format!("{samples} --calibration-method min-max"),
        &[("FAKE_TRT_VERSION", "110000")],
    );
    assert!(
        later.code == 2
            && later
                .stderr
                .contains("TensorRT 11.0.0 has no calibrator, neither entropy nor min-max; hint: "),
        "{later:?}"
    );
}
