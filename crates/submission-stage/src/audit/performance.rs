//! Compares the performance of two runs (`verify_performance.py`).

use std::path::Path;

use regatta_catalogue::procedures::{Audit, Bounds, ScoreSource};
use regatta_types::{
    Scenario,
    documents::{AuditedScores, LimitedDirection},
};

use super::{
    AuditError,
    score::{self, Refusal, Score, Which},
};

/// SingleStream latencies up to this value may differ more, in nanoseconds.
const SHORT_SINGLE_STREAM: f64 = 200_000.0;
/// MultiStream latencies up to this value may differ more, in nanoseconds.
const SHORT_MULTI_STREAM: f64 = 1_600_000.0;

/// The result of the comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct PerformanceVerdict {
    /// Whether the comparison passes.
    pub passed: bool,
    /// The script's standard output.
    pub printed: String,
    /// The reason why the script does not compare, which it writes to standard error; `None` if it compares.
    pub refusal: Option<String>,
    /// The compared scores; `None` if the script does not compare.
    pub scores: Option<AuditedScores>,
    /// The two values that must be equal and are not, in a sentence; `None` if the script compares, or refuses one run alone.
    pub mismatch: Option<String>,
    refusal_in_file: bool,
}

impl PerformanceVerdict {
    /// Returns the text of `verify_performance.txt`.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.refusal {
            Some(refusal) if self.refusal_in_file => format!("{}{refusal}\n", self.printed),
            _ => self.printed.clone(),
        }
    }
}

/// Compares the run whose logs are in `reference` with the audit's run in `test`.
///
/// # Errors
/// Returns an error if a log cannot be read, or if a value to compare is missing in it.
pub fn compare_performance(
    rule: &Audit,
    reference: &Path,
    test: &Path,
) -> Result<PerformanceVerdict, AuditError> {
    let mut printed = "Verifying performance.\n".to_owned();
    let refused = |printed: &str, refusal: String| PerformanceVerdict {
        passed: false,
        printed: printed.to_owned(),
        refusal: Some(refusal),
        scores: None,
        mismatch: None,
        refusal_in_file: rule.refusal_in_file,
    };
    let reference = match score::read(rule, reference, Which::Reference, &mut printed)? {
        Ok(score) => score,
        Err(Refusal(refusal)) => return Ok(refused(&printed, refusal)),
    };
    let test = match score::read(rule, test, Which::Test, &mut printed)? {
        Ok(score) => score,
        Err(Refusal(refusal)) => return Ok(refused(&printed, refusal)),
    };
    if let Some((refusal, mismatch)) = not_comparable(rule.scores, &reference, &test) {
        return Ok(PerformanceVerdict {
            mismatch: Some(mismatch),
            ..refused(&printed, refusal.to_owned())
        });
    }
    let (of_reference, of_test) = match rule.scores {
        ScoreSource::Summary => ("reference score", "test score"),
        ScoreSource::Detail => ("Reference score", "Test score"),
    };
    printed.push_str(&format!("{of_reference} = {}\n", reference.printed));
    printed.push_str(&format!("{of_test} = {}\n", test.printed));
    let passed = within(rule, &reference, &test);
    printed.push_str(if passed {
        "TEST PASS\n"
    } else {
        "TEST FAIL: Test score invalid\n"
    });
    Ok(PerformanceVerdict {
        passed,
        printed,
        refusal: None,
        scores: Some(compared(rule, &reference, &test, passed)),
        mismatch: None,
        refusal_in_file: rule.refusal_in_file,
    })
}

/// Returns the scores with the rule that applies to them.
fn compared(rule: &Audit, reference: &Score, test: &Score, passed: bool) -> AuditedScores {
    let unit = match reference.scenario.as_str() {
        "SingleStream" | "MultiStream" if rule.latency_as_rate => "queries/s",
        "SingleStream" | "MultiStream" => "ns",
        _ => "samples/s",
    };
    AuditedScores {
        reference: reference.value,
        audited: test.value,
        unit: unit.to_owned(),
        tolerance_percent: tolerance_percent(rule, reference),
        direction: match rule.bounds {
            Bounds::Both | Bounds::Inclusive => LimitedDirection::Both,
            Bounds::Above => LimitedDirection::Higher,
            Bounds::Worse => LimitedDirection::Worse,
        },
        passed,
    }
}

/// Returns the script's refusal to compare two runs of different settings, and the two values.
fn not_comparable(source: ScoreSource, reference: &Score, test: &Score) -> Option<(&'static str, String)> {
    if test.scenario != reference.scenario {
        let refusal = match source {
            ScoreSource::Summary => "Test and reference scenarios do not match!",
            ScoreSource::Detail => "TEST FAIL: Test and reference scenarios do not match!",
        };
        let [of_reference, of_test] = [reference, test].map(|score| match score.scenario.as_str() {
            "" => "unknown",
            scenario => scenario,
        });
        return Some((
            refusal,
            format!("the scenario is {of_reference} in the submission's run and {of_test} in the audit"),
        ));
    }
    let milliseconds = |score: &Score| match score.target_latency {
        Some(nanoseconds) => format!("{} ms", nanoseconds as f64 / 1e6),
        None => "missing".to_owned(),
    };
    (test.target_latency != reference.target_latency).then(|| {
        let [of_reference, of_test] = [reference, test].map(milliseconds);
        (
            "TEST FAIL: Server target latency mismatch",
            format!(
                "the target latency is {of_reference} in the submission's run and {of_test} in the audit; they must be equal"
            ),
        )
    })
}

/// Returns whether the test's score is within the round's bounds.
///
/// TEST04 of every round compares its rates with limits that are meant for latencies. Streams therefore nearly always get the
/// wider tolerance, which this function reproduces.
fn within(rule: &Audit, reference: &Score, test: &Score) -> bool {
    let tolerance = f64::from(tolerance_percent(rule, reference)) / 100.0;
    let lowest = reference.value * (1.0 - tolerance);
    let highest = reference.value * (1.0 + tolerance);
    match rule.bounds {
        Bounds::Both => test.value < highest && test.value > lowest,
        Bounds::Inclusive => (lowest..=highest).contains(&test.value),
        Bounds::Above => test.value < highest,
        Bounds::Worse => match reference.scenario.parse::<Scenario>() {
            Ok(scenario) if rule.rates.contains(&scenario) => test.value > lowest,
            Ok(Scenario::SingleStream | Scenario::MultiStream) => test.value < highest,
            _ => false,
        },
    }
}

/// Returns the round's tolerance in percent. Short latencies may differ more.
fn tolerance_percent(rule: &Audit, reference: &Score) -> u32 {
    let short = match reference.scenario.as_str() {
        "SingleStream" => reference.value <= SHORT_SINGLE_STREAM,
        "MultiStream" => reference.value <= SHORT_MULTI_STREAM,
        _ => false,
    };
    if short {
        rule.short_latency_tolerance_percent
    } else {
        rule.tolerance_percent
    }
}
