//! Judges the check of a device: a short accuracy run whose result is known, and a short performance run, compared with the device's own
//! earlier checks. This file makes no runs.

use regatta_datasets::bundled;
use regatta_text::significant;
use regatta_types::{benchmark::Benchmark, documents::EndCause};

use super::cause::{RunEnd, cause_of_end};
use regatta_lab_store::RunRow;

/// The number of earlier checks from which speeds are compared.
const ENOUGH_CHECKS: usize = 3;
/// The share below the median of the earlier checks that always passes.
const ALLOWED_SHARE: f64 = 0.2;
/// The number of interquartile ranges of the earlier checks that passes, as in rustc-perf's noise detection.
const ALLOWED_RANGES: f64 = 3.0;

/// The result of a check.
#[derive(Debug, Clone, PartialEq)]
pub enum CheckVerdict {
    /// The device works. The text is what the check showed.
    Passed(String),
    /// The device does not work, with the reason.
    Failed(String),
    /// The check shows nothing about the device, with the reason.
    Undecided(String),
}

/// Returns the speed of a performance run in samples per second.
pub fn speed(performance: &RunRow) -> Option<f64> {
    performance.outcome.as_ref()?.judgement.rates.samples_per_second
}

/// Judges the two runs of a check. `earlier` are the speeds of the device's passed checks.
pub fn judge_check(
    accuracy: &RunRow,
    performance: &RunRow,
    benchmark: &Benchmark,
    earlier: &[f64],
) -> CheckVerdict {
    for run in [accuracy, performance] {
        let Some(end) = RunEnd::of(run) else {
            return CheckVerdict::Undecided(format!("its {} run has not ended", run.mode));
        };
        let reason = || {
            let invalid = run
                .outcome
                .as_ref()
                .and_then(|outcome| outcome.judgement.reasons.first());
            let reason = end.reason.or(invalid.map(String::as_str));
            let reason = reason.unwrap_or("its result is not usable");
            format!("the {} run: {reason}", run.mode)
        };
        match cause_of_end(&end) {
            // An accuracy below the target is judged below, with both values.
            None => {}
            Some(EndCause::Workload) if accuracy_of(run).is_some() => {}
            Some(EndCause::Device) => return CheckVerdict::Failed(reason()),
            // The bundled benchmark is known to work. A user's own may be at fault itself.
            Some(EndCause::Workload) if bundled::contains(benchmark) => return CheckVerdict::Failed(reason()),
            Some(cause) => return CheckVerdict::Undecided(format!("{} (cause: {cause})", reason())),
        }
    }
    let engine = accuracy.draft.spec.engine.kind;
    let compared = if engine.computes() {
        compare_accuracy(accuracy, benchmark)
    } else {
        Ok(format!(
            "the answers are not checked, because the engine {engine} does not compute them"
        ))
    };
    let shown = match compared {
        Ok(shown) => shown,
        Err(failure) => return failure,
    };
    let Some(speed) = speed(performance) else {
        return CheckVerdict::Undecided("the performance run shows no speed".to_owned());
    };
    match compare_speed(speed, earlier) {
        Ok(compared) => CheckVerdict::Passed(format!("{shown}, {compared}")),
        Err(failure) => failure,
    }
}

fn accuracy_of(run: &RunRow) -> Option<f64> {
    Some(run.outcome.as_ref()?.accuracy.as_ref()?.value)
}

/// Compares the accuracy with the reference. A float32 engine gives the same answers everywhere, others must reach the target.
fn compare_accuracy(run: &RunRow, benchmark: &Benchmark) -> Result<String, CheckVerdict> {
    let found = run.outcome.as_ref().and_then(|outcome| outcome.accuracy.as_ref());
    let Some(found) = found else {
        return Err(CheckVerdict::Undecided(
            "the accuracy of the accuracy run was not judged".to_owned(),
        ));
    };
    if let Some(why) = found.incomplete() {
        return Err(CheckVerdict::Failed(why));
    }
    let reference = benchmark.accuracy.reference;
    let is_exact = run.draft.spec.engine.kind == regatta_types::documents::EngineKind::Tract;
    let expected = (reference / 100.0 * found.total as f64).round();
    match found.correct {
        Some(correct) if is_exact && correct as f64 != expected => Err(CheckVerdict::Failed(format!(
            "{correct} of {} answers are correct, {expected} are expected",
            found.total
        ))),
        Some(_) if is_exact => Ok(format!("accuracy {:.3} % as expected", found.value)),
        _ if !found.is_reached() => Err(CheckVerdict::Failed(format!(
            "the accuracy is {:.3} %, below the target",
            found.value
        ))),
        _ => Ok(format!("accuracy {:.3} %", found.value)),
    }
}

/// Compares a speed with earlier ones.
fn compare_speed(speed: f64, earlier: &[f64]) -> Result<String, CheckVerdict> {
    if earlier.len() < ENOUGH_CHECKS {
        return Ok(format!(
            "{} samples/s, not compared: {} of {ENOUGH_CHECKS} earlier checks",
            significant(speed, 4),
            earlier.len()
        ));
    }
    let mut sorted = earlier.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = quantile(&sorted, 0.5);
    let range = quantile(&sorted, 0.75) - quantile(&sorted, 0.25);
    let allowed = (ALLOWED_SHARE * median).max(ALLOWED_RANGES * range);
    let compared = format!(
        "{} samples/s, {:+.1} % from the median of {} earlier checks",
        significant(speed, 4),
        (speed / median - 1.0) * 100.0,
        earlier.len()
    );
    // A faster device is not broken: its agent, engine or power mode has changed.
    if median - speed <= allowed {
        Ok(compared)
    } else {
        Err(CheckVerdict::Failed(format!(
            "{compared}; {:.1} % is allowed",
            allowed / median * 100.0
        )))
    }
}

/// Returns a quantile of sorted values by linear interpolation.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len().saturating_sub(1)) as f64;
    let at = |index: f64| sorted.get(index as usize).copied().unwrap_or_default();
    let (below, above) = (at(place.floor()), at(place.ceil()));
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_compares_speed_with_at_least_three_earlier_checks() {
        assert!(compare_speed(1.0, &[100.0, 101.0]).is_ok());
        let earlier = [100.0, 101.0, 99.0];
        for (speed, is_good) in [(100.0, true), (81.0, true), (79.0, false), (300.0, true)] {
            assert_eq!(compare_speed(speed, &earlier).is_ok(), is_good, "{speed}");
        }
        // A device whose checks differ is allowed to differ.
        let noisy = [100.0, 150.0, 50.0, 120.0];
        assert!(compare_speed(60.0, &noisy).is_ok());
        let failure = compare_speed(50.0, &earlier).unwrap_err();
        assert_eq!(
            failure,
            CheckVerdict::Failed(
                "50.00 samples/s, -50.0 % from the median of 3 earlier checks; 20.0 % is allowed".to_owned()
            )
        );
    }
}
