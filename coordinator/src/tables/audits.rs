//! Formats the results of audits.

use std::fmt::Write as _;

use regatta_text::escape;
use regatta_types::documents::AuditResult;

use crate::store::RunRow;

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
    parts.extend(scores(audit));
    parts.extend(refusal(audit));
    parts.extend(audit.fault.clone());
    let verdict = if audit.passed { "PASS" } else { "FAIL" };
    let mut text = format!(
        "{} {} {verdict}: {}",
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
pub(super) fn why_not(audit: &AuditResult) -> Option<String> {
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
        reasons.extend(scores(audit));
    }
    Some(reasons.join("; "))
}

/// Formats TEST01 part III: both values of each metric.
fn accuracies(audit: &AuditResult) -> impl Iterator<Item = String> {
    audit.accuracies.iter().map(|delta| {
        let value = |value: Option<f64>| value.map_or_else(|| "none".to_owned(), |value| value.to_string());
        format!(
            "{} of the same samples {} and {}, {} % allowed",
            delta.metric,
            value(delta.baseline),
            value(delta.audited),
            delta.limit_percent
        )
    })
}

/// The official script's message when it fails the performance check.
fn refusal(audit: &AuditResult) -> Option<String> {
    audit
        .speeds
        .iter()
        .find(|line| line.contains("TEST FAIL"))
        .cloned()
}

/// The two scores that the official script prints.
fn scores(audit: &AuditResult) -> Option<String> {
    let score = |label: &str| {
        audit.speeds.iter().find_map(|line| {
            let (name, value) = line.split_once(" = ")?;
            name.eq_ignore_ascii_case(label).then_some(value)
        })
    };
    let (reference, test) = (score("reference score")?, score("test score")?);
    Some(format!(
        "score {reference} in the submission's run, {test} in the audit"
    ))
}
