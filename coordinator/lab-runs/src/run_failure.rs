//! The failure of a recorded run: exactly one cause and a reason, from its row. [`super::cause`] decides the cause of a run's end.

use regatta_text::significant;
use regatta_types::documents::{AccuracyResult, AuditResult, EndCause};

use super::cause::{RunEnd, cause_of_end};
use regatta_lab_store::{RunOutcome, RunRow};

/// Returns the cause and the reason of a recorded run that is not good. `None` of a good one.
pub fn run_failure(row: &RunRow) -> Option<(EndCause, String)> {
    if row.is_good() {
        return None;
    }
    let cause = RunEnd::of(row).and_then(|end| cause_of_end(&end));
    // A complete run that could not be judged here: labels or a script are missing.
    Some((cause.unwrap_or(EndCause::Precondition), reason(row)))
}

fn reason(row: &RunRow) -> String {
    let of_state = row.abandoned.as_ref().or(row.state.reason.as_ref());
    of_state
        .cloned()
        .or_else(|| row.outcome.as_ref().and_then(of_outcome))
        .unwrap_or_else(|| format!("the run ended as {} without a reason", row.state.phase))
}

/// Returns the cause and reason of a run that has ended on its device and is not good.
fn of_outcome(outcome: &RunOutcome) -> Option<String> {
    if outcome.signed == Some(false) {
        return Some("the evidence is not signed by the device".to_owned());
    }
    let accuracy = outcome
        .accuracy
        .as_ref()
        .filter(|found| !AccuracyResult::is_reached(found));
    let mut reasons: Vec<String> = outcome.contradictions.clone();
    if !outcome.complete || outcome.signed.is_none() {
        reasons.push("some files of the evidence are missing".to_owned());
    }
    let of_loadgen = outcome
        .judgement
        .reasons
        .iter()
        .map(|reason| reason.trim_end_matches('.'));
    reasons.extend(of_loadgen.map(|reason| format!("LoadGen: {reason}")));
    reasons.extend(accuracy.map(|found| {
        if let Some(why) = found.incomplete() {
            return why;
        }
        let target = found.target.unwrap_or_default();
        format!("{} is {} %, {target} % are needed", found.metric, found.value)
    }));
    reasons.extend(outcome.audit.as_ref().filter(|audit| !audit.passed).map(of_audit));
    reasons.extend(outcome.not_judged.iter().cloned());
    if reasons.is_empty() && outcome.judgement.valid.is_none() {
        reasons.push("LoadGen's logs have no verdict".to_owned());
    }
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Returns the reason of an audit's failure.
fn of_audit(audit: &AuditResult) -> String {
    let test = &audit.of.test;
    if let Some(why) = audit.fault.as_ref().or(audit.mismatch.as_ref()) {
        return format!("{test} failed: {why}");
    }
    let mut facts = Vec::new();
    if let Some(scores) = &audit.scores {
        let [audited, reference] = [scores.audited, scores.reference].map(|score| significant(score, 4));
        let (unit, percent) = (&scores.unit, scores.tolerance_percent);
        facts.push(format!(
            "{reference} {unit} in the submission's run and {audited} {unit} in the audit; {percent} % allowed"
        ));
    }
    if let Some(responses) = audit
        .responses
        .as_ref()
        .filter(|responses| responses.differing > 0)
    {
        facts.push(format!(
            "{} of {} responses differ",
            responses.differing, responses.compared
        ));
    }
    let missed = audit.accuracies.iter().filter(|delta| !delta.passed);
    facts.extend(missed.map(|delta| {
        let limit = delta.limit_percent;
        format!(
            "{} of the audit is not within {limit} % of the accuracy run",
            delta.metric
        )
    }));
    if facts.is_empty() {
        // The official script refuses to compare, for example runs that LoadGen calls INVALID.
        let refusal = audit
            .speeds
            .last()
            .map(|line| line.trim_start_matches("TEST FAIL: "));
        facts.push(
            refusal
                .unwrap_or("the official script gives no reason")
                .to_owned(),
        );
    }
    format!("{test} failed: {}", facts.join("; "))
}

#[cfg(test)]
mod tests {
    use regatta_types::documents::{Judgement, RunPhase};

    use super::*;
    use regatta_lab_store::{Store, examples::example_draft};

    #[test]
    fn every_ending_has_one_cause_and_a_reason() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("db")).unwrap();
        let draft = example_draft("ab".repeat(16).parse().unwrap());
        store.runs().add(&draft).unwrap();
        let mut row = store.runs().get(draft.spec.run).unwrap().unwrap();
        row.recorded = Some("2026-01-01T00:00:00Z".to_owned());
        let good = RunOutcome {
            judgement: Judgement {
                valid: Some(true),
                ..Judgement::default()
            },
            complete: true,
            signed: Some(true),
            ..RunOutcome::default()
        };
        let invalid = RunOutcome {
            judgement: Judgement {
                valid: Some(false),
                reasons: vec!["Min duration not met".to_owned()],
                ..Judgement::default()
            },
            ..good.clone()
        };
        let not_judged = RunOutcome {
            not_judged: vec!["no accuracy: no labels".to_owned()],
            ..good.clone()
        };
        for (phase, reason, outcome, expected) in [
            (RunPhase::Done, None, &good, None),
            (
                RunPhase::Done,
                None,
                &invalid,
                Some((EndCause::Invalid, "LoadGen: Min duration not met")),
            ),
            (
                RunPhase::Done,
                None,
                &not_judged,
                Some((EndCause::Precondition, "no accuracy: no labels")),
            ),
            (
                RunPhase::Failed,
                Some("the engine failed"),
                &good,
                Some((EndCause::Workload, "the engine failed")),
            ),
            (
                RunPhase::Aborted,
                Some("aborted by the user"),
                &good,
                Some((EndCause::Operator, "aborted by the user")),
            ),
        ] {
            row.state.phase = phase;
            row.state.reason = reason.map(str::to_owned);
            row.outcome = Some(outcome.clone());
            let found = run_failure(&row);
            let found = found.as_ref().map(|(cause, reason)| (*cause, reason.as_str()));
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_failed_audit_always_has_a_reason() {
        let audit = |more: &str| -> AuditResult {
            let run = "01930e7a-6f00-7000-8000-000000000001";
            let text = format!(r#"{{"test": "TEST04", "performance": "{run}", "passed": false{more}}}"#);
            serde_json::from_str(&text).unwrap()
        };
        let speeds = r#", "speeds": ["reference score: 1", "TEST FAIL: Test results are invalid"]"#;
        let accuracies = r#", "accuracies": [{"metric": "acc", "baseline": 76.5, "audited": 75.2,
            "limit_percent": 1.0, "passed": false}]"#;
        for (more, expected) in [
            (speeds, "Test results are invalid"),
            (
                accuracies,
                "acc of the audit is not within 1 % of the accuracy run",
            ),
            (r#", "fault": "the run is failed""#, "the run is failed"),
            ("", "the official script gives no reason"),
        ] {
            assert_eq!(of_audit(&audit(more)), format!("TEST04 failed: {expected}"));
        }
    }
}
