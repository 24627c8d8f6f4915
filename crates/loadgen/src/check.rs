//! Rejects runs that cannot start, would not end or do not fit into memory, before anything is loaded or issued. Both LoadGens use it;
//! each supplies its own estimate of memory.

use regatta_loadgen_conf::{MAX_RUN, TestSettings};
use regatta_types::{Mode, Scenario};

use crate::{
    effective::{EffectiveSettings, LibraryCounts, millis_to_seconds},
    generate::{LoadableSet, Pass, PlanError, QueryPlan, loadable_sets},
    load_gen::LoadgenError,
    memory,
    request::ResolvedSettings,
    rng::RngAbi,
};

/// The size of a series of queries, as input for a memory estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesSize {
    /// The scenario.
    pub scenario: Scenario,
    /// Number of generated queries.
    pub queries: u64,
    /// Number of queries that are issued at any speed of the system.
    pub least_queries: u64,
    /// Samples per query.
    pub samples_per_query: u64,
    /// Samples of all loadable sets, including MultiStream's padding.
    pub loaded: u64,
    /// Requested samples of a set, which may exceed the existing ones.
    pub set_size: u64,
    /// Whether responses may be logged.
    pub logs: bool,
    /// Whether token latencies are measured.
    pub tokens: bool,
    /// How long queries are issued beyond the least number, in seconds.
    pub seconds: f64,
}

impl SeriesSize {
    /// Returns the number of generated samples.
    #[must_use]
    pub const fn samples(&self) -> u64 {
        self.queries.saturating_mul(self.samples_per_query)
    }
}

/// Checks that series fit into memory and end, before they are generated.
#[derive(Debug, Clone, Copy)]
pub struct SeriesCheck {
    abi: RngAbi,
    /// The LoadGen's memory estimate for a series, in bytes.
    bytes: fn(&SeriesSize) -> u64,
}

impl SeriesCheck {
    /// Creates a check for a LoadGen that draws random numbers like `abi` and needs `bytes` of memory for a series.
    #[must_use]
    pub const fn new(abi: RngAbi, bytes: fn(&SeriesSize) -> u64) -> Self {
        Self { abi, bytes }
    }

    /// Checks a complete run.
    ///
    /// # Errors
    /// [`LoadgenError::Settings`] with the problem and its fix.
    pub fn run(&self, resolved: &ResolvedSettings, library: LibraryCounts) -> Result<(), LoadgenError> {
        let requested = &resolved.settings;
        let scenario = requested.scenario;
        let fail = |problem| LoadgenError::Settings { scenario, problem };
        requested
            .check(&resolved.sources)
            .map_err(|error| fail(error.to_string()))?;
        let (settings, _) = EffectiveSettings::new(requested, library);
        let passes: &[Pass] = match settings.mode {
            Mode::AccuracyOnly => &[Pass::Accuracy],
            Mode::PerformanceOnly | Mode::FindPeakPerformance => &[Pass::Performance],
            Mode::SubmissionRun => &[Pass::Accuracy, Pass::Performance],
        };
        let check = |&pass| -> Result<(), PlanError> {
            let sets = self.sets(&settings, library.total, pass)?;
            let used = if pass == Pass::Accuracy { sets.len() } else { 1 };
            sets[..used]
                .iter()
                .try_for_each(|set| self.plan(&settings, set, pass).map(drop))
        };
        passes.iter().try_for_each(check).map_err(|error| {
            fail(if error.is_about_size() {
                format!("{error}; requested: {}", sizes(requested))
            } else {
                error.to_string()
            })
        })
    }

    /// Returns the loadable sets of a pass.
    ///
    /// # Errors
    /// When there is none, or they do not fit into memory.
    pub fn sets(
        &self,
        settings: &EffectiveSettings,
        total: u64,
        pass: Pass,
    ) -> Result<Vec<LoadableSet>, PlanError> {
        let needed = match pass {
            Pass::Accuracy => settings.accuracy_sample_count,
            Pass::Performance => settings.performance_sample_count,
        };
        let count = total.min(needed);
        let sets = match settings.performance_sample_count {
            0 => 1,
            size => count.div_ceil(size),
        };
        let padding = match settings.scenario {
            Scenario::MultiStream => settings.samples_per_query.saturating_sub(1),
            _ => 0,
        };
        self.fits(&SeriesSize {
            scenario: settings.scenario,
            queries: 0,
            least_queries: 0,
            samples_per_query: settings.samples_per_query,
            loaded: count.saturating_add(sets.saturating_mul(padding)),
            set_size: settings.performance_sample_count,
            logs: false,
            tokens: false,
            seconds: 0.0,
        })?;
        loadable_sets(settings, total, needed, self.abi)
    }

    /// Returns the queries of a pass over a set.
    ///
    /// # Errors
    /// When no queries can be generated, they do not fit into memory, or the last of them is due after [`MAX_RUN`].
    pub fn plan<'a>(
        &self,
        settings: &'a EffectiveSettings,
        set: &'a LoadableSet,
        pass: Pass,
    ) -> Result<QueryPlan<'a>, PlanError> {
        let size = |queries, least_queries| SeriesSize {
            scenario: settings.scenario,
            queries,
            least_queries,
            samples_per_query: match (pass, settings.scenario) {
                (Pass::Accuracy, Scenario::Offline) => set.distinct as u64,
                _ => settings.samples_per_query,
            },
            loaded: set.samples.len() as u64,
            set_size: settings.performance_sample_count,
            logs: pass == Pass::Accuracy || settings.effective_accuracy_log_probability() > 0.0,
            tokens: settings.use_token_latencies,
            seconds: millis_to_seconds(settings.target_duration_ms),
        };
        let whole_set = pass == Pass::Accuracy || settings.performance_issue_unique;
        let least = if whole_set { 0 } else { settings.min_query_count };
        if settings.scenario == Scenario::Server && !whole_set {
            // Server's schedule is generated query by query, so the number of queries must be bounded first.
            let expected = settings.target_qps * millis_to_seconds(settings.target_duration_ms);
            self.fits(&size(least.max(to_u64(expected)), least))?;
        }
        let plan = QueryPlan::new(settings, set, pass, self.abi)?;
        self.fits(&size(plan.queries, least.min(plan.queries)))?;
        let seconds = plan.duration_ns as f64 / 1e9;
        if settings.scenario == Scenario::Server && seconds > MAX_RUN.as_secs_f64() {
            return Err(PlanError::TooLong {
                queries: plan.queries,
                rate: settings.target_qps,
                longest_days: MAX_RUN.as_secs() / 86_400,
            });
        }
        Ok(plan)
    }

    /// Checks that the series fits into three quarters of the free memory. The rest is for the system under test and the logs.
    fn fits(&self, size: &SeriesSize) -> Result<(), PlanError> {
        let needed = (self.bytes)(size);
        match memory::available() {
            Some(free) if needed > free / 4 * 3 => Err(PlanError::TooLarge {
                queries: size.queries,
                samples_per_query: size.samples_per_query,
                needed_mib: needed >> 20,
                free_mib: free >> 20,
            }),
            _ => Ok(()),
        }
    }
}

/// Formats the settings that determine the size of a run, by key.
fn sizes(requested: &TestSettings) -> String {
    let latency = |ns: f64| format!("target_latency = {:?} ms", ns / 1e6);
    let rate = |rate: f64| format!("target_qps = {rate:?}");
    let mut sizes_requested = vec![
        format!("min_query_count = {}", requested.min_query_count),
        format!("min_duration = {} ms", requested.min_duration_ms),
        match requested.scenario {
            Scenario::SingleStream => latency(requested.single_stream_expected_latency_ns),
            Scenario::MultiStream => latency(requested.multi_stream_expected_latency_ns),
            Scenario::Server => rate(requested.server_target_qps),
            Scenario::Offline => rate(requested.offline_expected_qps),
        },
    ];
    if requested.scenario == Scenario::MultiStream {
        let samples = requested.multi_stream_samples_per_query;
        sizes_requested.push(format!("samples_per_query = {samples}"));
    }
    for (key, count) in [
        (
            "performance_sample_count_override",
            requested.performance_sample_count_override,
        ),
        (
            "accuracy_sample_count_override",
            requested.accuracy_sample_count_override,
        ),
    ] {
        if count != 0 {
            sizes_requested.push(format!("{key} = {count}"));
        }
    }
    sizes_requested.join(", ")
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate; larger values are limited to the maximum"
)]
fn to_u64(value: f64) -> u64 {
    value as u64
}
