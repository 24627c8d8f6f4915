//! Stable Diffusion XL from its published form to images: one command makes networks and samples, and runs on the CPU answer with the images of
//! diffusers. The pipeline is small, with random weights; `tests/oracles/diffusion` has its images.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{collections::BTreeMap, fs, path::Path};

use regatta_test_support::oracle;
use regatta_tests::{
    Broker, Lab,
    mlperf_benchmark::{replaced, responses},
};
use serde_json::Value;

const BENCHMARK: &str = "stable-diffusion-xl";
const RECORDED: &str = include_str!("../oracles/diffusion/images.json");
/// The steps of the recorded images of all captions.
const STEPS: &str = "6";
const CAPTIONS: usize = 4;

/// Resizes the benchmark to the small pipeline, whose files have other hashes than the published ones.
fn resized(text: String) -> String {
    let is_hash = |line: &&str| line.starts_with("sha256 = ") || line.starts_with("checksums = ");
    let text: String = text.split_inclusive('\n').filter(|line| !is_hash(line)).collect();
    replaced(
        text,
        &[
            ("_samples = 5000", &format!("_samples = {CAPTIONS}")),
            ("shape = [77]", "shape = [12]"),
            ("latent_shape = [4, 128, 128]", "latent_shape = [4, 8, 8]"),
            ("image_size = [1024, 1024]", "image_size = [32, 32]"),
            ("text_width = 2048", "text_width = 40"),
            ("pooled_width = 1280", "pooled_width = 20"),
            ("time_features = 320", "time_features = 16"),
            ("vocabulary = 49408", "vocabulary = 516"),
            ("paddings = [49407, 0]", "paddings = [515, 0]"),
            (
                "    49406, 5967, 3027, 267, 1042, 3027, 267, 5719, 3027, 267, 1042, 934, 267, 21977, 267, 19847, 267, 16630, 49407,\n",
                "    514, 75, 78, 342, 81, 68, 338, 515,\n",
            ),
            ("\nsteps = 20", &format!("\nsteps = {STEPS}")),
        ],
    )
}

/// Writes the published files of the small pipeline.
fn write_published(python: &Path, scratch: &Path) {
    let networks = scratch.join("models").join(BENCHMARK);
    fs::create_dir_all(&networks).unwrap();
    for (what, place) in [
        // As MLCommons publishes it, in a directory of its own.
        ("pipeline", networks.join("published/checkpoint_pipe")),
        ("samples", networks.clone()),
        ("dataset", scratch.join("data/coco2014")),
    ] {
        let words = [what.as_ref(), place.as_os_str()];
        oracle::run(python, "diffusion", "small.py", &words);
    }
}

/// Checks the answers of a run: the images of diffusers, of which few levels differ by one.
fn check_images(found: &BTreeMap<u64, String>) {
    let recorded: Value = serde_json::from_str(RECORDED).unwrap();
    let theirs = recorded["images"][STEPS].as_array().unwrap();
    assert_eq!((found.len(), theirs.len()), (CAPTIONS, CAPTIONS));
    for (index, ours) in found {
        let theirs = theirs[usize::try_from(*index).unwrap()].as_str().unwrap();
        assert_eq!(ours.len(), theirs.len());
        let levels = |image: &str| {
            let pairs = image.as_bytes().as_chunks::<2>().0.iter();
            let level = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
            pairs.map(level).collect::<Vec<u8>>()
        };
        let (ours, theirs) = (levels(ours), levels(theirs));
        let differences = ours.iter().zip(&theirs).map(|(one, other)| one.abs_diff(*other));
        let differing = differences.clone().filter(|difference| *difference > 0).count();
        assert!(
            differences.max() <= Some(1) && differing <= ours.len() / 200,
            "{index}: {differing}"
        );
    }
}

#[test]
fn captions_become_the_images_of_diffusers() {
    let Some(python) = oracle::onnx() else { return };
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    let scratch = lab.scratch();
    write_published(&python, &scratch);
    lab.write_benchmark(BENCHMARK, resized);
    let prepared = lab.json(&[
        "benchmark",
        "prepare",
        BENCHMARK,
        "--python",
        python.to_str().unwrap(),
    ]);
    println!("{prepared:#}");
    let states = lab.benchmark_files(BENCHMARK);
    assert!(states.iter().all(|state| state == "present"), "{states:?}");
    let samples = scratch.join("preprocessed_data/coco2014/tokens");
    for name in ["input_ids.npy", "input_ids_2.npy"] {
        // The oracle has written what prep should make.
        let expected = fs::read(scratch.join("models").join(BENCHMARK).join(name)).unwrap();
        assert_eq!(fs::read(samples.join(name)).unwrap(), expected, "{name}");
    }
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    for (scenario, setting) in [("Offline", "batch_size=3"), ("SingleStream", "warmup_duration=0")] {
        let further = ["--loadgen", "native", "--set", setting];
        let run = lab.measure(BENCHMARK, [scenario, "AccuracyOnly"], &further);
        check_images(&responses(&lab.accuracy_log(&run)));
    }
}
