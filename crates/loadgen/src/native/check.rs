//! Refuses settings before a run begins: those with which the official LoadGen reads beyond its arrays, or never ends.

use regatta_rules::Mode;

use crate::{
    effective::{EffectiveSettings, LibraryCounts},
    generate::{Pass, PlanError, QueryPlan, loadable_sets},
    load_gen::LoadgenError,
    rng::RngAbi,
};

/// Settings that the official LoadGen would read beyond its arrays on, or never end with.
pub(super) fn check(
    settings: &EffectiveSettings,
    library: LibraryCounts,
    abi: RngAbi,
) -> Result<(), LoadgenError> {
    let scenario = settings.scenario;
    let fail = |problem: String| Err(LoadgenError::Settings { scenario, problem });
    let fraction = settings.target_latency_percentile;
    if !(fraction > 0.0 && fraction < 1.0) {
        return fail(format!(
            "target_latency_percentile is {}, but must lie between 0 and 100 percent",
            fraction * 100.0
        ));
    }
    let passes = match settings.mode {
        Mode::AccuracyOnly => vec![(Pass::Accuracy, settings.accuracy_sample_count)],
        Mode::PerformanceOnly | Mode::FindPeakPerformance => {
            vec![(Pass::Performance, settings.performance_sample_count)]
        }
        Mode::SubmissionRun => vec![
            (Pass::Accuracy, settings.accuracy_sample_count),
            (Pass::Performance, settings.performance_sample_count),
        ],
    };
    let plan = |(pass, wanted)| -> Result<(), PlanError> {
        let sets = loadable_sets(settings, library.total, wanted, abi)?;
        let used = if pass == Pass::Accuracy { sets.len() } else { 1 };
        sets[..used]
            .iter()
            .try_for_each(|set| QueryPlan::new(settings, set, pass, abi).map(drop))
    };
    match passes.into_iter().try_for_each(plan) {
        Ok(()) => Ok(()),
        Err(error) => fail(error.to_string()),
    }
}
