//! Tests a benchmark of generated tokens with a real model server: llama.cpp, which the device starts by a driver, with a small random model.

use std::{fs, path::Path};

use regatta_test_support::{official_loadgen, oracle};
use regatta_tests::{
    Broker, Lab,
    mlperf_benchmark::responses,
    small_llama::{self, BENCHMARK, MODEL, SmallLlama},
};
use serde_json::Value;

const SIZE: SmallLlama = SmallLlama {
    samples: 24,
    max_tokens: 16,
};

/// Measures with the model server and returns the run.
fn measure(lab: &Lab, driver: &Path, scenario: &str, mode: &str, further: &[&str]) -> Value {
    let server = format!("server={}", driver.display());
    let model = format!("server_model={MODEL}");
    let command = [
        "run",
        "--benchmark",
        BENCHMARK,
        "--scenario",
        scenario,
        "--mode",
        mode,
        "--engine",
        "server",
        "--set",
        &server,
        "--set",
        &model,
        "--duration",
        "300ms",
    ];
    let run = lab.judged(&[&command[..], further].concat())["runs"][0].clone();
    assert_eq!(run["phase"], "done", "{run:#}");
    run
}

#[test]
fn a_model_server_answers_in_tokens() {
    let (Some(python), Some(plugin)) = (oracle::llama_cpp(), official_loadgen::plugin_file("6.0.17")) else {
        return;
    };
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    lab.write_benchmark(BENCHMARK, |text| SIZE.resize(text));
    let driver = small_llama::add_model(&lab, &python);
    let data = lab.workspace().join("articles");
    SIZE.write_articles(&data, |_| String::new());
    assert_eq!(
        lab.json(&["prep", BENCHMARK, "--data", data.to_str().unwrap()])["samples"],
        SIZE.samples
    );
    lab.device_prefix = vec![
        "env".to_owned(),
        format!("REGATTA_PLUGINS={}", plugin.parent().unwrap().display()),
    ];
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();

    // One at a time and in a stream, or several at once and whole: the answers are the same.
    let one = measure(&lab, &driver, "SingleStream", "AccuracyOnly", &[]);
    let whole = measure(
        &lab,
        &driver,
        "Offline",
        "AccuracyOnly",
        &["--set", "inference_streams=3"],
    );
    let answers = responses(&lab.accuracy_log(&one));
    assert_eq!(answers.len(), SIZE.samples);
    assert!(
        answers.values().all(|answer| answer.len() == 16 * 8),
        "{answers:?}"
    );
    assert_eq!(answers, responses(&lab.accuracy_log(&whole)));

    // The delivered and signed files say what answered.
    let files = lab.run_directory(&one).join("files");
    let evidence: Value = serde_json::from_slice(&fs::read(files.join("server.json")).unwrap()).unwrap();
    assert_eq!(
        evidence["model_sha256"].as_str().unwrap().len(),
        64,
        "{evidence:#}"
    );
    // The server generated what this run requested, and nothing else.
    let tokens = SIZE.samples as f64 * 16.0;
    assert!(
        evidence["own"]["tokens"].as_f64().unwrap() >= tokens,
        "{evidence:#}"
    );
    assert_eq!(one["warnings"], Value::Array(Vec::new()), "{one:#}");
    assert!(
        fs::read_to_string(files.join("server.log"))
            .unwrap()
            .contains("load")
    );

    // Both LoadGens get first tokens before the answers, and count tokens.
    for (loadgen, scenario) in [("native", "Server"), ("official", "SingleStream")] {
        let further = [
            "--loadgen",
            loadgen,
            "--conf",
            "min_query_count=64",
            "--conf",
            "target_qps=20",
        ];
        let run = measure(&lab, &driver, scenario, "PerformanceOnly", &further);
        let detail = lab.run_directory(&run).join("files/mlperf_log_detail.txt");
        let detail = fs::read_to_string(detail).unwrap();
        let value = |key: &str| {
            let line = detail
                .lines()
                .find(|line| line.contains(&format!("\"key\": \"{key}\"")));
            let line = line.unwrap_or_else(|| panic!("{key} of {loadgen} {scenario}"));
            let line: Value = serde_json::from_str(line.split_once("MLLOG ").unwrap().1).unwrap();
            line["value"].as_f64().unwrap()
        };
        let first = value("result_first_token_mean_latency_ns");
        let whole = value("result_mean_latency_ns");
        assert!(
            0.0 < first && first < whole,
            "{loadgen} {scenario}: {first} {whole}"
        );
    }
}
