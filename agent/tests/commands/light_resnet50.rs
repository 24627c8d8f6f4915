//! ResNet50's topology, which the package `onnx` ships, on the engines for ONNX beside ONNX Runtime's Python: scores and classes of photographs.
//! Does not judge classes: the weights are not trained.

use std::{fs, path::Path};

use npyz::NpyFile;
use regatta_test_support::oracle;
use serde_json::Value;

use crate::support::{MLPERF_CONF, USER_CONF, agent, bench_arguments};

/// Five photographs, and their mirror images.
const SAMPLES: usize = 10;
const CLASSES: usize = 1000;
/// The largest difference of a score, which is a probability: roundings of 53 convolutions. Here it is 4.4e-6.
const BOUND: f32 = 2e-5;

/// Runs the network on all samples. Returns the response to each.
fn responses(
    scratch: &Path,
    engine: &[(&str, &str)],
    network: &str,
    response: &str,
    scenario: &str,
) -> Vec<Vec<u8>> {
    let mut text = include_str!("../../../configs/benchmarks/resnet50.toml").to_owned();
    for (own, changed) in [
        ("models/ResNet50/resnet50_v1.onnx", format!("{network}.onnx")),
        ("input_tensor:0", "gpu_0/data_0".to_owned()),
        ("argmax-int32", response.to_owned()),
        ("class_offset = -1\n", String::new()),
        ("preprocessed_data/imagenet/ResNet50/fp32", "samples".to_owned()),
        ("preprocessed_data/imagenet/val_map.txt", "map.txt".to_owned()),
        ("total_samples = 50000", format!("total_samples = {SAMPLES}")),
        (
            "performance_samples = 1024",
            format!("performance_samples = {SAMPLES}"),
        ),
    ] {
        assert!(text.contains(own), "{own}");
        text = text.replace(own, &changed);
    }
    fs::write(scratch.join("benchmark.toml"), text).unwrap();
    let ended = agent(
        scratch,
        &bench_arguments(
            &[
                engine,
                &[
                    ("--benchmark", "resnet50"),
                    ("--scenario", scenario),
                    ("--mode", "AccuracyOnly"),
                    ("--set", "warmup_duration=0"),
                ],
            ]
            .concat(),
        ),
    );
    assert_eq!(ended.code, 0, "{network}, {response}: {ended:?}");
    let log = fs::read(scratch.join("logs/mlperf_log_accuracy.json")).unwrap();
    let log: Vec<Value> = serde_json::from_slice(&log).unwrap();
    let mut responses = vec![Vec::new(); SAMPLES];
    for entry in log {
        let digits = entry["data"].as_str().unwrap().as_bytes().chunks(2);
        let bytes = digits.map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap());
        responses[usize::try_from(entry["qsl_idx"].as_u64().unwrap()).unwrap()] = bytes.collect();
    }
    responses
}

/// Compares the scores of a network with ONNX Runtime's, and returns those.
fn compare(scratch: &Path, engine: &[(&str, &str)], network: &str) -> Vec<Vec<f32>> {
    let theirs: Vec<f32> = NpyFile::new(&fs::read(scratch.join(format!("{network}.npy"))).unwrap()[..])
        .unwrap()
        .into_vec()
        .unwrap();
    assert_eq!(theirs.len(), SAMPLES * CLASSES);
    let ours = responses(scratch, engine, network, "raw", "SingleStream").concat();
    let ours = ours.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    let ours: Vec<f32> = ours.collect();
    assert_eq!(ours.len(), theirs.len());
    let differences = ours
        .iter()
        .zip(&theirs)
        .map(|(ours, theirs)| (ours - theirs).abs());
    let largest = differences.fold(0.0, f32::max);
    println!("{network}: the largest difference is {largest}");
    assert!(largest <= BOUND, "{network}: {largest}");
    theirs.chunks(CLASSES).map(<[f32]>::to_vec).collect()
}

#[test]
fn scores_of_resnet50s_topology_are_those_of_onnx_runtime() {
    compare_on(&[("--engine", "tract")]);
}

#[cfg(feature = "onnxruntime")]
#[test]
fn the_engine_onnxruntime_has_the_scores_of_its_library_in_python() {
    if let Some(library) = oracle::onnxruntime() {
        let library = library.with_file_name("lib");
        let set = format!("onnxruntime_library={}", library.display());
        compare_on(&[("--engine", "onnxruntime"), ("--set", &set)]);
    }
}

fn compare_on(engine: &[(&str, &str)]) {
    let Some(python) = oracle::efficientnet() else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let (photographs, scratch) = (place.path().join("photographs"), place.path().join("scratch"));
    let run = |script: &str, arguments: &[&std::ffi::OsStr]| {
        oracle::run(&python, "efficientnet", script, arguments)
    };
    run("photographs.py", &[photographs.as_os_str()]);
    let printed = run(
        "light_resnet50.py",
        &[photographs.as_os_str(), scratch.as_os_str()],
    );
    println!("{printed}");
    for (name, text) in [("mlperf.conf", MLPERF_CONF), ("user.conf", USER_CONF)] {
        fs::write(scratch.join(name), text).unwrap();
    }
    // The package's weights are of one number, so that each class has the same score.
    compare(&scratch, engine, "light");
    let scores = compare(&scratch, engine, "random");
    let classes = responses(&scratch, engine, "random", "argmax-int32", "Offline");
    for (index, (scores, class)) in scores.iter().zip(classes).enumerate() {
        let class = u32::from_le_bytes(class.try_into().unwrap());
        let largest = scores.iter().copied().fold(0.0, f32::max);
        let second = scores
            .iter()
            .copied()
            .filter(|&score| score < largest)
            .fold(0.0, f32::max);
        assert!(
            largest - second > 2.0 * BOUND,
            "sample {index}: {largest}, {second}"
        );
        assert!(
            scores[class as usize] == largest,
            "sample {index}: class {class}\n{printed}"
        );
    }
}
