//! Checks `scores.json`, the scores of the performance run's responses: every response is scored, and each score follows from its
//! actions.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{EndpointsJudge, prescribed::at};
use crate::check::{
    endpoints::HarnessDocument,
    finding::{Findings, Severity},
    rules,
};

/// The tolerance for scores with four decimal places.
const FOUR_PLACES: f64 = 0.00006;
const FIX: &str = "put the harness's scores.json of the run there";

impl EndpointsJudge<'_> {
    /// Checks the scores of the performance run's responses.
    pub(super) fn turns(&self, findings: &mut Findings) {
        let Some(run) = self.prescribed else { return };
        let path = format!("{}/scores.json", self.case.results);
        if !self.case.context.tree.exists(&path) {
            let text = "is missing: whether each response was scored cannot be checked";
            return findings.add(
                Severity::Note,
                rules::ENDPOINTS,
                &path,
                text,
                "add the harness's scores.json",
            );
        }
        let document = HarnessDocument::json(self.case.context.tree, &path);
        if let Some(fault) = document.fault.as_ref().or(document.repeated.as_ref()) {
            return findings.error(rules::ENDPOINTS, &path, fault.as_str(), FIX);
        }
        let scores = &document.value;
        let mut wrong = |text: String| findings.error(rules::ENDPOINTS_FIGURES, &path, text, FIX);
        for (name, expected) in [
            ("turns.issued", run.requests),
            ("turns.expected", run.scored_responses),
            ("turns.observed", run.scored_responses),
            ("turns.scored", run.scored_responses),
            ("turns.missing", 0),
        ] {
            let found = at(scores, name);
            if found.and_then(Value::as_u64) != Some(expected) {
                let found = found.map_or_else(|| "missing".to_owned(), Value::to_string);
                wrong(format!("{name} is {found}, the benchmark has {expected}"));
            }
        }
        let turns = scores.get("per_turn").and_then(Value::as_array);
        let turns = turns.map_or(&[][..], Vec::as_slice);
        if turns.len() as u64 != run.scored_responses {
            wrong(format!(
                "{} responses have a score of {}",
                turns.len(),
                run.scored_responses
            ));
        }
        let mut sum = 0.0;
        for (number, turn) in (1..).zip(turns) {
            let stated = turn.get("score").and_then(Value::as_f64).unwrap_or(f64::NAN);
            let made = overlap(turn.get("gt_actions"), turn.get("model_actions"));
            sum += stated;
            // The comparison is false for NaN.
            let close = (stated - made).abs() <= FOUR_PLACES;
            if !close {
                wrong(format!(
                    "response {number} has the score {stated}, its actions make {made:.4}"
                ));
                break;
            }
        }
        let (stated, mean) = (
            scores.get("score").and_then(Value::as_f64),
            sum / turns.len() as f64,
        );
        let close = stated.is_some_and(|stated| (stated - mean).abs() <= FOUR_PLACES);
        if !close {
            let stated = stated.map_or_else(|| "missing".to_owned(), |stated| stated.to_string());
            wrong(format!("score is {stated}, the responses make {mean:.4}"));
        }
        let entry = self
            .logs
            .scores
            .iter()
            .find(|entry| entry.get("dataset_type") == Some(&"performance".into()));
        let repeated = entry.and_then(|entry| entry.get("score")).and_then(Value::as_f64);
        if repeated.is_some() && repeated != stated {
            let text = "the score of the performance run differs from the one in accuracy_results.json";
            wrong(text.to_owned());
        }
    }
}

/// Computes the intersection of two multisets of actions over their union.
fn overlap(expected: Option<&Value>, found: Option<&Value>) -> f64 {
    let count = |list: Option<&Value>| {
        let mut counts = BTreeMap::<String, u32>::new();
        for action in list.and_then(Value::as_array).into_iter().flatten() {
            *counts.entry(action.to_string()).or_default() += 1;
        }
        counts
    };
    let (expected, found) = (count(expected), count(found));
    let common: u32 = expected
        .iter()
        .map(|(action, count)| *count.min(found.get(action).unwrap_or(&0)))
        .sum();
    let all = expected.values().sum::<u32>() + found.values().sum::<u32>() - common;
    f64::from(common) / f64::from(all)
}
