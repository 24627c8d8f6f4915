//! Synthetic submissions that both checkers accept: one benchmark with its scenarios and compliance tests, in the layout of its round.

use std::{collections::BTreeMap, path::Path};

use regatta_catalogue::{
    procedures::ScoreSource,
    round::{BenchmarkRules, Layout, Round, SubmittedScenario},
};
use regatta_loadgen::effective::LibraryCounts;
use regatta_loadgen_conf::{Conf, ConfKind};
use regatta_types::{Mode, Scenario};
use serde_json::json;

use crate::{
    synthetic_run::{Figures, SyntheticRun, log_line},
    tree::put,
};

pub(crate) const SYSTEM: &str = "board";
/// The hash of an accuracy log without entries.
const EMPTY_LOG: &str = "3fbbd4c6d76130399b0c79cdf41758669224a91e05b7b216953f0c9728750865";

/// Writes a submission of the round's speech benchmark below `root`. A round without one gets image classification.
pub fn write(root: &Path, round: &Round) {
    let speech = round.submission.benchmarks.contains_key("whisper");
    category(root, round, if speech { "whisper" } else { "resnet" }, "edge");
}

/// Writes a submission of a benchmark below `root`, with all scenarios that a system of type `kind` may have.
pub fn category(root: &Path, round: &Round, name: &str, kind: &str) {
    let home = root.join("closed/Team");
    let rules = &round.submission.benchmarks[name];
    describe(&home, round, kind);
    let sources = match round.submission.layout {
        Layout::Classic => format!("code/{name}/README.md"),
        Layout::ResultsOnly => "src/README.md".to_owned(),
    };
    put(&home.join(sources), "Elsewhere.\n");
    let scenarios = rules.scenarios(kind).unwrap();
    let required = scenarios.required.iter().map(|&scenario| scenario.into());
    for scenario in required.chain(scenarios.optional.iter().copied()) {
        let result = SyntheticResult {
            round,
            rules,
            name,
            scenario,
        };
        result.write(&home);
    }
}

pub(crate) fn describe(home: &Path, round: &Round, kind: &str) {
    put(
        &home.join(format!("systems/{SYSTEM}.json")),
        system(round, kind).to_string(),
    );
    put(&home.join("calibration.md"), "None.\n");
}

/// Returns the description of a system.
pub(crate) fn system(round: &Round, kind: &str) -> serde_json::Value {
    let fields = round.submission.system_fields.iter();
    let mut system: serde_json::Map<_, _> = fields.map(|field| (field.clone(), json!("1"))).collect();
    for (field, value) in [
        ("division", "closed"),
        ("submitter", "Team"),
        ("status", "available"),
        ("system_type", kind),
    ] {
        system.insert(field.to_owned(), json!(value));
    }
    json!(system)
}

struct SyntheticResult<'a> {
    round: &'a Round,
    rules: &'a BenchmarkRules,
    name: &'a str,
    scenario: SubmittedScenario,
}

impl SyntheticResult<'_> {
    fn write(&self, home: &Path) {
        let classic = self.round.submission.layout == Layout::Classic;
        let below = |part: &str| {
            let part = if classic { part } else { "results" };
            home.join(part)
                .join(SYSTEM)
                .join(self.name)
                .join(self.scenario.as_str())
        };
        let (results, measurements) = (below("results"), below("measurements"));
        let fields = self.round.submission.measurement_fields.iter();
        let fields: serde_json::Map<_, _> = fields.map(|field| (field.clone(), json!("int8"))).collect();
        let name = if classic {
            format!("{SYSTEM}_{}.json", self.scenario)
        } else {
            "measurements.json".to_owned()
        };
        put(&measurements.join(name), json!(fields).to_string());
        for name in &self.round.submission.measurement_files {
            let text = match name.as_str() {
                "mlperf.conf" => self.round.render_mlperf_conf(&BTreeMap::new()),
                _ => "*.*.sample_concatenate_permutation = 1\n".to_owned(),
            };
            put(&measurements.join(name), text);
        }
        let accuracy = results.join("accuracy");
        self.run(&accuracy, Mode::AccuracyOnly, "");
        put(&accuracy.join("mlperf_log_accuracy.json"), "[\n]\n");
        let hash = format!("hash={EMPTY_LOG}\n");
        put(&accuracy.join("accuracy.txt"), self.accuracy() + &hash);
        for (folder, names) in &self.rules.extra_accuracy_files {
            for name in names {
                put(
                    &accuracy.join(folder).join(name).with_extension("png"),
                    "a picture",
                );
            }
        }
        let reference = self.run(&results.join("performance/run_1"), Mode::PerformanceOnly, "");
        for test in &self.rules.tests {
            self.test(&below("compliance").join(test), test, &reference);
        }
    }

    /// Writes the logs of a run, and returns the run with its figures.
    fn run(&self, directory: &Path, mode: Mode, test: &str) -> (SyntheticRun, Figures) {
        let run = self.synthetic_run(mode, test);
        let figures = run.figures();
        put(
            &directory.join("mlperf_log_detail.txt"),
            self.detail(&run, &figures),
        );
        put(&directory.join("mlperf_log_summary.txt"), run.summary(&figures));
        (run, figures)
    }

    fn test(&self, directory: &Path, test: &str, reference: &(SyntheticRun, Figures)) {
        let responses = match test {
            "TEST06" => {
                "First token check pass: True\nEOS check pass: True\nSample length check pass: True\n"
            }
            "TEST07" | "TEST08" | "TEST09" => "TEST PASS\n",
            _ => return self.rerun(directory, test, reference),
        };
        let name = match test {
            "TEST09" => "verify_output_len.txt",
            _ => "verify_accuracy.txt",
        };
        put(&directory.join(name), responses);
    }

    fn rerun(&self, directory: &Path, test: &str, reference: &(SyntheticRun, Figures)) {
        let rerun = self.run(&directory.join("performance/run_1"), Mode::PerformanceOnly, test);
        let audit = &self.round.audits[test];
        let rate = audit.latency_as_rate && audit.scores == ScoreSource::Summary;
        let score = |(run, figures): &(SyntheticRun, Figures)| {
            let latency = match run.settings.use_token_latencies {
                true => run.first_token_ns,
                false => figures.latency,
            };
            match self.scenario.run() {
                Scenario::SingleStream | Scenario::MultiStream if rate => 1e9 / latency as f64,
                Scenario::SingleStream | Scenario::MultiStream => latency as f64,
                Scenario::Server => figures.server_rates()[1],
                Scenario::Offline => figures.rate(),
            }
        };
        let (reference, found) = (score(reference), score(&rerun));
        let text = format!(
            "Verifying performance.\nreference score = {reference}\ntest score = {found}\nTEST PASS\n"
        );
        put(&directory.join("verify_performance.txt"), &text);
        if test == "TEST01" {
            let (_, figures) = &rerun;
            let logged = figures.samples as f64 * figures.effective.effective_accuracy_log_probability();
            let text =
                format!("num_perf_log_entries = {logged:.0}\nnum_perf_log_data_mismatch = 0\nTEST PASS\n");
            put(&directory.join("verify_accuracy.txt"), &text);
            put(&directory.join("accuracy/mlperf_log_accuracy.json"), "[\n]\n");
            put(&directory.join("accuracy/accuracy.txt"), self.accuracy());
        }
    }

    /// Formats the output of the reference accuracy script at the reference model's accuracy.
    fn accuracy(&self) -> String {
        let value = |metric: &str| {
            let mut bounds = self.rules.accuracy_in(Some(self.scenario)).iter();
            bounds
                .find(|bound| bound.metric == metric)
                .map(|bound| bound.reference)
        };
        match self.rules.accuracy[0].metric.as_str() {
            "acc" => {
                let percent = value("acc").unwrap();
                let total = self.rules.dataset_samples_in(self.scenario).unwrap_or(50_000);
                let good = (percent / 100.0 * total as f64).round();
                format!("accuracy={percent}%, good={good}, total={total}\n")
            }
            "mAP" => format!("mAP={}%\n", value("mAP").unwrap()),
            "F1" => format!("{{\"exact_match\": 83.7, \"f1\": {}}}\n", value("F1").unwrap()),
            "WER" | "ACCURACY" => {
                let value = value("WER").or_else(|| value("ACCURACY")).unwrap();
                format!("Word Error Rate: {:.4}%, accuracy={value}%\n", 100.0 - value)
            }
            "AUC" => format!("AUC={}%\n", value("AUC").unwrap()),
            "E2E_ACCURACY" => format!("Accuracy: {}\n", value("E2E_ACCURACY").unwrap()),
            "F1_HIERARCHICAL" => format!("{{\"f1\": {}}}\n", value("F1_HIERARCHICAL").unwrap()),
            "DLRM_NE" => ["DLRM_NE ne", "DLRM_ACC accuracy", "DLRM_AUC gauc"]
                .map(|names| {
                    let (metric, key) = names.split_once(' ').unwrap();
                    format!("metric/lifetime_{key}/rating: {}\n", value(metric).unwrap())
                })
                .concat(),
            "DICE" => format!("Accuracy: mean = {}, kidney = 0.9\n", value("DICE").unwrap()),
            _ => {
                let metrics = self.rules.accuracy_in(Some(self.scenario)).iter().map(|bound| {
                    let name = match bound.metric.as_str() {
                        "ROUGEL" => "rougeL".to_owned(),
                        "ROUGELSUM" => "rougeLsum".to_owned(),
                        name @ ("CLIP_SCORE" | "FID_SCORE") => name.to_owned(),
                        "gsm8k_accuracy" => "gsm8k".to_owned(),
                        "mbxp_accuracy" => "mbxp".to_owned(),
                        name => name.to_ascii_lowercase(),
                    };
                    format!("'{name}': {}", bound.reference)
                });
                format!("{{{}}}\n", metrics.collect::<Vec<_>>().join(", "))
            }
        }
    }

    fn synthetic_run(&self, mode: Mode, test: &str) -> SyntheticRun {
        let rules = self.rules;
        let seeds = match test {
            "TEST05" => self.round.test05_seeds(),
            _ => self.round.seeds(),
        };
        let performance = rules.performance_samples;
        let total = match (rules.dataset_samples_in(self.scenario), mode) {
            (Some(samples), Mode::AccuracyOnly) => samples,
            (samples, _) => samples.unwrap_or(50_000).max(performance),
        };
        let library = LibraryCounts { total, performance };
        let mut run = SyntheticRun::new(self.scenario.run(), mode, seeds.unwrap(), library);
        run.loadgen_version = format!("{}.0 @ 0123456789", self.round.name.trim_start_matches('v'));
        let settings = &mut run.settings;
        settings.min_query_count = match self.scenario.run() {
            Scenario::Offline => rules.offline_samples_per_query.unwrap_or(1),
            _ => 1,
        };
        settings.sample_concatenate_permutation = rules.equal_issue;
        settings.use_token_latencies = rules.token_latencies || !rules.token_limits.is_empty();
        (settings.server_ttft_latency, settings.server_tpot_latency) = (10_000_000_000, 10_000_000_000);
        settings.server_target_latency_ns = rules.server_latency_ns.unwrap_or(100_000_000);
        if let Some(audit) = self.round.audits.get(test) {
            let conf = Conf::parse("audit.config", &audit.config).unwrap();
            // LoadGen 6.0's reading of the conf; the conf of some audits of older rounds lacks settings, which are added below.
            settings.apply(&conf, ConfKind::Audit, "*").unwrap();
            settings.performance_issue_same |= test == "TEST04";
            (settings.qsl_rng_seed, settings.schedule_rng_seed) =
                (seeds.unwrap().qsl, seeds.unwrap().schedule);
            settings.sample_index_rng_seed = seeds.unwrap().sample_index;
        }
        let scenarios = ["SingleStream", "MultiStream", "Offline", "Server", "Interactive"];
        let scenario = scenarios.iter().position(|name| *name == self.scenario.as_str());
        let role = match (mode, test) {
            (Mode::AccuracyOnly, _) => 0,
            (_, "") => 1,
            (_, test) => 2 + u64::from(test.bytes().last().unwrap() - b'0'),
        };
        run.number = scenario.unwrap() as u64 * 12 + role;
        run
    }

    /// Formats the detail log. It also has the keys of other scenarios, which official checkers read when one scenario's run is submitted
    /// for another.
    fn detail(&self, run: &SyntheticRun, figures: &Figures) -> String {
        let mut text = run.detail_log(figures);
        if run.settings.mode == Mode::AccuracyOnly {
            return text;
        }
        let rate = match run.settings.scenario {
            Scenario::Server => figures.server_rates()[1],
            _ => figures.rate(),
        };
        for (key, value) in [
            ("result_qps_without_loadgen_overhead", json!(94.9392)),
            ("early_stopping_latency_ss", json!(10_561_798)),
            ("early_stopping_latency_ms", json!(10_561_798)),
            ("result_samples_per_second", json!(100.5)),
            ("result_tokens_per_second", json!(4020.25)),
            ("result_inferred_tokens_per_second", json!(69.0 * rate)),
            ("result_mean_query_latency_ns", json!(10_533_058)),
            ("result_99.00_percentile_per_query_latency_ns", json!(10_586_415)),
            ("result_scheduled_samples_per_sec", json!(98.75)),
            ("result_completed_samples_per_sec", json!(99.5)),
            ("result_completed_tokens_per_second", json!(3980.5)),
            ("result_inferred_completed_tokens_per_second", json!(69.0 * rate)),
            (
                "result_first_token_99.00_percentile_latency_ns",
                json!(400_000_000),
            ),
            (
                "result_time_per_output_token_99.00_percentile_ns",
                json!(14_000_000),
            ),
        ] {
            if !text.contains(&format!("\"key\": \"{key}\"")) {
                text += &log_line(key, &value.to_string(), 0.1);
            }
        }
        text
    }
}
