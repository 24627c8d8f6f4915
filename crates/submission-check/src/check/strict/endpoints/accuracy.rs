//! Checks the score of an endpoints harness run: present, complete, over the complete data set and within the accuracy targets.

use regatta_catalogue::round::AccuracyBound;
use serde_json::{Map, Value};

use super::EndpointsJudge;
use crate::check::{
    finding::{Findings, Severity},
    rules,
    run_log::shown,
};

/// The share of empty responses up to which they are plausible.
const FEW_EMPTY: f64 = 0.01;
/// The tolerance for a mean of scores.
const SLACK: f64 = 1e-9;

impl EndpointsJudge<'_> {
    /// Returns the scores of accuracy data sets. A performance run may also score its own responses.
    pub(super) fn accuracy_scores(&self) -> impl Iterator<Item = &Map<String, Value>> {
        self.logs.scores.iter().filter(|entry| {
            let kind = entry.get("dataset_type");
            kind.is_none_or(|kind| kind.is_null() || kind == "accuracy")
        })
    }

    /// Checks that the score is present, complete, over the complete data set and within the accuracy targets.
    pub(super) fn accuracy(&self, findings: &mut Findings) {
        let path = &self.documents.accuracy.path;
        let fix = "run accuracy over the complete data set, and put its document there";
        for entry in &self.logs.scores {
            if entry.get("complete") == Some(&Value::Bool(false)) {
                let text = format!("the score of {} is not complete", name_of(entry));
                findings.error(rules::ACCURACY, path, text, fix);
            }
        }
        let log = &self.logs.accuracy;
        let samples = log
            .value("effective_accuracy_sample_count")
            .or_else(|| log.value("qsl_reported_total_count"));
        if let Some(expected) = self.case.rules.dataset_samples_in(self.case.scenario)
            && samples.and_then(regatta_mllog::read::Value::as_u64) != Some(expected)
        {
            let found = samples.map_or_else(|| "no number of".to_owned(), shown);
            let text = format!("{found} samples, the data set has {expected}");
            findings.error(rules::DATASET, path, text, fix);
        }
        self.responses(findings);
        self.average(findings);
        let score = self.accuracy_scores().next().and_then(|entry| entry.get("score"));
        match score.filter(|score| !score.is_null()) {
            None => findings.error(rules::ACCURACY, path, "there is no score", fix),
            Some(score) if self.case.bound() => self.score(score, path, findings),
            Some(_) => {}
        }
    }

    /// Checks that each response to the accuracy data set was scored.
    fn responses(&self, findings: &mut Findings) {
        let path = &self.documents.accuracy.path;
        let fix = "repeat the accuracy run until every request is answered";
        if self.prescribed.is_some() && self.accuracy_scores().count() > 1 {
            let text = "there are several scores of the accuracy data set";
            findings.error(rules::ACCURACY, path, text, "keep the one of the run");
        }
        for entry in self.accuracy_scores() {
            let Some(counts) = entry.get("response_counts").filter(|counts| counts.is_object()) else {
                if self.prescribed.is_some() {
                    let text = format!("response_counts of {} are missing", name_of(entry));
                    findings.error(rules::ACCURACY, path, text, fix);
                }
                continue;
            };
            let count = |name: &str| counts.get(name).and_then(Value::as_f64).unwrap_or_default();
            let (issued, scored) = (count("issued"), count("scored"));
            let (empty, missing) = (count("empty"), count("missing"));
            let total = entry.get("total_samples").and_then(Value::as_f64);
            if total.is_some_and(|total| total != issued) || scored + empty + missing != issued {
                let text = format!(
                    "{issued} responses were issued, {scored} scored, {empty} empty and {missing} missing, of {} samples",
                    total.unwrap_or(issued)
                );
                findings.error(rules::ENDPOINTS_FIGURES, path, text, fix);
            }
            if empty + missing > 0.0 {
                let text = format!("{empty} of {issued} responses are empty and {missing} missing");
                let severity = match missing == 0.0 && empty <= issued * FEW_EMPTY {
                    true => Severity::Warning,
                    false => Severity::Error,
                };
                findings.add(severity, rules::ACCURACY, path, text, fix);
            }
        }
    }

    /// Checks that `average_accuracy` is the mean of the scores.
    fn average(&self, findings: &mut Findings) {
        let stated = self.documents.accuracy.value.get("average_accuracy");
        let scores: Option<Vec<_>> = self
            .accuracy_scores()
            .map(|entry| entry.get("score").and_then(Value::as_f64))
            .collect();
        let (Some(stated), Some(scores)) = (stated.and_then(Value::as_f64), scores) else {
            return;
        };
        let mean = scores.iter().sum::<f64>() / scores.len() as f64;
        // The comparison is false for NaN, so the mean of no score is an error.
        let close = (stated - mean).abs() <= SLACK;
        if !close {
            let text = format!("average_accuracy is {stated}, the scores make {mean}");
            let fix = "put the harness's document there";
            findings.error(rules::ENDPOINTS_FIGURES, &self.documents.accuracy.path, text, fix);
        }
    }

    fn score(&self, score: &Value, path: &str, findings: &mut Findings) {
        let own = self.endpoints.scores.get(&self.case.job.benchmark);
        let lower = own.map_or(
            self.case.rules.accuracy_in(Some(self.case.scenario)),
            std::slice::from_ref,
        );
        let upper = &self.case.rules.accuracy_at_most;
        let bounds = lower.iter().map(|bound| (bound, true));
        for (bound, at_least) in bounds.chain(upper.iter().map(|bound| (bound, false))) {
            let Some(value) = value_of(score, bound, lower.len() == 1) else {
                let text = format!("the score gives no {}", bound.metric);
                let fix = "see that the scorer of the benchmark was used";
                findings.warning(rules::ACCURACY, path, text, fix);
                continue;
            };
            let limit = bound.value();
            let met = if at_least { value >= limit } else { value <= limit };
            if !met {
                let side = if at_least { "below" } else { "above" };
                let text = format!("{} is {value}, {side} {limit}", bound.metric);
                let fix = "meet the accuracy target, or submit to the open division";
                findings.error(rules::ACCURACY, path, text, fix);
            }
        }
    }
}

fn name_of(entry: &Map<String, Value>) -> &str {
    entry
        .get("dataset_name")
        .and_then(Value::as_str)
        .unwrap_or("a data set")
}

/// Returns the value of a metric in the unit of its bound. A score that is not an object is accepted if the benchmark has one
/// metric.
fn value_of(score: &Value, bound: &AccuracyBound, alone: bool) -> Option<f64> {
    let value = match score {
        Value::Object(metrics) => {
            let mut metrics = metrics.iter();
            let metric = metrics.find(|(name, _)| name.eq_ignore_ascii_case(&bound.metric));
            number(metric?.1)?
        }
        _ if alone => number(score)?,
        _ => return None,
    };
    // Some scorers print a fraction although the target is a percentage.
    let is_share = (0.0..=1.0).contains(&value) && bound.reference > 1.0;
    Some(if is_share { value * 100.0 } else { value })
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        value => value.as_f64(),
    }
}
