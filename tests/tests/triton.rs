//! Tests ResNet50 on a real Triton that the device starts: LoadGen's answers are those of the same network in the agent's process, and the run's
//! documents name the server. The network is small, and its samples are made up.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::fs;

use regatta_test_support::{fixture, official_loadgen, oracle, small_resnet50};
use regatta_tests::{
    Broker, Lab,
    mlperf_benchmark::{replaced, responses},
};
use serde_json::Value;

const IMAGES: usize = 48;

/// Writes samples whose pixels differ between images, and their labels.
fn write_samples(lab: &Lab) {
    let data = lab.scratch().join("preprocessed_data/imagenet");
    fs::create_dir_all(data.join("ResNet50/fp32")).unwrap();
    let mut labels = String::new();
    for image in 0..IMAGES {
        let value = |place: usize| {
            // Each area of 56 x 56 pixels has its own colour.
            let (plane, row, column) = (place / 50_176, place / 224 % 224 / 56, place % 224 / 56);
            ((image * 37 + plane * 53 + row * 29 + column * 71) * 31 % 275) as f32 - 123.0
        };
        let pixels: Vec<u8> = (0..3 * 224 * 224).map(value).flat_map(f32::to_le_bytes).collect();
        let file = fixture::npy("<f4", &[3, 224, 224], &pixels);
        fs::write(data.join(format!("ResNet50/fp32/image{image}.npy")), file).unwrap();
        labels += &format!("image{image} {image}\n");
    }
    fs::write(data.join("val_map.txt"), labels).unwrap();
}

/// Writes a driver with the oracle's server: the shipped one with the backend that the oracle has.
fn write_driver(lab: &Lab, python: &std::path::Path) -> String {
    let shipped = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/servers/triton.toml");
    let [serve, model] = ["serve.py", "model.py"].map(|name| oracle::directory("triton").join(name));
    let program = format!("\"{}\", \"{}\"", python.display(), serve.display());
    let files = format!(
        "\"model.onnx\" = \"{{model}}\", \"model.py\" = \"{}\"",
        model.display()
    );
    let text = replaced(
        fs::read_to_string(shipped).unwrap(),
        &[
            ("\"tritonserver\"", &program),
            ("backend = \"onnxruntime\"", "backend = \"python\""),
            ("\"model.onnx\" = \"{model}\"", &files),
        ],
    );
    let driver = lab.workspace().join("triton.toml");
    fs::write(&driver, text).unwrap();
    driver.display().to_string()
}

#[test]
fn resnet50_on_triton_answers_as_in_process() {
    let (Some(python), Some(plugin)) = (oracle::triton(), official_loadgen::plugin_file("6.0.17")) else {
        return;
    };
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    lab.write_benchmark("resnet50", |text| {
        replaced(
            text,
            &[
                ("total_samples = 50000", &format!("total_samples = {IMAGES}")),
                ("performance_samples = 1024", "performance_samples = 16"),
            ],
        )
    });
    let model = lab.scratch().join("models/ResNet50/resnet50_v1.onnx");
    fs::create_dir_all(model.parent().unwrap()).unwrap();
    fs::write(model, small_resnet50::model()).unwrap();
    write_samples(&lab);
    let server = format!("server={}", write_driver(&lab, &python));
    lab.device_prefix = vec![
        "env".to_owned(),
        format!("REGATTA_PLUGINS={}", plugin.parent().unwrap().display()),
    ];
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();

    let triton = ["--set", &server];
    let several = [
        &triton[..],
        &["--set", "batch_size=4", "--set", "inference_streams=3"],
        &[
            "--set",
            "instance_group_count=2",
            "--set",
            "preferred_batch_size=8",
            "--set",
            "max_queue_delay_usec=500",
        ],
    ]
    .concat();
    let in_process = lab.measure("resnet50", ["SingleStream", "AccuracyOnly"], &[]);
    let expected = responses(&lab.accuracy_log(&in_process));
    let mut classes: Vec<_> = expected.values().collect();
    classes.sort_unstable();
    classes.dedup();
    assert!(classes.len() > 5, "the network tells images apart: {classes:?}");
    for (scenario, settings) in [("SingleStream", &triton[..]), ("Offline", &several)] {
        let run = lab.measure_with("server", "resnet50", [scenario, "AccuracyOnly"], settings);
        assert_eq!(responses(&lab.accuracy_log(&run)), expected, "{scenario}");
        assert_eq!(run["warnings"], Value::Array(Vec::new()), "{run:#}");
        let engine = run["loaded_engine"].as_str().unwrap();
        assert!(
            engine.starts_with("server Triton 2.51.0 on tritonserver with "),
            "{engine}"
        );
        let files = lab.run_directory(&run).join("files");
        let config = fs::read_to_string(files.join("config.pbtxt")).unwrap();
        assert_eq!(
            config.contains("preferred_batch_size: [ 8 ]"),
            scenario == "Offline",
            "{config}"
        );
        assert!(
            fs::read_to_string(files.join("server.log"))
                .unwrap()
                .contains("Started HTTPService")
        );
    }
    for (loadgen, scenario, settings) in [
        ("official", "SingleStream", &triton[..]),
        ("native", "Offline", &several),
    ] {
        let settings = [settings, &["--loadgen", loadgen]].concat();
        let run = lab.measure_with("server", "resnet50", [scenario, "PerformanceOnly"], &settings);
        assert!(run["figure"]["value"].as_f64().unwrap() > 0.0, "{run:#}");
        assert_eq!(run["warnings"], Value::Array(Vec::new()), "{run:#}");
    }
}
