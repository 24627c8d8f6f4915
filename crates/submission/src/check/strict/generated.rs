//! The queries that LoadGen generates of a run's settings and seeds: how many, for how long, and of which samples.

use std::sync::Arc;

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

/// Server's arrival times are drawn one after the other; of more of them only the mean is judged.
const MOST_ARRIVALS: f64 = 2e4;
/// Characters of a list that a finding quotes.
const SHOWN: usize = 60;
/// Larger libraries are not shuffled for a check; those of edge benchmarks have up to 50,000 samples.
const LARGEST_LIBRARY: u64 = 1 << 17;
/// How far a number of arrivals may lie from its mean, in standard deviations.
const DEVIATIONS: f64 = 7.0;
/// Arrivals by which the end of a schedule may lie off its mean.
const FEW_ARRIVALS: f64 = 50.0;
/// LoadGen rounds the time between two arrivals down to a nanosecond, which takes half of one from the mean.
const ROUNDED_OFF: f64 = 0.5e-9;

/// Judges the queries of a run whose settings are LoadGen's own.
pub(super) fn check(run: &LoggedRun<'_>, requested: &Requested, findings: &mut Findings) {
    let (mut settings, _) = EffectiveSettings::new(&requested.settings, requested.library);
    // What was made of rates with more digits than the log gives.
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
    if requested.library.total.saturating_add(padding) > LARGEST_LIBRARY {
        return;
    }
    let Some(set) = first_set(run, requested, &settings, findings) else {
        return;
    };
    if settings.scenario == Scenario::Server && settings.mode != Mode::AccuracyOnly {
        let arrivals = settings.target_qps * settings.target_duration_ms as f64 / 1e3;
        if arrivals + settings.min_query_count as f64 > MOST_ARRIVALS {
            return arrivals_on_average(run, &settings, findings);
        }
    }
    counts(run, requested, &settings, &set, findings);
}

/// So many queries arrive in so long a time, but for chance.
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

/// The set of samples that was loaded first, which seed and sizes determine; a finding where it is another.
fn first_set(
    run: &LoggedRun<'_>,
    requested: &Requested,
    settings: &EffectiveSettings,
    findings: &mut Findings,
) -> Option<Arc<LoadableSet>> {
    let logged = run.log.loaded_set.as_ref()?;
    let total = requested.library.total;
    // Since v6.0 no more of the library is shuffled than is wanted; before, all of it was.
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

/// Whether a list of samples is the one that the log gives the ends of.
fn is_written(samples: &[usize], logged: &ListEnds) -> bool {
    let (head, tail) = (logged.head.as_str(), logged.tail.as_str());
    // Enough of either end to be longer than what is kept.
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

/// What LoadGen says of the queries, in the terms of its log.
#[derive(Debug, Clone, Copy)]
struct Counts {
    /// The fewest and the most: of the rates that are logged with six digits.
    queries: (f64, f64),
    samples: u64,
    /// From one query to the next.
    between_ns: f64,
    /// The number by the rate as it is logged, and when their last one ends.
    exact: (f64, f64),
}

impl Counts {
    fn has(&self, queries: f64) -> bool {
        (self.queries.0..=self.queries.1).contains(&queries)
    }
}

/// The counts that LoadGen logs of the queries.
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
        let text = format!("{} is {queries}, the settings make {}", keys[0], plan.queries.0);
        run.error(findings, rules::SETTINGS, keys[0], text);
    }
    // LoadGens up to v4.1 log the number before it is filled up to whole sets.
    let filled_up = [settings.samples_per_query, plan.samples];
    if !filled_up.iter().any(|expected| samples == *expected as f64) {
        let text = format!("{} is {samples}, the settings make {}", keys[1], plan.samples);
        run.error(findings, rules::SETTINGS, keys[1], text);
    }
    // Server's last arrivals are not as far apart as the others on average.
    let (expected, few) = match settings.scenario {
        _ if queries == plan.exact.0 => (plan.exact.1, queries),
        Scenario::Server => (plan.between_ns * queries, plan.between_ns * FEW_ARRIVALS),
        _ => (plan.between_ns * queries, queries),
    };
    if (duration - expected).abs() > expected * SIX_DIGITS + few {
        let text = format!("{} is {duration}, the settings make {expected:.0}", keys[2]);
        run.error(findings, rules::SETTINGS, keys[2], text);
    }
}

/// What LoadGens make of settings: they differ where whole permutations are issued.
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
    // LoadGens before v5.0 fill up otherwise, by a set at most.
    let step = if permutation && !recent { loaded } else { 0.0 };
    let counts = |(fewest, most): (f64, f64)| Counts {
        queries: (fewest - step, most + step),
        samples,
        between_ns: duration / queries,
        exact: (queries, duration),
    };
    // LoadGens of v4.0 and v4.1 make Offline's query as often as there are samples, and issue it once.
    match permutation && settings.scenario == Scenario::Offline {
        true => vec![counts((queries, queries)), counts((loaded, loaded))],
        false => vec![counts((fewest.0, most.0))],
    }
}
