//! A LoadGen run that nobody ran: its detail log and summary with every record that LoadGen writes, all of them of one run.
//! Every query takes as long as the others, so that each figure is known.

use regatta_conf::TestSettings;
use regatta_config::round::Seeds;
use regatta_loadgen::{
    effective::{EffectiveSettings, LibraryCounts},
    generate::{LoadableSet, Pass, QueryPlan, loadable_sets},
    results::early_stopping::{fewest_queries, slow_queries},
    rng::RngAbi,
};
use regatta_mllog::format::{detail, fixed};
use regatta_types::{Mode, Scenario};
use serde_json::{Value, json};

/// Percentiles as LoadGen names them.
const PERCENTILES: [&str; 6] = ["50.00", "90.00", "95.00", "97.00", "99.00", "99.90"];

/// Samples of which the order is not made up.
const TOO_MANY: u64 = 131_073;

/// What is to be known of the run; the rest follows.
#[derive(Debug, Clone)]
pub(crate) struct MadeUpRun {
    pub(crate) settings: TestSettings,
    pub(crate) library: LibraryCounts,
    pub(crate) sut: String,
    /// Which run it is: no two begin in the same second or take the same time.
    pub(crate) number: u64,
    /// Of a sample: its latency, that of its first token and the time for each later one.
    pub(crate) latency_ns: u64,
    pub(crate) first_token_ns: u64,
    pub(crate) later_token_ns: u64,
    /// Tokens of each sample.
    pub(crate) tokens: u64,
}

impl MadeUpRun {
    /// Of ten minutes, over a whole library.
    pub(crate) fn new(scenario: Scenario, mode: Mode, seeds: Seeds, library: LibraryCounts) -> Self {
        let mut settings = TestSettings::new(scenario, mode);
        settings.min_duration_ms = 600_000;
        settings.min_query_count = 1;
        settings.qsl_rng_seed = seeds.qsl;
        settings.sample_index_rng_seed = seeds.sample_index;
        settings.schedule_rng_seed = seeds.schedule;
        settings.single_stream_expected_latency_ns = 10_000_000.0;
        settings.multi_stream_expected_latency_ns = 10_000_000.0;
        settings.server_target_qps = 20.0;
        settings.offline_expected_qps = 100.0;
        Self {
            settings,
            library,
            sut: "board".to_owned(),
            number: 0,
            latency_ns: 10_000_000,
            first_token_ns: 400_000_000,
            later_token_ns: 14_000_000,
            tokens: 40,
        }
    }

    /// What comes of it.
    pub(crate) fn figures(&self) -> Figures {
        let (effective, _) = EffectiveSettings::new(&self.settings, self.library);
        let (pass, wanted) = match self.settings.mode {
            Mode::AccuracyOnly => (Pass::Accuracy, effective.accuracy_sample_count),
            _ => (Pass::Performance, effective.performance_sample_count),
        };
        let set = match self.library.total.min(wanted) {
            // Shuffling takes long without optimisation, and no check looks at the order of so many.
            many @ TOO_MANY.. => {
                let distinct = usize::try_from(many.min(effective.performance_sample_count)).unwrap();
                let samples = (0..distinct).collect();
                LoadableSet { samples, distinct }
            }
            _ => {
                let total = self.library.total;
                let sets = loadable_sets(&effective, total, wanted, RngAbi::default()).unwrap();
                sets.into_iter().next().unwrap()
            }
        };
        let plan = QueryPlan::new(&effective, &set, pass, RngAbi::default()).unwrap();
        let (generated, samples_per_query, generated_ns) =
            (plan.queries, plan.samples_per_query, plan.duration_ns);
        let latency = self.latency_ns + self.number * 1000;
        let mut source = plan.source();
        let due = match effective.scenario {
            Scenario::Server if pass == Pass::Performance => {
                let last = std::iter::from_fn(|| source.next_query()).last();
                last.unwrap().1.unsigned_abs()
            }
            _ => 0,
        };
        let needed = 600_000_000_000_u64.div_ceil(latency) + 1;
        let (queries, latency) = match effective.scenario {
            Scenario::Offline => (1, samples_per_query as u64 * 10_000_000 + self.number * 1_000_000),
            Scenario::Server => (generated, latency),
            _ => (needed.max(effective.min_query_count), latency),
        };
        let duration_ns = match effective.scenario {
            Scenario::Offline => latency,
            Scenario::Server => due + latency,
            _ => queries * latency,
        };
        Figures {
            effective,
            set,
            generated: (generated, samples_per_query as u64, generated_ns),
            queries,
            samples: queries * samples_per_query as u64,
            latency,
            due_ns: due,
            duration_ns,
        }
    }
}

/// The figures of a run.
pub(crate) struct Figures {
    pub(crate) effective: EffectiveSettings,
    set: LoadableSet,
    generated: (u64, u64, i64),
    pub(crate) queries: u64,
    pub(crate) samples: u64,
    /// Of every query.
    pub(crate) latency: u64,
    /// When Server's last query was due.
    due_ns: u64,
    duration_ns: u64,
}

impl Figures {
    fn seconds(&self) -> f64 {
        self.duration_ns as f64 / 1e9
    }

    /// Offline's rate.
    pub(crate) fn rate(&self) -> f64 {
        self.samples as f64 / (self.latency as f64 / 1e9)
    }

    /// Server's rates, as scheduled and as completed.
    pub(crate) fn server_rates(&self) -> [f64; 2] {
        [self.due_ns, self.duration_ns].map(|time| (self.queries - 1) as f64 / (time as f64 / 1e9))
    }

    fn stopping(&self, latency: u64) -> String {
        let share = self.effective.target_latency_percentile;
        let estimate = |share: f64| {
            format!(
                " * Early stopping {}th percentile estimate: {latency}",
                fixed(share * 100.0, 1)
            )
        };
        match self.effective.scenario {
            Scenario::Offline => String::new(),
            Scenario::Server => " * Run successful.".to_owned(),
            scenario => {
                let slow = slow_queries(self.queries, share).unwrap();
                let mut text = format!(
                    " * Processed at least {} queries ({}).\n * Would discard {} highest latency queries.\n{}",
                    fewest_queries(share),
                    self.queries,
                    slow - 1,
                    estimate(share)
                );
                if scenario == Scenario::SingleStream {
                    text += &format!("\n{}", estimate(0.99));
                }
                text
            }
        }
    }
}

/// The detail log.
pub(crate) fn detail_log(run: &MadeUpRun, figures: &Figures) -> String {
    let mut log = Log::default();
    head(run, figures, &mut log);
    log.time_ms = figures.seconds() * 1e3 + 5.25 + run.number as f64 / 64.0;
    let begin = 100 + run.number * 10_000_000;
    let end = begin + figures.duration_ns / 1_000_000;
    log.put("power_begin", json!(stamp(begin)));
    log.put("power_end", json!(stamp(end)));
    if run.settings.mode == Mode::PerformanceOnly {
        results(run, figures, &mut log);
    }
    log.text
}

#[derive(Default)]
struct Log {
    text: String,
    time_ms: f64,
}

impl Log {
    fn put(&mut self, key: &str, value: Value) {
        self.raw(key, &value.to_string());
    }

    /// A number as LoadGen writes it.
    fn float(&mut self, key: &str, value: f64) {
        self.raw(key, &detail(value));
    }

    fn raw(&mut self, key: &str, value: &str) {
        self.text += &line(key, value, self.time_ms);
    }
}

/// A record of a detail log.
pub(crate) fn line(key: &str, value: &str, time_ms: f64) -> String {
    let metadata = "{\"is_error\": false, \"is_warning\": false, \"file\": \"x.cc\", \"line_no\": 1, \"pid\": 1, \"tid\": 1}";
    format!(
        ":::MLLOG {{\"key\": \"{key}\", \"value\": {value}, \"time_ms\": {time_ms:.6}, \"namespace\": \"mlperf::logging\", \
         \"event_type\": \"POINT_IN_TIME\", \"metadata\": {metadata}}}\n"
    )
}

/// `01-31-2026 16:33:56.517`, of a number of milliseconds after the year's beginning.
fn stamp(ms: u64) -> String {
    let (day, hour, minute) = (ms / 86_400_000 + 1, ms / 3_600_000 % 24, ms / 60_000 % 60);
    let (second, ms) = (ms / 1000 % 60, ms % 1000);
    assert!(day <= 31, "the runs are of January");
    format!("01-{day:02}-2026 {hour:02}:{minute:02}:{second:02}.{ms:03}")
}

fn head(run: &MadeUpRun, figures: &Figures, log: &mut Log) {
    log.put("loadgen_version", json!("6.0.17 @ 0123456789"));
    for key in [
        "build_date_local",
        "build_date_utc",
        "git_commit_date",
        "git_log_message",
        "git_status_message",
    ] {
        log.put(&format!("loadgen_{key}"), json!("NA"));
    }
    let begin = stamp(run.number * 10_000_000);
    let (date, time) = begin.split_once(' ').unwrap();
    let (month_day, year) = date.rsplit_once('-').unwrap();
    let time = time.split_once('.').unwrap().0;
    log.put("test_datetime", json!(format!("{year}-{month_day}T{time}Z")));
    log.put("sut_name", json!(run.sut));
    log.put("qsl_name", json!("samples"));
    log.put("qsl_reported_total_count", json!(run.library.total));
    log.put("qsl_reported_performance_count", json!(run.library.performance));
    requested(&run.settings, log);
    effective(&figures.effective, log);
    let listed = match run.library.total {
        TOO_MANY.. => 8,
        _ => figures.set.samples.len(),
    };
    let list: Vec<_> = figures
        .set
        .samples
        .iter()
        .take(listed)
        .map(ToString::to_string)
        .collect();
    log.raw("loaded_qsl_set", &format!("[{}]", list.join(",")));
    let (queries, samples, duration) = figures.generated;
    log.put("generated_query_count", json!(queries));
    log.put("generated_samples_per_query", json!(samples));
    log.put("generated_query_duration", json!(duration));
}

fn requested(s: &TestSettings, log: &mut Log) {
    log.put("requested_scenario", json!(s.scenario.as_str()));
    log.put("requested_test_mode", json!(s.mode.as_str()));
    match s.scenario {
        Scenario::SingleStream => {
            log.float(
                "requested_single_stream_expected_latency_ns",
                s.single_stream_expected_latency_ns,
            );
            let key = "requested_single_stream_target_latency_percentile";
            log.float(key, s.single_stream_target_latency_percentile);
        }
        Scenario::MultiStream => {
            log.float(
                "requested_multi_stream_expected_latency_ns",
                s.multi_stream_expected_latency_ns,
            );
            let key = "requested_multi_stream_target_latency_percentile";
            log.float(key, s.multi_stream_target_latency_percentile);
            log.put(
                "requested_multi_stream_samples_per_query",
                json!(s.multi_stream_samples_per_query),
            );
        }
        Scenario::Server => {
            log.float("requested_server_target_qps", s.server_target_qps);
            log.put(
                "requested_server_target_latency_ns",
                json!(s.server_target_latency_ns),
            );
            log.float(
                "requested_server_target_latency_percentile",
                s.server_target_latency_percentile,
            );
            log.put(
                "requested_server_max_async_queries",
                json!(s.server_max_async_queries),
            );
        }
        Scenario::Offline => log.float("requested_offline_expected_qps", s.offline_expected_qps),
    }
    for (key, value) in [
        ("min_duration_ms", json!(s.min_duration_ms)),
        ("max_duration_ms", json!(s.max_duration_ms)),
        ("min_query_count", json!(s.min_query_count)),
        ("max_query_count", json!(s.max_query_count)),
        ("qsl_rng_seed", json!(s.qsl_rng_seed)),
        ("sample_index_rng_seed", json!(s.sample_index_rng_seed)),
        ("schedule_rng_seed", json!(s.schedule_rng_seed)),
        ("accuracy_log_rng_seed", json!(s.accuracy_log_rng_seed)),
        ("accuracy_log_probability", json!(s.accuracy_log_probability)),
        (
            "accuracy_log_sampling_target",
            json!(s.accuracy_log_sampling_target),
        ),
        ("print_timestamps", json!(s.print_timestamps)),
        ("performance_issue_unique", json!(s.performance_issue_unique)),
        ("performance_issue_same", json!(s.performance_issue_same)),
        (
            "performance_issue_same_index",
            json!(s.performance_issue_same_index),
        ),
        (
            "performance_sample_count_override",
            json!(s.performance_sample_count_override),
        ),
        (
            "accuracy_sample_count_override",
            json!(s.accuracy_sample_count_override),
        ),
        (
            "sample_concatenate_permutation",
            json!(s.sample_concatenate_permutation),
        ),
    ] {
        log.put(&format!("requested_{key}"), value);
    }
    if s.use_token_latencies {
        log.put("requested_use_token_latencies", json!(true));
        if s.scenario != Scenario::Offline {
            log.put("requested_server_ttft_latency", json!(s.server_ttft_latency));
            log.put("requested_server_tpot_latency", json!(s.server_tpot_latency));
        }
    }
}

fn effective(s: &EffectiveSettings, log: &mut Log) {
    log.put("effective_scenario", json!(s.scenario.as_str()));
    log.put("effective_test_mode", json!(s.mode.as_str()));
    log.float("effective_target_qps", s.target_qps);
    log.float("effective_target_latency_percentile", s.target_latency_percentile);
    for (key, value) in parameters(s) {
        if key != "target_qps" {
            log.put(
                &format!("effective_{}", key.replace(" (", "_").replace(')', "")),
                value,
            );
        }
    }
    log.put("effective_target_duration_ms", json!(s.target_duration_ms));
    log.put("effective_accuracy_sample_count", json!(s.accuracy_sample_count));
    log.put("effective_min_sample_count", json!(s.min_sample_count));
    log.put(
        "effective_sample_concatenate_permutation",
        json!(s.sample_concatenate_permutation),
    );
}

/// The settings that the summary has, too, by its names.
fn parameters(s: &EffectiveSettings) -> Vec<(&'static str, Value)> {
    vec![
        ("samples_per_query", json!(s.samples_per_query)),
        ("target_qps", json!(s.target_qps)),
        ("target_latency (ns)", json!(s.target_latency_ns)),
        ("max_async_queries", json!(s.max_async_queries)),
        ("min_duration (ms)", json!(s.min_duration_ms)),
        ("max_duration (ms)", json!(s.max_duration_ms)),
        ("min_query_count", json!(s.min_query_count)),
        ("max_query_count", json!(s.max_query_count)),
        ("qsl_rng_seed", json!(s.qsl_rng_seed)),
        ("sample_index_rng_seed", json!(s.sample_index_rng_seed)),
        ("schedule_rng_seed", json!(s.schedule_rng_seed)),
        ("accuracy_log_rng_seed", json!(s.accuracy_log_rng_seed)),
        ("accuracy_log_probability", json!(s.accuracy_log_probability)),
        (
            "accuracy_log_sampling_target",
            json!(s.accuracy_log_sampling_target),
        ),
        ("print_timestamps", json!(s.print_timestamps)),
        ("performance_issue_unique", json!(s.performance_issue_unique)),
        ("performance_issue_same", json!(s.performance_issue_same)),
        (
            "performance_issue_same_index",
            json!(s.performance_issue_same_index),
        ),
        ("performance_sample_count", json!(s.performance_sample_count)),
    ]
}

fn results(run: &MadeUpRun, figures: &Figures, log: &mut Log) {
    log.put("result_validity", json!("VALID"));
    let scenario = run.settings.scenario;
    if scenario == Scenario::Server {
        log.put("result_perf_constraints_met", json!(true));
        log.put("result_overlatency_query_count", json!(0));
    }
    for key in [
        "result_min_duration_met",
        "result_min_queries_met",
        "early_stopping_met",
    ] {
        log.put(key, json!(true));
    }
    let tokens = run.settings.use_token_latencies;
    let flat = |text: String| json!(text.replace('\n', " "));
    match tokens {
        true => {
            log.put(
                "early_stopping_ttft_result",
                flat(figures.stopping(run.first_token_ns)),
            );
            log.put(
                "early_stopping_tpot_result",
                flat(figures.stopping(run.later_token_ns)),
            );
        }
        false => log.put("early_stopping_result", flat(figures.stopping(figures.latency))),
    }
    log.put("result_query_count", json!(figures.queries));
    let estimate = if tokens {
        run.first_token_ns
    } else {
        figures.latency
    };
    match scenario {
        Scenario::SingleStream => {
            let rate = 1e9 / figures.latency as f64;
            log.float("result_qps_with_loadgen_overhead", rate);
            log.float("result_qps_without_loadgen_overhead", rate);
            log.put("early_stopping_latency_ss", json!(estimate));
            log.put("early_stopping_latency_ms", json!(estimate));
        }
        Scenario::MultiStream => {
            for which in ["min", "max", "mean"] {
                log.put(
                    &format!("result_{which}_query_latency_ns"),
                    json!(figures.latency),
                );
            }
            for share in PERCENTILES {
                log.put(
                    &format!("result_{share}_percentile_per_query_latency_ns"),
                    json!(figures.latency),
                );
            }
            log.put("early_stopping_latency_ms", json!(figures.latency));
        }
        Scenario::Server => {
            let [scheduled, completed] = figures.server_rates();
            log.float("result_scheduled_samples_per_sec", scheduled);
            log.float("result_completed_samples_per_sec", completed);
        }
        Scenario::Offline => log.float("result_samples_per_second", figures.rate()),
    }
    for which in ["min", "max", "mean"] {
        log.put(&format!("result_{which}_latency_ns"), json!(figures.latency));
    }
    for share in PERCENTILES {
        log.put(
            &format!("result_{share}_percentile_latency_ns"),
            json!(figures.latency),
        );
    }
    if tokens {
        token_results(run, figures, log);
    }
    log.put("num_errors", json!(0));
}

fn token_results(run: &MadeUpRun, figures: &Figures, log: &mut Log) {
    let tokens = (run.tokens * figures.samples) as f64;
    if run.settings.scenario == Scenario::Offline {
        return log.float("result_tokens_per_second", tokens / figures.seconds());
    }
    for which in ["min", "max", "mean"] {
        log.put(
            &format!("result_first_token_{which}_latency_ns"),
            json!(run.first_token_ns),
        );
        log.put(
            &format!("result_time_to_output_token_{which}"),
            json!(run.later_token_ns),
        );
    }
    for share in PERCENTILES {
        log.put(
            &format!("result_first_token_{share}_percentile_latency_ns"),
            json!(run.first_token_ns),
        );
        log.put(
            &format!("result_time_per_output_token_{share}_percentile_ns"),
            json!(run.later_token_ns),
        );
    }
    log.float(
        "result_token_throughput",
        tokens / (figures.latency * figures.samples) as f64,
    );
    log.float("result_completed_tokens_per_second", tokens / figures.seconds());
}

/// The summary of the run.
pub(crate) fn summary(run: &MadeUpRun, figures: &Figures) -> String {
    if run.settings.mode != Mode::PerformanceOnly {
        return "\nNo warnings encountered during test.\n\nNo errors encountered during test.\n".to_owned();
    }
    let bar = "=".repeat(48);
    let scenario = run.settings.scenario;
    let latency = figures.latency;
    let share = fixed(figures.effective.target_latency_percentile * 100.0, 1);
    let metric = match scenario {
        Scenario::SingleStream | Scenario::MultiStream => {
            format!("{share}th percentile latency (ns) : {latency}")
        }
        Scenario::Server => format!(
            "Completed samples per second    : {}",
            fixed(figures.server_rates()[1], 2)
        ),
        Scenario::Offline => format!("Samples per second: {}", detail(figures.rate())),
    };
    let mut text = format!(
        "{bar}\nMLPerf Results Summary\n{bar}\nSUT name : {}\nScenario : {scenario}\nMode     : PerformanceOnly\n{metric}\n\
         Result is : VALID\n",
        run.sut
    );
    if scenario == Scenario::Server {
        text += "  Performance constraints satisfied : Yes\n";
    }
    text +=
        "  Min duration satisfied : Yes\n  Min queries satisfied : Yes\n  Early stopping satisfied: Yes\n";
    if scenario != Scenario::Offline && !run.settings.use_token_latencies {
        text += &format!("Early Stopping Result:\n{}\n", figures.stopping(latency));
    }
    text += &format!("\n{bar}\nAdditional Stats\n{bar}\n");
    for (label, value) in [("Min", latency), ("Max", latency), ("Mean", latency)] {
        text += &format!("{label} latency (ns)                : {value}\n");
    }
    for share in PERCENTILES {
        text += &format!("{share} percentile latency (ns)   : {latency}\n");
    }
    text += &format!("\n{bar}\nTest Parameters Used\n{bar}\n");
    for (label, value) in parameters(&figures.effective) {
        let value = match value {
            Value::Bool(flag) => u8::from(flag).to_string(),
            value => value.to_string(),
        };
        text += &format!("{label} : {value}\n");
    }
    text + "\nNo warnings encountered during test.\n\nNo errors encountered during test.\n"
}
