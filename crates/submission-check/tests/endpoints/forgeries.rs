//! The forgeries: one changed statement each, and the finding that names it.

use regatta_submission_check::check::Severity::{self, Error, Warning};
use serde_json::{Value, json};

const CONFIG: &str = "config.yaml";
const SUMMARY: &str = "performance/result_summary.json";
const ACCURACY: &str = "accuracy/accuracy_results.json";
const SCORES: &str = "scores.json";
const REPORT: &str = "report.txt";

/// A changed JSON document.
pub(super) struct Forgery {
    pub(super) name: &'static str,
    pub(super) file: &'static str,
    pub(super) edit: fn(&mut Value),
    /// The rule, the severity and words of the message.
    pub(super) finding: (&'static str, Severity, &'static str),
}

/// A text replaced in a document.
pub(super) struct TextForgery {
    pub(super) name: &'static str,
    pub(super) file: &'static str,
    pub(super) from: &'static str,
    pub(super) to: &'static str,
    pub(super) finding: (&'static str, Severity, &'static str),
}

const fn summary(
    name: &'static str,
    edit: fn(&mut Value),
    finding: (&'static str, Severity, &'static str),
) -> Forgery {
    Forgery {
        name,
        file: SUMMARY,
        edit,
        finding,
    }
}

const fn accuracy(
    name: &'static str,
    edit: fn(&mut Value),
    finding: (&'static str, Severity, &'static str),
) -> Forgery {
    Forgery {
        file: ACCURACY,
        ..summary(name, edit, finding)
    }
}

const fn scores(
    name: &'static str,
    edit: fn(&mut Value),
    finding: (&'static str, Severity, &'static str),
) -> Forgery {
    Forgery {
        file: SCORES,
        ..summary(name, edit, finding)
    }
}

const fn config(
    name: &'static str,
    (from, to): (&'static str, &'static str),
    says: &'static str,
) -> TextForgery {
    TextForgery {
        name,
        file: CONFIG,
        from,
        to,
        finding: (SETTINGS, Error, says),
    }
}

const FIGURES: &str = "endpoints-figures";
const SETTINGS: &str = "endpoints-settings";

pub(super) const FORGERIES: &[Forgery] = &[
    // The performance run.
    summary(
        "interrupted",
        |run| run["state"] = json!("interrupted"),
        ("valid", Error, "state is interrupted"),
    ),
    summary(
        "not complete",
        |run| run["complete"] = json!(false),
        ("valid", Error, "complete is false"),
    ),
    summary(
        "without a state",
        |run| drop(run.as_object_mut().unwrap().remove("state")),
        ("valid", Error, "state is missing"),
    ),
    summary(
        "failed requests",
        |run| run["n_samples_failed"] = json!(25),
        ("valid", Error, "n_samples_failed is 25"),
    ),
    summary(
        "without the number of failed requests",
        |run| run["n_samples_failed"] = Value::Null,
        (FIGURES, Error, "n_samples_failed is missing"),
    ),
    summary(
        "ten requests",
        |run| {
            run["n_samples_issued"] = json!(10);
            run["n_samples_completed"] = json!(10);
        },
        ("valid", Error, "n_samples_issued is 10, the benchmark has 1007"),
    ),
    summary(
        "one second",
        |run| run["duration_ns"] = json!(1_000_000_000),
        ("min-duration", Error, "lasted 1.0 s"),
    ),
    summary(
        "a shorter duration",
        |run| run["duration_ns"] = json!(1_400_000_000_000_u64),
        (FIGURES, Error, "qps is"),
    ),
    summary(
        "a better mean latency",
        |run| run["latency"]["avg"] = json!(1.1e9),
        (FIGURES, Error, "latency: avg is"),
    ),
    summary(
        "a better mean latency and its total",
        |run| {
            run["latency"]["avg"] = json!(1e9);
            run["latency"]["total"] = json!(1.007e12);
        },
        (FIGURES, Error, "latency: total is"),
    ),
    summary(
        "longer latencies than the run",
        |run| {
            run["latency"]["avg"] = json!(1.5e9);
            run["latency"]["total"] = json!(1.5e9 * 1007.0);
        },
        (FIGURES, Error, "the latencies are"),
    ),
    summary(
        "a better maximum",
        |run| run["latency"]["max"] = json!(5e9),
        (FIGURES, Error, "latency: min, percentiles, max"),
    ),
    summary(
        "a better percentile",
        |run| run["latency"]["percentiles"]["99.0"] = json!(6e9),
        (FIGURES, Error, "latency: percentile 99 is"),
    ),
    summary(
        "a better early stopping estimate",
        |run| run["latency"]["early_stopping_percentiles"]["99.0"] = json!(9e9),
        (FIGURES, Error, "early stopping estimate of percentile 99"),
    ),
    summary(
        "another median",
        |run| run["latency"]["median"] = json!(9e8),
        (FIGURES, Error, "latency: median is"),
    ),
    summary(
        "a histogram of fewer responses",
        |run| run["latency"]["histogram"]["counts"][4] = json!(100),
        (FIGURES, Error, "latency: the histogram has 941 values"),
    ),
    summary(
        "without a histogram",
        |run| drop(run["ttft"].as_object_mut().unwrap().remove("histogram")),
        (FIGURES, Error, "ttft: the histogram is missing"),
    ),
    summary(
        "more tokens per second",
        |run| run["tps"] = json!(80.0),
        (FIGURES, Error, "tps is 80"),
    ),
    summary(
        "more requests per second",
        |run| run["qps"] = json!(0.9),
        (FIGURES, Error, "qps is 0.9"),
    ),
    summary(
        "a reason to finish for fewer responses",
        |run| run["finish_reason_counts"]["tool_calls"] = json!(900),
        (FIGURES, Error, "finish_reason_counts are of 901 responses"),
    ),
    summary(
        "responses cut at the limit",
        |run| {
            run["finish_reason_counts"]["tool_calls"] = json!(906);
            run["finish_reason_counts"]["length"] = json!(100);
        },
        (FIGURES, Warning, "100 of 1007 responses were cut"),
    ),
    summary(
        "an unknown client",
        |run| run["git_sha"] = Value::Null,
        (FIGURES, Warning, "git_sha is missing"),
    ),
    summary(
        "without token figures",
        |run| {
            run["tpot"] = json!({});
            run["output_sequence_lengths"] = json!({});
        },
        (FIGURES, Warning, "tpot and output_sequence_lengths are empty"),
    ),
    summary(
        "run with another seed",
        |run| run["run_config"]["scheduler_random_seed"] = json!(42),
        (SETTINGS, Error, "run_config.scheduler_random_seed is 42"),
    ),
    summary(
        "run with another load pattern",
        |run| run["run_config"]["load_pattern"]["target_concurrency"] = json!(8),
        (SETTINGS, Error, "run_config.load_pattern.target_concurrency is 8"),
    ),
    summary(
        "without the run's settings",
        |run| run["run_config"] = Value::Null,
        (SETTINGS, Error, "run_config is missing"),
    ),
    // The accuracy run.
    accuracy(
        "an accuracy of 1 %",
        |run| run["accuracy_scores"][0]["score"] = json!(0.01),
        ("accuracy", Error, "overall is 1"),
    ),
    accuracy(
        "a better score than its breakdown",
        |run| run["accuracy_scores"][0]["score"] = json!(0.95),
        (FIGURES, Error, "the score is 95.00 %, overall_accuracy 87.94 %"),
    ),
    accuracy(
        "another average",
        |run| run["average_accuracy"] = json!(0.9),
        (FIGURES, Error, "average_accuracy is 0.9"),
    ),
    accuracy(
        "a score that is not complete",
        |run| run["accuracy_scores"][0]["complete"] = json!(false),
        ("accuracy", Error, "is not complete"),
    ),
    accuracy(
        "994 samples",
        |run| run["accuracy_scores"][0]["total_samples"] = json!(994),
        ("dataset", Error, "994 samples"),
    ),
    accuracy(
        "a normalized score below the bound",
        |run| run["accuracy_scores"][0]["breakdown"]["normalized_single_turn_score"] = json!(85.31),
        ("accuracy", Error, "normalized_single_turn_score is 85.31"),
    ),
    accuracy(
        "a better normalized score than its categories",
        |run| run["accuracy_scores"][0]["breakdown"]["normalized_single_turn_score"] = json!(91.5),
        (
            FIGURES,
            Error,
            "normalized_single_turn_score is 91.5, the subsets make 89.42",
        ),
    ),
    accuracy(
        "a better category than its subsets",
        |run| run["accuracy_scores"][0]["breakdown"]["category_scores"]["live"] = json!(99.9),
        (FIGURES, Error, "live is 99.9, the subsets make 88.82"),
    ),
    accuracy(
        "a better subset than its category",
        |run| run["accuracy_scores"][0]["breakdown"]["subset_scores"]["simple_java"] = json!(91.94),
        (FIGURES, Error, "non_live is 83.23, the subsets make"),
    ),
    accuracy(
        "half a correct sample",
        |run| run["accuracy_scores"][0]["breakdown"]["subset_scores"]["irrelevance"] = json!(97.5),
        (FIGURES, Error, "97.5 % of the 24 samples of irrelevance"),
    ),
    accuracy(
        "without a subset",
        |run| {
            drop(
                run["accuracy_scores"][0]["breakdown"]["subset_scores"]
                    .as_object_mut()
                    .unwrap()
                    .remove("simple_java"),
            )
        },
        (FIGURES, Error, "the score of simple_java is missing"),
    ),
    accuracy(
        "without a breakdown",
        |run| run["accuracy_scores"][0]["breakdown"] = Value::Null,
        ("accuracy", Error, "the breakdown of the score is missing"),
    ),
    accuracy(
        "every response empty",
        |run| {
            run["accuracy_scores"][0]["response_counts"] =
                json!({ "issued": 995, "scored": 0, "empty": 995, "missing": 0 })
        },
        ("accuracy", Error, "995 of 995 responses are empty"),
    ),
    accuracy(
        "a missing response",
        |run| {
            run["accuracy_scores"][0]["response_counts"] =
                json!({ "issued": 995, "scored": 994, "empty": 0, "missing": 1 })
        },
        ("accuracy", Error, "1 missing"),
    ),
    accuracy(
        "fewer responses than samples",
        |run| {
            run["accuracy_scores"][0]["response_counts"] =
                json!({ "issued": 100, "scored": 100, "empty": 0, "missing": 0 })
        },
        (FIGURES, Error, "100 responses were issued"),
    ),
    accuracy(
        "without response counts",
        |run| run["accuracy_scores"][0]["response_counts"] = Value::Null,
        (
            "accuracy",
            Error,
            "response_counts of bfcl_v4::function_calling are missing",
        ),
    ),
    accuracy(
        "tokens of fewer responses",
        |run| run["accuracy_scores"][0]["output_sequence_lengths"]["total"] = json!(50_000),
        (FIGURES, Error, "output_sequence_lengths: avg is"),
    ),
    accuracy(
        "a second, better score",
        |run| {
            let better = run["accuracy_scores"][0].clone();
            run["accuracy_scores"].as_array_mut().unwrap().insert(0, better);
            run["accuracy_scores"][1]["total_samples"] = json!(0);
        },
        ("accuracy", Error, "several scores"),
    ),
    accuracy(
        "another score of the performance run",
        |run| run["accuracy_scores"][1]["score"] = json!(0.9),
        (FIGURES, Error, "differs from the one in accuracy_results.json"),
    ),
    // The scores of the performance run's responses.
    scores(
        "missing turns",
        |run| run["turns"]["missing"] = json!(24),
        (FIGURES, Error, "turns.missing is 24"),
    ),
    scores(
        "fewer scored turns",
        |run| run["turns"]["scored"] = json!(982),
        (FIGURES, Error, "turns.scored is 982"),
    ),
    scores(
        "another number of turns",
        |run| run["turns"]["issued"] = json!(27),
        (FIGURES, Error, "turns.issued is 27"),
    ),
    scores(
        "a better score of all",
        |run| run["score"] = json!(0.7),
        (FIGURES, Error, "score is 0.7, the responses make 0.6150"),
    ),
    scores(
        "a better score of a response",
        |run| run["per_turn"][1000]["score"] = json!(1.0),
        (FIGURES, Error, "response 1001 has the score 1"),
    ),
    scores(
        "scores of fewer responses",
        |run| drop(run["per_turn"].as_array_mut().unwrap().pop()),
        (FIGURES, Error, "1005 responses have a score of 1006"),
    ),
];

pub(super) const TEXT_FORGERIES: &[TextForgery] = &[
    config(
        "another temperature",
        ("temperature: 0.0", "temperature: 0.7"),
        "model_params.temperature is 0.7",
    ),
    config(
        "another seed of the model",
        ("\n  seed: 42", "\n  seed: 7"),
        "model_params.seed is 7",
    ),
    config(
        "shorter answers",
        ("max_new_tokens: 1024", "max_new_tokens: 64"),
        "model_params.max_new_tokens is 64",
    ),
    config(
        "without streaming",
        ("streaming: 'on'", "streaming: 'off'"),
        "model_params.streaming is \"off\"",
    ),
    config(
        "a penalty",
        ("\n  seed: 42", "\n  seed: 42\n  repetition_penalty: 1.3"),
        "model_params.repetition_penalty is 1.3",
    ),
    config(
        "fewer trajectories",
        ("issue: 20", "issue: 2"),
        "num_trajectories_to_issue is 2",
    ),
    config(
        "salted prompts",
        ("enable_salt: false", "enable_salt: true"),
        "enable_salt is true",
    ),
    config(
        "a smaller share of the data set",
        ("live: 10", "live: 1"),
        "category_sample_pct.live is 1",
    ),
    config(
        "easier categories",
        ("[non_live, live, hallucination]", "[non_live, live]"),
        "generate_params.categories is",
    ),
    config(
        "another accuracy data set",
        ("bfcl_v4::function_calling", "bfcl_v3::easy"),
        "datasets.1.name is",
    ),
    config(
        "a part of the data set",
        ("  type: accuracy", "  type: accuracy\n  samples: 10"),
        "datasets.1.samples is 10",
    ),
    config(
        "more workers",
        ("num_workers: 1", "num_workers: 8"),
        "settings.client.num_workers is 8",
    ),
    config(
        "more connections",
        ("\n    max_connections: 1", "\n    max_connections: 8"),
        "settings.client.max_connections is 8",
    ),
    config(
        "warm connections",
        ("warmup_connections: 0", "warmup_connections: 8"),
        "settings.client.warmup_connections is 8",
    ),
    config(
        "a warm-up",
        ("    enabled: false", "    enabled: true"),
        "settings.warmup.enabled is true",
    ),
    config(
        "another load pattern",
        (
            "type: agentic_inference\n    target",
            "type: concurrency\n    target",
        ),
        "settings.load_pattern.type",
    ),
    TextForgery {
        finding: ("seeds", Error, "dataloader_random_seed is 42"),
        ..config("another seed", ("2747215439041700203", "42"), "")
    },
    TextForgery {
        finding: ("min-duration", Error, "min_duration_ms is 0"),
        ..config(
            "no minimum duration",
            ("min_duration_ms: 600000", "min_duration_ms: 0"),
            "",
        )
    },
    TextForgery {
        finding: ("endpoints", Error, "duplicate key `temperature`"),
        ..config(
            "two temperatures",
            ("  temperature: 0.0", "  temperature: 0.7\n  temperature: 0.0"),
            "",
        )
    },
    TextForgery {
        file: SUMMARY,
        finding: ("endpoints", Error, "duplicate key `n_samples_failed`"),
        ..config(
            "two numbers of failed requests",
            (
                "\"n_samples_failed\":0",
                "\"n_samples_failed\":25,\"n_samples_failed\":0",
            ),
            "",
        )
    },
    TextForgery {
        file: ACCURACY,
        finding: ("endpoints", Error, "duplicate key `score`"),
        ..config(
            "two scores",
            ("\"score\":0.615", "\"score\":0.9,\"score\":0.615"),
            "",
        )
    },
    TextForgery {
        file: REPORT,
        finding: (FIGURES, Error, "Avg. is 1166.01"),
        ..config(
            "a better mean in the report",
            ("Avg.: 1466.01", "Avg.: 1166.01"),
            "",
        )
    },
    TextForgery {
        file: REPORT,
        finding: (FIGURES, Error, "99.0 is 2178.07"),
        ..config(
            "a better percentile in the report",
            ("99.0: 9178.07", "99.0: 2178.07"),
            "",
        )
    },
    TextForgery {
        file: REPORT,
        finding: (FIGURES, Error, "Total samples failed is 25"),
        ..config("failed requests in the report", ("failed: 0", "failed: 25"), "")
    },
    TextForgery {
        file: REPORT,
        finding: (FIGURES, Error, "bfcl_v4::function_calling is 0.9794"),
        ..config(
            "a better accuracy in the report",
            ("calling: 0.8794", "calling: 0.9794"),
            "",
        )
    },
    TextForgery {
        file: REPORT,
        finding: (FIGURES, Error, "simple_java is 86.77"),
        ..config(
            "a better subset in the report",
            ("simple_java: 46.77", "simple_java: 86.77"),
            "",
        )
    },
];
