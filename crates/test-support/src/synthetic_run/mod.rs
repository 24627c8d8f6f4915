//! Synthetic LoadGen runs: a detail log and a summary with every record that LoadGen writes, consistent with each other. Every query takes
//! the same time, so every figure is known. This module measures nothing and runs no LoadGen.

mod detail_log;
mod summary;

use regatta_catalogue::round::Seeds;
use regatta_loadgen::{
    effective::{EffectiveSettings, LibraryCounts},
    generate::{LoadableSet, Pass, QueryPlan, loadable_sets},
    results::early_stopping::{fewest_queries, slow_queries},
    rng::RngAbi,
};
use regatta_loadgen_conf::TestSettings;
use regatta_mllog::format::fixed;
use regatta_types::{Mode, Scenario};
use serde_json::{Value, json};

/// Smallest library size for which the sample order is not generated.
const TOO_MANY: u64 = 131_073;

/// A synthetic run, from which its logs are generated.
#[derive(Debug, Clone)]
pub struct SyntheticRun {
    /// The requested settings.
    pub settings: TestSettings,
    /// The samples of the query sample library.
    pub library: LibraryCounts,
    /// LoadGen's version and revision.
    pub loadgen_version: String,
    /// The name of the system under test.
    pub sut: String,
    /// The run's number. Runs with different numbers start in different seconds and have different durations.
    pub number: u64,
    /// Latency of each sample.
    pub latency_ns: u64,
    /// Time to the first token of each sample.
    pub first_token_ns: u64,
    /// Time per output token after the first.
    pub later_token_ns: u64,
    /// Tokens of each sample.
    pub tokens: u64,
}

impl SyntheticRun {
    /// Creates a run of ten minutes over a whole library.
    #[must_use]
    pub fn new(scenario: Scenario, mode: Mode, seeds: Seeds, library: LibraryCounts) -> Self {
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
            loadgen_version: "6.0.17 @ 0123456789".to_owned(),
            sut: "board".to_owned(),
            number: 0,
            latency_ns: 10_000_000,
            first_token_ns: 400_000_000,
            later_token_ns: 14_000_000,
            tokens: 40,
        }
    }

    /// Computes the run's queries and figures.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let (effective, _) = EffectiveSettings::new(&self.settings, self.library);
        let (pass, count) = match self.settings.mode {
            Mode::AccuracyOnly => (Pass::Accuracy, effective.accuracy_sample_count),
            _ => (Pass::Performance, effective.performance_sample_count),
        };
        let set = match self.library.total.min(count) {
            // Shuffling takes long in unoptimised builds, and no check reads the order of this many samples.
            many @ TOO_MANY.. => {
                let distinct = usize::try_from(many.min(effective.performance_sample_count)).unwrap();
                let samples = (0..distinct).collect();
                LoadableSet { samples, distinct }
            }
            _ => {
                let total = self.library.total;
                let sets = loadable_sets(&effective, total, count, RngAbi::default()).unwrap();
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

/// The figures in a run's logs.
#[derive(Debug)]
pub struct Figures {
    pub effective: EffectiveSettings,
    set: LoadableSet,
    generated: (u64, u64, i64),
    /// Queries issued.
    pub queries: u64,
    /// Samples issued.
    pub samples: u64,
    /// Latency of every query, ns.
    pub latency: u64,
    /// When Server's last query was due.
    due_ns: u64,
    duration_ns: u64,
}

impl Figures {
    fn seconds(&self) -> f64 {
        self.duration_ns as f64 / 1e9
    }

    /// Returns the samples per second of an Offline run.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.samples as f64 / (self.latency as f64 / 1e9)
    }

    /// Returns the samples per second of a Server run: scheduled and completed.
    #[must_use]
    pub fn server_rates(&self) -> [f64; 2] {
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

/// Formats a record of a detail log; `value` is JSON.
#[must_use]
pub fn log_line(key: &str, value: &str, time_ms: f64) -> String {
    let metadata = "{\"is_error\": false, \"is_warning\": false, \"file\": \"x.cc\", \"line_no\": 1, \"pid\": 1, \"tid\": 1}";
    format!(
        ":::MLLOG {{\"key\": \"{key}\", \"value\": {value}, \"time_ms\": {time_ms:.6}, \"namespace\": \"mlperf::logging\", \
         \"event_type\": \"POINT_IN_TIME\", \"metadata\": {metadata}}}\n"
    )
}

/// Lists the settings that [`TestSettings`] and [`EffectiveSettings`] have in common, in LoadGen's order.
macro_rules! common_settings {
    ($settings:expr) => {
        common_settings!($settings => min_duration_ms max_duration_ms min_query_count max_query_count qsl_rng_seed
            sample_index_rng_seed schedule_rng_seed accuracy_log_rng_seed accuracy_log_probability
            accuracy_log_sampling_target print_timestamps performance_issue_unique performance_issue_same
            performance_issue_same_index)
    };
    ($settings:expr => $($field:ident)*) => {
        [$((stringify!($field), serde_json::json!($settings.$field))),*]
    };
}
use common_settings;

/// Lists the effective settings that both the summary and the detail log state, in the summary's order.
fn parameters(s: &EffectiveSettings) -> Vec<(&'static str, Value)> {
    let mut all = vec![
        ("samples_per_query", json!(s.samples_per_query)),
        ("target_qps", json!(s.target_qps)),
        ("target_latency_ns", json!(s.target_latency_ns)),
        ("max_async_queries", json!(s.max_async_queries)),
    ];
    all.extend(common_settings!(s));
    all.push(("performance_sample_count", json!(s.performance_sample_count)));
    all
}
