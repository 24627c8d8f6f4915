//! Reads `accuracy.txt` as the official checkers do: line by line, until every metric and the hash are found.

use regatta_catalogue::round::{AccuracyBound, AccuracyForms, BenchmarkRules, SubmittedScenario, Trait};

use super::{Context, python::Raised};
use crate::check::accuracy_text;

/// The largest file that is read, in bytes. Output of the reference scripts is shorter.
const MAX: u64 = 64 << 20;

/// The metrics and the hash that were found in the file.
#[derive(Debug, Default, Clone)]
pub(super) struct AccuracyResult {
    /// Each metric's name and its last value as text, in the order of first occurrence.
    pub(super) metrics: Vec<(String, String)>,
    /// Whether every metric is present and within its bounds.
    pub(super) met: bool,
    /// Whether the file has a hash.
    pub(super) hash: bool,
}

impl AccuracyResult {
    /// Returns all metrics in the format of the CSV since v5.0.
    pub(super) fn listed(&self) -> String {
        let metrics: Vec<_> = self
            .metrics
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        metrics.join("  ")
    }
}

/// A text file as Python reads it: every line ending is a line feed.
#[derive(Debug)]
pub(super) struct PythonText(String);

impl PythonText {
    /// Returns the lines, each with its line feed.
    pub(super) fn lines(&self) -> impl Iterator<Item = &str> + Clone {
        self.0.split_inclusive('\n')
    }
}

/// Reads a text file.
pub(super) fn text(context: &Context<'_>, path: &str) -> Result<PythonText, Raised> {
    let bytes = context
        .tree
        .read(path, MAX)
        .map_err(|error| Raised::new(format!("{path}: {error}")))?;
    let mut text = String::from_utf8(bytes).map_err(|_| Raised::new(format!("{path} is not UTF-8 text")))?;
    if text.contains('\r') {
        text = text.replace("\r\n", "\n").replace('\r', "\n");
    }
    Ok(PythonText(text))
}

/// Checks the text by all bounds of `rules`, as the checkers since v3.1 do.
pub(super) fn judge(
    rules: &BenchmarkRules,
    scenario: Option<SubmittedScenario>,
    forms: AccuracyForms,
    text: &PythonText,
) -> Result<AccuracyResult, Raised> {
    let mut result = AccuracyResult::default();
    let lower = rules.accuracy_in(scenario);
    let mut seen = vec![false; lower.len()];
    let mut low = false;
    let mut high = false;
    for line in text.lines() {
        result.hash |= accuracy_text::hash(line).is_some();
        for (bound, seen) in lower.iter().zip(&mut seen) {
            let Some(text) = accuracy_text::metric(&bound.metric, forms, line) else {
                continue;
            };
            if parse(text)? >= bound.value() {
                *seen = true;
            } else {
                low = true;
            }
            note(&mut result.metrics, &bound.metric, text);
        }
        for bound in &rules.accuracy_at_most {
            if let Some(text) = accuracy_text::metric(&bound.metric, forms, line) {
                high |= parse(text)? > bound.value();
            }
        }
        if result.hash && seen.iter().all(|&seen| seen) {
            break;
        }
    }
    result.met = !low && !high && seen.iter().all(|&seen| seen);
    Ok(result)
}

/// Checks the text by the first bound only, as the checkers of v2.1 and v3.0 do. The last value before the hash counts.
pub(super) fn judge_first(
    rules: &BenchmarkRules,
    forms: AccuracyForms,
    text: &PythonText,
) -> Result<AccuracyResult, Raised> {
    let mut result = AccuracyResult::default();
    let Some(bound) = rules.accuracy.first() else {
        return Ok(result);
    };
    let mut last = None;
    for line in text.lines() {
        last = accuracy_text::metric(&bound.metric, forms, line).or(last);
        result.hash |= accuracy_text::hash(line).is_some();
        if result.hash && last.is_some() {
            break;
        }
    }
    if let Some(text) = last {
        result.met = parse(text)? >= bound.value();
        note(&mut result.metrics, &bound.metric, text);
    }
    Ok(result)
}

/// Compares the two accuracies of TEST01 in `directory` like its fallback, and describes a difference that is too large.
///
/// Returns `None` if they are close enough. `model` is the official benchmark.
pub(super) fn apart(
    context: &Context<'_>,
    (rules, scenario): (&BenchmarkRules, Option<SubmittedScenario>),
    model: &str,
    directory: &str,
) -> Result<Option<String>, Raised> {
    let bounds = rules.accuracy_in(scenario);
    let forms = context.round.submission.accuracy_forms;
    let values = |name: &str| last_values(bounds, forms, &text(context, &format!("{directory}/{name}"))?);
    let baseline = values("baseline_accuracy.txt")?;
    let compliance = values("compliance_accuracy.txt")?;
    for ((bound, baseline), compliance) in bounds.iter().zip(baseline).zip(compliance) {
        let metric = if context.checker.has(Trait::MetricDeltaIgnored) {
            ""
        } else {
            &bound.metric
        };
        let most = rules.delta_percent(model, metric);
        let delta = (1.0 - baseline / compliance).abs() * 100.0;
        // The condition is false for missing values (0) and NaN, so both fail.
        let close = baseline != 0.0 && compliance != 0.0 && delta <= most;
        if !close {
            return Ok(Some(format!(
                "{} is {baseline} before and {compliance} in the test, more than {most} % apart",
                bound.metric
            )));
        }
    }
    Ok(None)
}

/// Returns the last value of each metric, or 0 if there is none.
fn last_values(
    bounds: &[AccuracyBound],
    forms: AccuracyForms,
    text: &PythonText,
) -> Result<Vec<f64>, Raised> {
    let mut values = vec![0.0; bounds.len()];
    for line in text.lines() {
        for (bound, value) in bounds.iter().zip(&mut values) {
            if let Some(text) = accuracy_text::metric(&bound.metric, forms, line) {
                *value = parse(text)?;
            }
        }
    }
    Ok(values)
}

fn note(metrics: &mut Vec<(String, String)>, name: &str, text: &str) {
    match metrics.iter_mut().find(|(known, _)| known == name) {
        Some((_, value)) => text.clone_into(value),
        None => metrics.push((name.to_owned(), text.to_owned())),
    }
}

fn parse(text: &str) -> Result<f64, Raised> {
    text.parse()
        .map_err(|_| Raised::new(format!("`{text}` is not a number")))
}
