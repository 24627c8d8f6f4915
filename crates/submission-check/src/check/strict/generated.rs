//! Checks the queries that LoadGen generates from a run's settings and seeds: their number, duration and samples.

use std::{ops::RangeInclusive, sync::Arc};

use regatta_loadgen::{
    effective::EffectiveSettings,
    generate::{LoadableSet, Pass, QueryPlan},
    rng::RngAbi,
};
use regatta_types::{Mode, Scenario};

use super::{
    loaded_sets::Shuffle,
    logged_run::{FIX, LoggedRun, SIX_DIGITS},
    settings::Requested,
};
use crate::check::{finding::Findings, rules, run_log::ListEnds};

/// The number of Server arrivals up to which the schedule is regenerated. Above it, only the mean is checked, because LoadGen
/// draws arrival times one by one.
const MAX_ARRIVALS: f64 = 2e4;
/// The number of characters of a list that a finding quotes.
const SHOWN: usize = 60;
/// The largest library that a check shuffles. Libraries of edge benchmarks have up to 50,000 samples.
const MAX_LIBRARY: u64 = 1 << 17;
/// The allowed deviation of the number of arrivals from its mean, in standard deviations.
const DEVIATIONS: f64 = 7.0;
/// The allowed deviation of a schedule's end from its mean, in arrivals.
const FEW_ARRIVALS: f64 = 50.0;
/// Half a nanosecond, in seconds. LoadGen rounds the time between two arrivals down to a nanosecond, which lowers the mean by
/// this.
const ROUNDED_OFF: f64 = 0.5e-9;

/// Checks the queries of a run whose effective settings are those that LoadGen derives.
pub(super) fn check(run: &LoggedRun<'_>, requested: &Requested, findings: &mut Findings) {
    let (mut settings, _) = EffectiveSettings::new(&requested.settings, requested.library);
    // LoadGen computed these values from rates with more digits than it logs.
    if let Some(samples) = run.count("effective_samples_per_query") {
        settings.samples_per_query = samples;
    }
    if let Some(queries) = run.count("effective_min_query_count") {
        settings.min_query_count = queries;
    }
    let padding = match settings.scenario {
        Scenario::MultiStream => settings.samples_per_query,
        _ => 0,
    };
    if requested.library.total.saturating_add(padding) > MAX_LIBRARY {
        return;
    }
    let Some(set) = first_set(run, requested, &settings, findings) else {
        return;
    };
    if settings.scenario == Scenario::Server && settings.mode != Mode::AccuracyOnly {
        let arrivals = settings.target_qps * settings.target_duration_ms as f64 / 1e3;
        if arrivals + settings.min_query_count as f64 > MAX_ARRIVALS {
            return arrivals_on_average(run, &settings, findings);
        }
    }
    counts(run, requested, &settings, &set, findings);
}

/// Checks that the number of arrivals fits the duration, within statistical deviation.
fn arrivals_on_average(run: &LoggedRun<'_>, settings: &EffectiveSettings, findings: &mut Findings) {
    const QUERIES: &str = "generated_query_count";
    const DURATION: &str = "generated_query_duration";
    let (Some(queries), Some(duration)) = (run.number(QUERIES), run.number(DURATION)) else {
        return;
    };
    let between = 1.0 / settings.target_qps - ROUNDED_OFF;
    let expected = queries * between * 1e9;
    let slack = expected * (SIX_DIGITS + DEVIATIONS / queries.sqrt());
    let long_enough = duration / 1e6 >= settings.target_duration_ms as f64;
    if (duration - expected).abs() > slack || !long_enough || queries < settings.min_query_count as f64 {
        let text = format!(
            "{QUERIES} is {queries} and {DURATION} {duration}: {} queries/s for {} ms do not make them",
            settings.target_qps, settings.target_duration_ms
        );
        run.error(findings, rules::SETTINGS, QUERIES, text);
    }
}

/// Returns the set of samples that was loaded first, as seed and sizes determine it.
///
/// Adds a warning if the log lists other samples, and then returns the set of the first shuffle implementation. Returns `None` if
/// the log lists no set.
fn first_set(
    run: &LoggedRun<'_>,
    requested: &Requested,
    settings: &EffectiveSettings,
    findings: &mut Findings,
) -> Option<Arc<LoadableSet>> {
    let logged = run.log.loaded_set.as_ref()?;
    let total = requested.library.total;
    // Since v6.0, LoadGen shuffles only as many samples as it needs; earlier versions shuffle the whole library.
    let count = match (run.count("effective_accuracy_sample_count"), settings.mode) {
        (None, _) => total,
        (Some(samples), Mode::AccuracyOnly) => samples,
        (Some(_), _) => settings.performance_sample_count,
    };
    let mut first = None;
    for library in [
        Shuffle::Gnu(RngAbi::Libstdcxx11),
        Shuffle::Gnu(RngAbi::Libstdcxx10),
        Shuffle::Llvm,
    ] {
        let set = run.case.context.sets.first(settings, total, count, library)?;
        if is_written(&set.samples, logged) {
            return Some(set);
        }
        first.get_or_insert(set);
    }
    let head: String = logged.head.chars().take(SHOWN).collect();
    let text = format!(
        "the loaded samples {head} ... are not those that the seed {} draws from {total}",
        settings.qsl_rng_seed
    );
    let place = (run.path, Some(logged.line));
    findings.warning(rules::SETTINGS, place, text, FIX);
    first
}

/// Returns whether `samples` is the list whose two ends the log has.
fn is_written(samples: &[usize], logged: &ListEnds) -> bool {
    let (head, tail) = (logged.head.as_str(), logged.tail.as_str());
    // One sample per logged character is at least as long as the kept text of either end.
    let enough = samples.len().min(head.len());
    let text = |samples: &[usize]| {
        let words: Vec<_> = samples.iter().map(ToString::to_string).collect();
        words.join(",")
    };
    let (first, last) = (text(&samples[..enough]), text(&samples[samples.len() - enough..]));
    let (first, last) = match enough == samples.len() {
        true => (format!("[{first}]"), format!("[{last}]")),
        false => (format!("[{first},"), format!(",{last}]")),
    };
    first.starts_with(head) && last.ends_with(tail)
}

/// Counts of the generated queries, by the names in LoadGen's log.
#[derive(Debug, Clone)]
struct Counts {
    /// The possible numbers of queries: a range, because the log gives rates with six digits.
    queries: RangeInclusive<f64>,
    samples: u64,
    /// The mean time from one query to the next, in nanoseconds.
    between_ns: f64,
    /// The number of queries at exactly the logged rate.
    exact_queries: f64,
    /// The end of the last query at exactly the logged rate, in nanoseconds.
    exact_end_ns: f64,
}

impl Counts {
    fn has(&self, queries: f64) -> bool {
        self.queries.contains(&queries)
    }
}

/// Checks the counts that LoadGen logs for the generated queries.
fn counts(
    run: &LoggedRun<'_>,
    requested: &Requested,
    settings: &EffectiveSettings,
    set: &LoadableSet,
    findings: &mut Findings,
) {
    let permutations = requested.permutation(run).into_iter();
    let plans: Vec<_> = permutations
        .flat_map(|permutation| planned(settings, set, permutation, requested.permutation_known))
        .collect();
    let keys = [
        "generated_query_count",
        "generated_samples_per_query",
        "generated_query_duration",
    ];
    let [Some(queries), Some(samples), Some(duration)] = keys.map(|key| run.number(key)) else {
        return;
    };
    let Some(plan) = plans.iter().find(|plan| plan.has(queries)).or(plans.first()) else {
        return;
    };
    if !plan.has(queries) {
        let text = format!(
            "{} is {queries}, the settings make {}",
            keys[0],
            plan.queries.start()
        );
        run.error(findings, rules::SETTINGS, keys[0], text);
    }
    // LoadGen up to v4.1 logs the number before it is padded to whole sets.
    let filled_up = [settings.samples_per_query, plan.samples];
    if !filled_up.iter().any(|expected| samples == *expected as f64) {
        let text = format!("{} is {samples}, the settings make {}", keys[1], plan.samples);
        run.error(findings, rules::SETTINGS, keys[1], text);
    }
    // The last arrivals in Server can be closer together than the mean.
    let (expected, few) = match settings.scenario {
        _ if queries == plan.exact_queries => (plan.exact_end_ns, queries),
        Scenario::Server => (plan.between_ns * queries, plan.between_ns * FEW_ARRIVALS),
        _ => (plan.between_ns * queries, queries),
    };
    if (duration - expected).abs() > expected * SIX_DIGITS + few {
        let text = format!("{} is {duration}, the settings make {expected:.0}", keys[2]);
        run.error(findings, rules::SETTINGS, keys[2], text);
    }
}

/// Returns the counts that LoadGen versions may generate from the settings. They differ where whole permutations are issued.
fn planned(settings: &EffectiveSettings, set: &LoadableSet, permutation: bool, recent: bool) -> Vec<Counts> {
    let pass = match settings.mode {
        Mode::AccuracyOnly => Pass::Accuracy,
        _ => Pass::Performance,
    };
    let plan = |factor: f64| {
        let mut settings = settings.clone();
        settings.sample_concatenate_permutation = permutation;
        settings.target_qps *= factor;
        let plan = QueryPlan::new(&settings, set, pass, RngAbi::default()).ok()?;
        Some((
            plan.queries as f64,
            plan.samples_per_query as u64,
            plan.duration_ns as f64,
        ))
    };
    let ends = plan(1.0 - SIX_DIGITS).zip(plan(1.0 + SIX_DIGITS)).zip(plan(1.0));
    let Some(((fewest, most), (queries, samples, duration))) = ends else {
        return Vec::new();
    };
    let loaded = set.samples.len() as f64;
    // LoadGen before v5.0 pads differently, by at most one set.
    let step = if permutation && !recent { loaded } else { 0.0 };
    let counts = |(fewest, most): (f64, f64)| Counts {
        queries: fewest - step..=most + step,
        samples,
        between_ns: duration / queries,
        exact_queries: queries,
        exact_end_ns: duration,
    };
    // LoadGen v4.0 and v4.1 generate the Offline query once per sample, and issue it once.
    match permutation && settings.scenario == Scenario::Offline {
        true => vec![counts((queries, queries)), counts((loaded, loaded))],
        false => vec![counts((fewest.0, most.0))],
    }
}
