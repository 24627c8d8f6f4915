//! Tests of engines' inputs through the binary: other types and layouts than the benchmark's own, and several inputs. They use
//! the fakes, and tract where it is built in.

use std::fs;

use regatta_test_support::fixture;

use crate::support::place::{Place, expected};

/// NVIDIA's int8 samples as `int8_linear` and `int8_chw4`, one file for GPU and DLA, found by the settings of its harness.
#[test]
fn type_and_layout_of_the_input_choose_the_engine_and_are_held_against_the_samples() {
    let place = Place::new();
    let prepare = |shape: &[usize], one: &[u8]| {
        for index in 0..fixture::TOTAL {
            let data = fixture::pixels_as(index, one);
            place
                .fixture
                .write_sample(index, &fixture::npy("|i1", shape, &data));
        }
        let described = fixture::DESCRIPTION
            .replace("[1, 8, 8]", &format!("{shape:?}"))
            .replace("float32", "int8");
        fs::write(place.fixture.path("benchmark.toml"), described).unwrap();
    };
    let right = |scenario: &str, settings: &[&str]| {
        let ended = place.bench(scenario, "AccuracyOnly", settings, &[]);
        assert_eq!(ended.code, 0, "{settings:?}: {ended:?}");
        assert_eq!(place.answers(), expected(), "{settings:?}");
    };
    let (linear, chw4) = (
        ["input_dtype=int8", "input_format=linear"],
        ["input_dtype=int8", "input_format=chw4"],
    );
    let single = place.build(&["--batch", "4"], &[]);
    let message = place.fault(&linear, &[]);
    assert!(
        message.contains("there are no samples of pixels as int8_linear in ./int8_linear; hint: `regatta prep pixels --dtype int8 --layout linear --scale SCALE --output SCRATCH` prepares them"),
        "{message}"
    );

    prepare(&[1, 8, 8], &[1]);
    let message = place.fault(&linear, &[]);
    assert!(
        message.contains(
            "1 engine of this model is for other inputs than int8 linear, which the settings request; hint: "
        ) && message.contains("--batch 1 --input-dtype int8 --cache"),
        "{message}"
    );
    let named = format!("gpu_engine={}", single.display());
    let message = place.fault(&[&linear[..], &[&named]].concat(), &[]);
    assert!(
        message.contains("does not accept the input that the settings request"),
        "{message}"
    );
    place.build(&["--batch", "4", "--input-dtype", "int8"], &[]);
    right("SingleStream", &linear);
    right(
        "Offline",
        &[&linear[..], &["use_direct_host_access=false"]].concat(),
    );

    let message = place.fault(&[&chw4[..], &["dla_core=0"]].concat(), &[]);
    assert!(
        message.contains("--precision fp16 --input-dtype int8 --input-format dla_hwc4 --dla-core 0"),
        "{message}"
    );
    let int8 = ["--batch", "4", "--input-dtype", "int8", "--input-format"];
    place.build(&[&int8[..], &["chw4"]].concat(), &[]);
    let message = place.fault(&chw4, &[]);
    assert!(
        message.contains("takes int8 [-1, 1, 8, 8] chw4 image, which is [1, 8, 8, 4] in memory, but a sample is int8 linear [1, 8, 8]"),
        "{message}"
    );
    prepare(&[8, 8, 4], &[1, 0, 0, 0]);
    right("SingleStream", &chw4);
    right("Offline", &[&chw4[..], &["use_direct_host_access=true"]].concat());
    // DLA's lines of 32 bytes would have gaps.
    place.build(
        &[&int8[..], &["dla_hwc4", "--dla-core", "0", "--precision", "fp16"]].concat(),
        &[],
    );
    let message = place.fault(&[&chw4[..], &["dla_core=0"]].concat(), &[]);
    assert!(
        message.contains("int8 [4, 1, 8, 8] dla_hwc4 image, which is not supported"),
        "{message}"
    );
    let build = [
        "engine",
        "build",
        "--onnx",
        "model.onnx",
        "--input-format",
        "chw4",
    ];
    let refused = place.agent(&build, &[]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(
        refused.stderr.contains("Could not find any implementation"),
        "{refused:?}"
    );
    let unknown = place.agent(&["engine", "build", "--onnx", "m", "--input-format", "chw5"], &[]);
    assert_eq!(unknown.code, 2, "{unknown:?}");
    assert!(
        unknown
            .stderr
            .contains("unknown layout `chw5`; known are linear, hwc8, chw4"),
        "{unknown:?}"
    );
}

/// The settings find the forms that `regatta prep` makes beside each other.
#[test]
fn prepared_forms_have_separate_directories_and_describe_themselves() {
    let place = Place::new();
    let chw4 = ["input_dtype=int8", "input_format=chw4"];
    let directory = place.fixture.path("int8_chw4");
    fs::create_dir(&directory).unwrap();
    for index in 0..fixture::TOTAL {
        let data = fixture::pixels_as(index, &[1, 0, 0, 0]);
        let file = fixture::npy("|i1", &[8, 8, 4], &data);
        fs::write(directory.join(format!("sample{index}.npy")), file).unwrap();
    }
    let document = |dtype: &str| {
        let set = serde_json::json!({
            "schema": 1, "benchmark": "pixels", "samples": fixture::TOTAL,
            "tensors": [{ "dtype": dtype, "format": "chw4", "shape": [1, 8, 8], "sha256": "" }],
        });
        fs::write(directory.join("samples.json"), set.to_string()).unwrap();
    };
    document("int8");
    let int8 = ["--batch", "4", "--input-dtype", "int8", "--input-format", "chw4"];
    place.build(&["--batch", "4"], &[]);
    place.build(&int8, &[]);
    for (scenario, settings) in [
        ("SingleStream", &chw4[..]),
        ("Offline", &chw4),
        ("Offline", &["input_dtype=fp32"]),
    ] {
        let ended = place.bench(scenario, "AccuracyOnly", settings, &[]);
        assert_eq!(
            (ended.code, place.answers()),
            (0, expected()),
            "{settings:?}: {ended:?}"
        );
    }
    // An interrupted preparation: some samples may have another scale.
    let unfinished = directory.join("samples.unfinished");
    fs::write(&unfinished, "").unwrap();
    let message = place.fault(&chw4, &[]);
    assert!(
        message.contains("the samples in ./int8_chw4 are incomplete: `regatta prep` was interrupted there or is still running; run it again"),
        "{message}"
    );
    fs::remove_file(unfinished).unwrap();
    // A document that cannot be read is not a missing one.
    fs::remove_file(directory.join("samples.json")).unwrap();
    fs::create_dir(directory.join("samples.json")).unwrap();
    let message = place.fault(&chw4, &[]);
    assert!(
        message.contains("int8_chw4/samples.json cannot be read: it is a directory, not a regular file"),
        "{message}"
    );
    fs::remove_dir(directory.join("samples.json")).unwrap();
    document("float16");
    let message = place.fault(&chw4, &[]);
    assert!(
        message.contains("the samples in ./int8_chw4 cannot be used for pixels: they are fp16 chw4 [1, 8, 8], but int8 chw4 [1, 8, 8] is needed"),
        "{message}"
    );
    fs::write(directory.join("samples.json"), "{ \"schema\": 1,").unwrap();
    let message = place.fault(&chw4, &[]);
    assert!(
        message.contains("int8_chw4/samples.json does not describe the samples in its directory; hint: `regatta prep pixels --dtype int8 --layout chw4"),
        "{message}"
    );
}

/// A network with BERT's inputs, each of which changes the answer.
#[test]
fn samples_of_three_inputs_reach_the_network_by_name() {
    let mut place = Place::new();
    place.fixture.take_three_inputs();
    place.build(&["--batch", "8"], &[("FAKE_TRT_INPUTS", "3")]);
    for (scenario, settings) in [
        ("SingleStream", &["use_direct_host_access=true"][..]),
        ("MultiStream", &["use_graphs=true"]),
        ("Offline", &["use_direct_host_access=false"]),
        ("Server", &["batch_size=4"]),
    ] {
        let ended = place.bench(scenario, "AccuracyOnly", settings, &[]);
        assert_eq!(
            (ended.code, place.answers()),
            (0, expected()),
            "{scenario}: {ended:?}"
        );
    }
    let engines: &[&str] = if cfg!(feature = "tract") {
        &["tensorrt", "tract"]
    } else {
        &["tensorrt"]
    };
    let stacked = fs::read_to_string(place.fixture.path("benchmark.toml")).unwrap();
    let stacked = stacked.replace("argmax-int32", "stacked");
    fs::write(place.fixture.path("benchmark.toml"), &stacked).unwrap();
    for sut in engines {
        place.sut = sut;
        let ended = place.bench("Offline", "AccuracyOnly", &[], &[]);
        assert_eq!(ended.code, 0, "{sut}: {ended:?}");
        // Ten scores, each before its negative.
        for (index, answer) in place.raw_answers().iter().enumerate() {
            let scores = (0..fixture::CLASSES).flat_map(|class| {
                let score = if fixture::class(index) == i32::try_from(class).unwrap() {
                    3.0_f32
                } else {
                    0.0
                };
                [score, -score]
            });
            let expected: String = scores
                .flat_map(f32::to_le_bytes)
                .map(|byte| format!("{byte:02X}"))
                .collect();
            // The library decides between 0 and -0.
            let unsigned = |hex: &str| hex.replace("00000080", "00000000");
            assert_eq!(unsigned(answer), unsigned(&expected), "{sut}, sample {index}");
        }
    }
    place.sut = "tensorrt";
    let other = stacked.replace("segment_ids", "token_type_ids");
    fs::write(place.fixture.path("benchmark.toml"), other).unwrap();
    fs::copy(
        place.fixture.path("samples/segment_ids.npy"),
        place.fixture.path("samples/token_type_ids.npy"),
    )
    .unwrap();
    let message = place.fault(&[], &[]);
    assert!(
        message.contains("its engine takes int32 [-1, 64] input_ids, int32 [-1, 64] input_mask, int32 [-1, 64] segment_ids, but a sample is int32 linear [64] input_ids, int32 linear [64] input_mask, int32 linear [64] token_type_ids: both need the same inputs with the same names"),
        "{message}"
    );
}

/// Inputs as BERT's reference declares them: 64-bit integers with a dynamic length. The samples have the length, and 32 bits.
#[test]
fn free_model_dimensions_are_taken_from_the_samples() {
    #[cfg(feature = "tract")]
    {
        let mut place = Place::new();
        place.fixture.take_three_inputs();
        place.fixture.leave_dimensions_free();
        place.sut = "tract";
        for scenario in ["SingleStream", "Offline"] {
            let ended = place.bench(scenario, "AccuracyOnly", &[], &[]);
            assert_eq!((ended.code, place.answers()), (0, expected()), "{ended:?}");
        }
    }
    let place = Place::new();
    place.fixture.take_three_inputs();
    let free = [
        ("FAKE_TRT_INPUTS", "3"),
        ("FAKE_TRT_INPUT", "int64"),
        ("FAKE_TRT_FREE", "1"),
    ];
    let message = place.fault(&[], &free);
    let shapes = "--input-shape input_ids=64 --input-shape input_mask=64 --input-shape segment_ids=64";
    assert!(message.contains(shapes), "{message}");
    let build = |flags: &str| {
        let words = format!("engine build --onnx model.onnx --batch 4 {flags}");
        let words: Vec<&str> = words.split_ascii_whitespace().collect();
        place.agent(&words, &free)
    };
    let wrong = shapes.replace("segment_ids=64", "segment_ids=8,8");
    for (flags, words) in [
        (
            "",
            "TensorRT rejects the model: an input is [-1, -1]; hint: set its dimensions with --input-shape",
        ),
        ("--input-shape ids=64", "the network has no input of that name"),
        (
            wrong.as_str(),
            "the input does not accept that after its batch dimension",
        ),
        ("--input-shape input_ids=0", "a shape is written NAME=384"),
        ("--benchmark-file nowhere.toml", "cannot read nowhere.toml"),
    ] {
        let refused = build(flags);
        assert!(refused.stderr.contains(words), "{flags}: {refused:?}");
        assert_ne!(refused.code, 0, "{flags}");
    }
    let built = build(shapes);
    assert_eq!(built.code, 0, "{built:?}");
    let again = build("--benchmark-file benchmark.toml");
    assert!(
        again.stderr.contains("found in "),
        "the file says the same: {again:?}"
    );
    for (scenario, settings) in [
        ("SingleStream", &["use_graphs=true"][..]),
        ("Offline", &["use_direct_host_access=true"]),
        ("Offline", &["use_direct_host_access=false"]),
    ] {
        let ended = place.bench(scenario, "AccuracyOnly", settings, &free);
        assert_eq!((ended.code, place.answers()), (0, expected()), "{ended:?}");
    }
}
