//! Formats the results of audits.

use std::fmt::Write as _;

use regatta_text::escape;
use regatta_types::documents::{
    AccuracyDelta, AuditResult, AuditedResponses, AuditedScores, LimitedDirection,
};

use super::run_text;
use regatta_lab_store::RunRow;
use regatta_types::documents::Metric;

/// Formats the result of an audit's run, and the facts that a reviewer needs. `None` when the run is not an audit or has no result yet.
pub fn audit(row: &RunRow) -> Option<String> {
    let audit = row.outcome.as_ref()?.audit.as_ref()?;
    let mut parts = Vec::new();
    let round = &row.draft.spec.round;
    parts.extend(audit.responses.iter().map(|found| responses(found, round)));
    parts.extend(accuracies(audit));
    parts.extend(scores(audit, round));
    parts.extend(refusal(audit));
    parts.extend(audit.fault.clone());
    let verdict = if audit.passed { "PASS" } else { "FAIL" };
    let mut text = format!(
        "{} {} {} {verdict}: {}",
        run_text::device(row),
        row.scenario,
        escape(&audit.of.test),
        escape(&parts.join("; "))
    );
    let explanation = audit
        .responses
        .iter()
        .flat_map(|responses| &responses.explanation);
    for line in explanation {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "\n  {}", escape(line));
    }
    for line in &audit.observations {
        let _ = write!(text, "\n  warning: {}", escape(line));
    }
    Some(text)
}

/// Formats the reason why an audit has not passed, in a few words.
pub(super) fn why_not(audit: &AuditResult, round: &str) -> Option<String> {
    if audit.passed {
        return None;
    }
    let mut reasons = Vec::new();
    let differing = audit.responses.iter().filter(|found| !found.passed);
    reasons.extend(differing.map(|found| responses(found, round)));
    reasons.extend(accuracies(audit));
    reasons.extend(refusal(audit));
    reasons
        .extend(scores(audit, round).filter(|_| audit.scores.as_ref().is_some_and(|scores| !scores.passed)));
    reasons.extend(audit.fault.clone());
    Some(reasons.join("; "))
}

/// Formats TEST01's comparison of responses, with the limit if it does not pass.
fn responses(found: &AuditedResponses, round: &str) -> String {
    let AuditedResponses {
        compared, differing, ..
    } = found;
    match (found.passed, compared) {
        (true, _) => format!("{differing} of {compared} responses differ"),
        (false, 0) => "no response could be compared".to_owned(),
        (false, _) => format!(
            "{differing} of {compared} responses differ ({} %), {} allows none",
            regatta_text::significant(*differing as f64 / *compared as f64 * 100.0, 3),
            escape(round)
        ),
    }
}

/// Formats TEST01 part III: both values of each metric.
fn accuracies(audit: &AuditResult) -> impl Iterator<Item = String> {
    audit.accuracies.iter().map(accuracy_delta)
}

/// Formats one metric of part III: both values, the difference and the limit.
pub fn accuracy_delta(delta: &AccuracyDelta) -> String {
    let metric = escape(&delta.metric);
    let limit = delta.limit_percent;
    let value = |value: f64| regatta_text::significant(value, 6);
    match (delta.baseline, delta.audited) {
        (Some(baseline), Some(audited)) => format!(
            "{metric} of the same samples is {} in the accuracy run and {} in the audit, {} % apart; {limit} % allowed",
            value(baseline),
            value(audited),
            regatta_text::significant(((audited - baseline) / baseline * 100.0).abs(), 3)
        ),
        (baseline, _) => format!(
            "{metric} of the same samples has no value in the {}",
            if baseline.is_none() {
                "accuracy run"
            } else {
                "audit"
            }
        ),
    }
}

/// Returns the official script's message when it refuses to compare, and the two values that differ.
fn refusal(audit: &AuditResult) -> Option<String> {
    // The first line names the script that verifies performance.
    let refusal = audit.speeds.iter().skip(1).last();
    let refusal = refusal.filter(|line| audit.scores.is_none() && *line != "TEST PASS")?;
    Some(match &audit.mismatch {
        Some(mismatch) => format!("{refusal}: {mismatch}"),
        None => refusal.clone(),
    })
}

/// Returns both scores, their difference and the round's limit. `round` is the run's.
fn scores(audit: &AuditResult, round: &str) -> Option<String> {
    audit.scores.as_ref().map(|scores| compared_scores(scores, round))
}

/// Formats the scores that an audit compares: both figures, the difference and the round's limit.
pub fn compared_scores(scores: &AuditedScores, round: &str) -> String {
    let figure = |value: f64| {
        super::figure::value(&Metric {
            name: String::new(),
            value,
            unit: scores.unit.clone(),
        })
    };
    let difference = scores.difference_percent();
    // A difference just above the limit must not look like the limit.
    let [percent, _] = super::values::distinct(difference.abs(), f64::from(scores.tolerance_percent));
    let difference = match difference {
        small if small.abs() < 0.005 => "no difference".to_owned(),
        lower if lower < 0.0 => format!("{percent} % lower"),
        _ => format!("{percent} % higher"),
    };
    let direction = match scores.direction {
        LimitedDirection::Both => "",
        LimitedDirection::Higher => " higher",
        LimitedDirection::Worse => " worse",
    };
    format!(
        "{} in the submission's run and {} in the audit, {difference}; {} allows {} %{direction}",
        figure(scores.reference),
        figure(scores.audited),
        escape(round),
        scores.tolerance_percent
    )
}

#[cfg(test)]
mod tests {
    use regatta_types::{RunId, documents::AuditOf};

    use super::*;

    fn failed(test: &str) -> AuditResult {
        AuditResult {
            of: AuditOf {
                test: test.to_owned(),
                performance: RunId::now(),
                accuracy: None,
            },
            passed: false,
            speeds: vec!["Verifying performance.".to_owned()],
            scores: None,
            mismatch: None,
            responses: None,
            accuracies: Vec::new(),
            observations: Vec::new(),
            fault: None,
        }
    }

    fn scores(audited: f64, direction: LimitedDirection) -> Option<AuditedScores> {
        Some(AuditedScores {
            reference: 1_000.0,
            audited,
            unit: "samples/s".to_owned(),
            tolerance_percent: 10,
            direction,
            passed: false,
        })
    }

    #[test]
    fn a_failed_audit_has_both_figures_the_difference_and_the_limit() {
        let test01 = AuditResult {
            responses: Some(AuditedResponses {
                compared: 4_096,
                differing: 12,
                passed: false,
                explanation: Vec::new(),
            }),
            accuracies: vec![AccuracyDelta {
                metric: "acc".to_owned(),
                baseline: Some(76.5),
                audited: Some(75.2),
                limit_percent: 1.0,
                passed: false,
            }],
            scores: scores(899.99, LimitedDirection::Worse),
            fault: Some("no reference script".to_owned()),
            ..failed("TEST01")
        };
        let test04 = AuditResult {
            scores: scores(1_234.0, LimitedDirection::Higher),
            ..failed("TEST04")
        };
        let mut test05 = failed("TEST05");
        test05
            .speeds
            .push("TEST FAIL: Server target latency mismatch".to_owned());
        test05.mismatch = Some("the target latency is 15 ms here and 20 ms there".to_owned());
        let mut invalid = failed("TEST04");
        invalid
            .speeds
            .push("TEST FAIL: Test results are invalid".to_owned());
        let found = [test01, test04, test05, invalid].map(|audit| why_not(&audit, "v6.1").unwrap());
        insta::assert_snapshot!(found.join("\n"), @r"
        12 of 4096 responses differ (0.293 %), v6.1 allows none; acc of the same samples is 76.5000 in the accuracy run and 75.2000 in the audit, 1.70 % apart; 1 % allowed; 1000 samples/s in the submission's run and 900.0 samples/s in the audit, 10.001 % lower; v6.1 allows 10 % worse; no reference script
        1000 samples/s in the submission's run and 1234 samples/s in the audit, 23.40 % higher; v6.1 allows 10 % higher
        TEST FAIL: Server target latency mismatch: the target latency is 15 ms here and 20 ms there
        TEST FAIL: Test results are invalid
        ");
    }
}
