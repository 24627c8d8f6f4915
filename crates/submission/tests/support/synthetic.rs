//! A small submission that is in order: one scenario of the speech benchmark, made up, in either layout.

use std::{fs, path::Path};

use regatta_rules::round::{Layout, Round};
use serde_json::json;

const SYSTEM: &str = "board";

/// Writes the submission below `root`.
pub(crate) fn write(root: &Path, round: &Round) {
    let home = root.join("closed/Team");
    let classic = round.submission.layout == Layout::Classic;
    let below = |part: &str| home.join(part).join(SYSTEM).join("whisper/Offline");
    let results = below("results");
    let measurements = if classic {
        below("measurements")
    } else {
        results.clone()
    };
    let test = if classic {
        below("compliance")
    } else {
        results.clone()
    }
    .join("TEST01");

    let mut system = serde_json::Map::new();
    for field in &round.submission.system_fields {
        system.insert(field.clone(), "1".into());
    }
    system.insert("division".into(), "closed".into());
    system.insert("submitter".into(), "Team".into());
    system.insert("status".into(), "available".into());
    system.insert("system_type".into(), "edge".into());
    put(
        &home.join("systems").join(format!("{SYSTEM}.json")),
        &json!(system).to_string(),
    );
    put(&home.join("calibration.md"), "None.\n");
    put(
        &home.join(if classic {
            "code/whisper/README.md"
        } else {
            "src/README.md"
        }),
        "Elsewhere.\n",
    );

    let mut fields = serde_json::Map::new();
    for field in &round.submission.measurement_fields {
        fields.insert(field.clone(), "int8".into());
    }
    let name = if classic {
        format!("{SYSTEM}.json")
    } else {
        "measurements.json".to_owned()
    };
    put(&measurements.join(name), &json!(fields).to_string());
    for name in ["user.conf", "README.md"] {
        put(&measurements.join(name), "# nothing\n");
    }

    let accuracy = results.join("accuracy");
    put(
        &accuracy.join("mlperf_log_detail.txt"),
        &detail(round, "AccuracyOnly", 100.0),
    );
    put(&accuracy.join("mlperf_log_summary.txt"), &summary(100.0));
    put(&accuracy.join("mlperf_log_accuracy.json"), "[\n]\n");
    put(
        &accuracy.join("accuracy.txt"),
        &format!(
            "Word Error Rate: 2.0671%, accuracy=97.9329%\nhash={}\n",
            "0a".repeat(32)
        ),
    );
    let run = |directory: &Path, rate: f64| {
        put(
            &directory.join("mlperf_log_detail.txt"),
            &detail(round, "PerformanceOnly", rate),
        );
        put(&directory.join("mlperf_log_summary.txt"), &summary(rate));
    };
    run(&results.join("performance/run_1"), 100.0);
    run(&test.join("performance/run_1"), 101.0);
    put(
        &test.join("verify_performance.txt"),
        "Verifying performance.\nReference score = 100.0\nTest score = 101.0\nTEST PASS\n",
    );
    put(
        &test.join("verify_accuracy.txt"),
        "num_perf_log_entries = 1633\nnum_perf_log_data_mismatch = 0\nTEST PASS\n",
    );
    put(&test.join("accuracy/mlperf_log_accuracy.json"), "[\n]\n");
    put(
        &test.join("accuracy/accuracy.txt"),
        "Word Error Rate: 2.0671%, accuracy=97.9329%\n",
    );
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn summary(rate: f64) -> String {
    let bar = "=".repeat(48);
    format!(
        "{bar}\nMLPerf Results Summary\n{bar}\nSUT name : board\nScenario : Offline\nMode     : PerformanceOnly\n\
         Samples per second: {rate}\nResult is : VALID\n"
    )
}

fn detail(round: &Round, mode: &str, rate: f64) -> String {
    let seeds = round.seeds().unwrap();
    let facts = [
        ("loadgen_version", json!("6.0.17")),
        ("sut_name", json!("board")),
        ("qsl_name", json!("speech")),
        ("qsl_reported_total_count", json!(1633)),
        ("effective_scenario", json!("Offline")),
        ("effective_test_mode", json!(mode)),
        ("effective_samples_per_query", json!(66000)),
        ("effective_min_duration_ms", json!(600_000)),
        ("effective_min_query_count", json!(1)),
        ("effective_performance_sample_count", json!(1633)),
        ("effective_qsl_rng_seed", json!(seeds.qsl)),
        ("effective_sample_index_rng_seed", json!(seeds.sample_index)),
        ("effective_schedule_rng_seed", json!(seeds.schedule)),
        ("effective_sample_concatenate_permutation", json!(true)),
        ("requested_use_token_latencies", json!(true)),
        ("result_validity", json!("VALID")),
        ("result_samples_per_second", json!(rate)),
        ("result_tokens_per_second", json!(rate * 40.0)),
        ("num_errors", json!(0)),
    ];
    let lines = facts.map(|(key, value)| {
        let metadata = "{\"is_error\": false, \"is_warning\": false, \"file\": \"x.cc\", \"line_no\": 1, \"pid\": 1, \"tid\": 1}";
        format!(":::MLLOG {{\"key\": \"{key}\", \"value\": {value}, \"time_ms\": 0.1, \"namespace\": \"mlperf::logging\", \"event_type\": \"POINT_IN_TIME\", \"metadata\": {metadata}}}\n")
    });
    lines.concat()
}
