//! Formats the results of audits.

use std::fmt::Write as _;

use regatta_text::escape;
use regatta_types::documents::{AccuracyDelta, AuditResult, AuditedScores, LimitedDirection};

use super::run_text;
use crate::store::{Metric, RunRow};

/// Formats the result of an audit's run, and what a reviewer would ask. `None` when the run is not an audit or has no result yet.
pub(crate) fn audit(row: &RunRow) -> Option<String> {
    let audit = row.outcome.as_ref()?.audit.as_ref()?;
    let mut parts = Vec::new();
    if let Some(responses) = &audit.responses {
        parts.push(format!(
            "{} of {} responses differ",
            responses.differing, responses.compared
        ));
    }
    parts.extend(accuracies(audit));
    parts.extend(scores(audit, &row.draft.spec.round));
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
        let _ = write!(text, "\n  a reviewer would ask: {}", escape(line));
    }
    Some(text)
}

/// Formats briefly why an audit has not passed.
pub(super) fn why_not(audit: &AuditResult, round: &str) -> Option<String> {
    if audit.passed {
        return None;
    }
    let mut reasons: Vec<String> = audit.fault.iter().cloned().collect();
    if audit.fault.is_none() {
        let responses = audit.responses.iter().filter(|responses| !responses.passed);
        reasons.extend(responses.map(|responses| match responses.compared {
            0 => "no response could be compared".to_owned(),
            compared => format!("{} of {compared} responses differ", responses.differing),
        }));
        reasons.extend(accuracies(audit));
        reasons.extend(refusal(audit));
        reasons.extend(
            scores(audit, round).filter(|_| audit.scores.as_ref().is_some_and(|scores| !scores.passed)),
        );
    }
    Some(reasons.join("; "))
}

/// Formats TEST01 part III: both values of each metric.
fn accuracies(audit: &AuditResult) -> impl Iterator<Item = String> {
    audit.accuracies.iter().map(accuracy_delta)
}

/// Formats one metric of part III: both values, the difference and the limit.
pub(crate) fn accuracy_delta(delta: &AccuracyDelta) -> String {
    let metric = escape(&delta.metric);
    let limit = delta.limit_percent;
    let value = |value: f64| super::figure::significant(value, 6);
    match (delta.baseline, delta.audited) {
        (Some(baseline), Some(audited)) => format!(
            "{metric} of the same samples is {} in the accuracy run and {} in the audit, {} % apart; {limit} % allowed",
            value(baseline),
            value(audited),
            super::figure::significant(((audited - baseline) / baseline * 100.0).abs(), 3)
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

/// The official script's message when it refuses to compare.
fn refusal(audit: &AuditResult) -> Option<String> {
    let refused = audit.scores.is_none();
    let lines = audit.speeds.iter();
    lines
        .clone()
        .find(|line| refused && line.contains("TEST FAIL"))
        .cloned()
}

/// Both scores, their difference and the round's limit. `round` is the run's.
fn scores(audit: &AuditResult, round: &str) -> Option<String> {
    audit.scores.as_ref().map(|scores| compared_scores(scores, round))
}

/// Formats the scores that an audit compares: both figures, the difference and the round's limit.
pub(crate) fn compared_scores(scores: &AuditedScores, round: &str) -> String {
    let figure = |value: f64| {
        super::figure::value(&Metric {
            name: String::new(),
            value,
            unit: scores.unit.clone(),
        })
    };
    let difference = match scores.difference_percent() {
        small if small.abs() < 0.005 => "no difference".to_owned(),
        lower if lower < 0.0 => format!("{:.2} % lower", -lower),
        higher => format!("{higher:.2} % higher"),
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
