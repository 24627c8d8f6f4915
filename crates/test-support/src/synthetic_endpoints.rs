//! A synthetic submission of the agentic benchmark as the endpoints harness writes it, with the figures of NVIDIA's published result
//! of v6.1 on a Jetson AGX Thor. Only the scores of single responses are made up.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use regatta_catalogue::round::Round;
use serde_json::{Map, Value, json};

use crate::{
    synthetic_submission::{SYSTEM, describe, system},
    tree::put,
};

/// The benchmark of the submission.
pub const BENCHMARK: &str = "qwen3.6-27b";
/// The directory of its only scenario.
pub const SCENARIO: &str = "closed/Team/results/board/qwen3.6-27b/SingleStream";
const SHARES: [&str; 12] = [
    "99.9", "99.0", "97.0", "95.0", "90.0", "80.0", "75.0", "50.0", "25.0", "10.0", "5.0", "1.0",
];

/// Writes a submission of the agentic benchmark below `root`.
pub fn write(root: &Path, round: &Round) {
    let home = root.join("closed/Team");
    describe(&home, round, "edge");
    put(&home.join("src/README.md"), "Elsewhere.\n");
    let scenario = root.join(SCENARIO);
    assert!(SCENARIO.contains(&format!("{SYSTEM}/{BENCHMARK}")));
    put(
        &scenario.join("measurements.json"),
        measurements(round).to_string(),
    );
    put(&scenario.join("README.md"), "How it was run.\n");
    put(&scenario.join("config.yaml"), config(round));
    let summary = summary(round);
    put(&scenario.join("report.txt"), report(&summary));
    put(
        &scenario.join("performance/result_summary.json"),
        summary.to_string(),
    );
    put(
        &scenario.join("accuracy/accuracy_results.json"),
        accuracy().to_string(),
    );
    put(&scenario.join("scores.json"), scores().to_string());
}

/// Writes what an operator adds to a run of the harness: the system's description and `measurements.json`, below `root`. Returns their paths.
pub fn descriptions(root: &Path, round: &Round, division: &str, submitter: &str) -> [PathBuf; 2] {
    let paths = ["system.json", "measurements.json"].map(|name| root.join(name));
    let mut system = system(round, "edge");
    system["division"] = json!(division);
    system["submitter"] = json!(submitter);
    put(&paths[0], system.to_string());
    put(&paths[1], measurements(round).to_string());
    paths
}

fn measurements(round: &Round) -> Value {
    let fields = round.submission.measurement_fields.iter();
    let fields: Map<_, _> = fields.map(|field| (field.clone(), json!("nvfp4"))).collect();
    json!(fields)
}

fn config(round: &Round) -> String {
    let seeds = round.seeds().unwrap();
    format!(
        "name: online_benchmark
version: '1.0'
type: online # one conversation at a time
model_params:
  name: base
  temperature: 0.0
  seed: 42
  max_new_tokens: 1024
  streaming: 'on'
datasets:
- name: agentic_coding
  type: performance
  path: examples/11_Edge_Agentic_Example/agentic_coding_2.5h.jsonl
  accuracy_config:
    eval_method: agentic_inference_inline
    num_repeats: 1
  agentic_inference:
    turn_timeout_s: 600.0
    enable_salt: false
    inject_tool_delay: false
    num_trajectories_to_issue: 20
    stop_issuing_on_first_user_complete: false
- name: bfcl_v4::function_calling
  type: accuracy
  generate_params:
    categories: [non_live, live, hallucination]
    category_sample_pct:
      non_live: 62
      live: 10
      hallucination: 10
    subset_floor: 25
  accuracy_config:
    eval_method: bfcl_v4
    extractor: function_call_extractor
    num_repeats: 1
settings:
  runtime:
    min_duration_ms: 600000
    max_duration_ms: 14400000
    scheduler_random_seed: {}
    dataloader_random_seed: {}
  load_pattern:
    type: agentic_inference
    target_concurrency: 1
  client:
    num_workers: 1
    warmup_connections: 0
    max_connections: 1
    max_idle_time: 4.0
  warmup:
    enabled: false
    salt: true
    drain: false
    warmup_random_seed: 42
endpoint_config:
  endpoints: [http://localhost:8001]
  api_type: openai
",
        seeds.schedule, seeds.sample_index
    )
}

/// Returns the statistics of a value. `edges` are its minimum and maximum.
fn statistics(total: f64, edges: [f64; 2], percentiles: [f64; 12], counts: [u64; 30]) -> Value {
    let samples: u64 = counts.iter().sum();
    // The harness has 30 ranges that grow by one factor, to at least ten times the minimum.
    let ratio = (edges[1] / edges[0]).max(10.0).powf(1.0 / 30.0);
    let bound = |number: i32| edges[0] * ratio.powi(number);
    let buckets: Vec<_> = (0..30).map(|number| [bound(number), bound(number + 1)]).collect();
    let list: Map<_, _> = SHARES
        .iter()
        .zip(percentiles)
        .map(|(share, value)| ((*share).to_owned(), json!(value)))
        .collect();
    json!({
        "total": total, "min": edges[0], "max": edges[1], "median": percentiles[7], "avg": total / samples as f64,
        "percentiles": list, "histogram": { "buckets": buckets, "counts": counts },
    })
}

/// Adds the estimates of early stopping, whose first one has too few samples.
fn with_estimates(mut statistics: Value, estimates: [f64; 7]) -> Value {
    let mut list: Map<_, _> = SHARES[1..8]
        .iter()
        .zip(estimates)
        .map(|(share, value)| ((*share).to_owned(), json!(value)))
        .collect();
    list.insert("99.9".to_owned(), Value::Null);
    statistics["early_stopping_percentiles"] = json!(list);
    statistics
}

fn summary(round: &Round) -> Value {
    let first_token = statistics(
        282_708_637_651.0,
        [176_897_213.0, 1_931_978_635.0],
        [
            1_119_790_691.0,
            739_385_207.0,
            556_897_031.0,
            468_396_366.0,
            382_385_698.0,
            308_989_755.0,
            292_627_541.0,
            247_124_196.0,
            221_223_849.0,
            200_788_133.0,
            193_118_697.0,
            182_541_305.0,
        ],
        [
            47, 104, 140, 166, 172, 95, 81, 43, 41, 28, 25, 12, 6, 8, 11, 9, 3, 5, 2, 1, 3, 0, 0, 3, 0, 0, 0,
            1, 0, 1,
        ],
    );
    let first_token = with_estimates(
        first_token,
        [
            1_119_790_691.0,
            679_599_454.0,
            551_315_639.0,
            404_170_588.0,
            324_318_781.0,
            303_699_970.0,
            251_965_311.0,
        ],
    );
    let later_token = statistics(
        15_875_166_728.960_566,
        [11_557_327.25, 89_302_346.054_054_05],
        [
            51_512_948.606_837_61,
            36_934_625.527_777_776,
            26_510_365.486_486_487,
            21_044_559.534_883_723,
            18_278_889.568_965_517,
            16_660_412.578_947_369,
            16_202_152.545_454_545,
            14_675_017.953_488_372,
            13_626_385.733_333_332,
            12_775_625.72,
            12_397_669.777_777_778,
            12_014_377.542_857_142,
        ],
        [
            61, 157, 264, 206, 144, 75, 31, 20, 7, 6, 8, 5, 5, 2, 3, 4, 2, 3, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0,
            0, 0,
        ],
    );
    let latency = statistics(
        1_476_269_729_447.0,
        [554_541_351.0, 13_706_192_746.0],
        [
            12_871_881_129.0,
            9_178_071_456.0,
            5_476_038_508.0,
            4_140_914_706.0,
            2_614_756_390.0,
            1_592_977_838.0,
            1_299_870_251.0,
            940_332_304.0,
            803_985_460.0,
            707_507_485.0,
            661_595_358.0,
            603_803_642.0,
        ],
        [
            22, 50, 113, 159, 166, 131, 69, 46, 33, 20, 22, 17, 21, 28, 17, 8, 17, 10, 7, 9, 7, 6, 5, 6, 3,
            1, 6, 3, 2, 3,
        ],
    );
    let latency = with_estimates(
        latency,
        [
            12_871_881_129.0,
            7_802_096_814.0,
            5_307_520_416.0,
            3_214_942_432.0,
            1_877_789_124.0,
            1_446_879_295.0,
            973_106_442.0,
        ],
    );
    let tokens = statistics(
        77264.0,
        [18.0, 861.0],
        [
            851.0, 539.0, 342.0, 251.0, 154.0, 66.0, 55.0, 44.0, 38.0, 31.0, 29.0, 27.0,
        ],
        [
            1, 0, 2, 77, 59, 160, 206, 184, 77, 35, 20, 16, 13, 10, 18, 11, 22, 16, 6, 16, 11, 12, 5, 7, 4,
            3, 7, 3, 1, 5,
        ],
    );
    let seeds = round.seeds().unwrap();
    json!({
        "version": "0.1.0", "git_sha": "5326cb5", "test_started_at": 0,
        "n_samples_issued": 1007, "n_samples_completed": 1007, "n_samples_failed": 0,
        "duration_ns": 1_476_407_618_902_u64, "state": "complete", "complete": true,
        "ttft": first_token, "tpot": later_token, "latency": latency, "output_sequence_lengths": tokens,
        "legacy_loadgen_window_duration_ns": null, "qps": 0.682_060_961_422_634_1, "tps": 52.332_431_105_619_065,
        "finish_reason_counts": {
            "stop": 1, "length": 0, "tool_calls": 1006, "content_filter": 0, "function_call": 0, "other": 0,
        },
        "run_config": {
            "load_pattern": { "type": "agentic_inference", "target_qps": null, "target_concurrency": 1 },
            "warmup": {
                "enabled": false, "n_requests": null, "salt": true, "drain": false, "warmup_random_seed": 42,
            },
            "scheduler_random_seed": seeds.schedule, "dataloader_random_seed": seeds.sample_index,
        },
    })
}

fn accuracy() -> Value {
    let tokens = statistics(
        114_074.0,
        [9.0, 1024.0],
        [
            1024.0, 548.0, 303.0, 266.0, 216.0, 149.0, 130.0, 75.0, 64.0, 58.0, 55.0, 40.0,
        ],
        [
            2, 0, 0, 0, 3, 1, 0, 0, 0, 4, 11, 106, 278, 163, 46, 52, 86, 57, 42, 38, 38, 29, 15, 4, 4, 5, 6,
            2, 0, 3,
        ],
    );
    let score = 875.0 / 995.0;
    json!({
        "average_accuracy": score, "osl_tokenization_s": 0.042,
        "accuracy_scores": [
            {
                "dataset_name": "bfcl_v4::function_calling", "extractor": "FunctionCallExtractor", "score": score,
                "unit_samples": 995, "num_repeats": 1, "total_samples": 995, "duration_s": 1737.285, "complete": true,
                "dataset_type": "accuracy",
                "breakdown": {
                    "overall_accuracy": 87.94, "normalized_single_turn_score": 89.42,
                    "category_scores": { "non_live": 83.23, "live": 88.82, "hallucination": 96.21 },
                    "subset_scores": {
                        "irrelevance": 95.83, "live_irrelevance": 96.59, "live_multiple": 88.57, "live_parallel": 87.5,
                        "live_parallel_multiple": 79.17, "live_simple": 100.0, "multiple": 95.97, "parallel": 86.29,
                        "parallel_multiple": 90.32, "simple_java": 46.77, "simple_javascript": 38.71,
                        "simple_python": 95.56,
                    },
                    "unscored_subsets": {}, "total_samples": 995, "issued_samples": 995,
                },
                "response_counts": { "issued": 995, "scored": 995, "empty": 0, "missing": 0 },
                "output_sequence_lengths": tokens,
            },
            {
                "dataset_name": "performance", "score": 0.615, "unit_samples": 1007, "num_repeats": 1,
                "total_samples": 1007, "duration_s": 1476.408, "complete": true, "dataset_type": "performance",
            },
        ],
    })
}

/// Returns scores of 1006 responses with the published mean.
fn scores() -> Value {
    let turn = |number: usize| {
        let (found, score) = match number {
            0..618 => (json!(["grep", "head"]), 1.0),
            618 => (json!(["grep", "head", "cat"]), 0.6667),
            _ => (json!(["python"]), 0.0),
        };
        json!({
            "conversation_id": "made-up", "repeat": 1, "turn": 2 * (number + 1), "domain": "coding",
            "gt_actions": ["grep", "head"], "model_actions": found, "score": score,
        })
    };
    json!({
        "score": 0.615,
        "turns": { "issued": 1007, "expected": 1006, "observed": 1006, "missing": 0, "scored": 1006 },
        "domains": { "coding": { "score": 0.615, "scored": 1006 } },
        "per_turn": (0..1006).map(turn).collect::<Vec<_>>(),
    })
}

fn report(summary: &Value) -> String {
    let seed = |name: &str| summary["run_config"][name].to_string();
    let mut text = format!(
        "----------------- Summary -----------------
Version: 0.1.0
Git SHA: 5326cb5
Run config:
  load_pattern: type=agentic_inference, target_qps=None, target_concurrency=1
  scheduler_random_seed: {}
  dataloader_random_seed: {}
Total samples issued: 1007
Total samples completed: 1007
Total samples failed: 0
Duration: 1476.41 seconds
QPS: 0.68
TPS: 52.33
Accuracy:
  bfcl_v4::function_calling: 0.8794 (unit=995, repeats=1, total=995, duration=1737.29s)
    responses: 995/995 scored (0 empty, 0 missing)
    simple_java: 46.77%
    simple_python: 95.56%
  performance: 0.615 (unit=1007, repeats=1, total=1007, duration=1476.41s)

------------------- Latency Breakdowns -------------------
",
        seed("scheduler_random_seed"),
        seed("dataloader_random_seed")
    );
    for (heading, name) in [("TTFT", "ttft"), ("TPOT", "tpot"), ("Latency", "latency")] {
        let values = &summary[name];
        let ms = |value: &Value| value.as_f64().unwrap() / 1e6;
        writeln!(text, "{heading}:").unwrap();
        for (label, key) in [
            ("Min", "min"),
            ("Max", "max"),
            ("Median", "median"),
            ("Avg.", "avg"),
        ] {
            writeln!(text, "  {label}: {:.2} ms", ms(&values[key])).unwrap();
        }
        text += "\n  Percentiles:\n";
        for share in SHARES {
            writeln!(text, "  {share:>6}: {:.2} ms", ms(&values["percentiles"][share])).unwrap();
        }
        text.push('\n');
    }
    text + "----------------- End of Report -----------------\n"
}
