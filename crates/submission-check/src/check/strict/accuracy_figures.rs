//! Checks the figures in an `accuracy.txt` against each other.
//!
//! A reference script prints most results together with the figures that they are computed from. This module does not check
//! whether a result meets its target.

use super::case::Case;
use crate::check::{
    accuracy_text::counted,
    finding::{Findings, Severity},
    rules,
};

/// The fix for figures that the reference script cannot have printed.
const FIX: &str = "put the reference accuracy script's output there";
/// The tolerance for percentages with three decimal places.
const THREE_PLACES: f64 = 0.001;
/// The tolerance for averages with four decimal places.
const FOUR_PLACES: f64 = 0.0001;
/// The prefix of the line that COCO's evaluation of detections prints before `mAP`.
const AVERAGE_PRECISION: &str = "Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] =";
/// The factor by which a result may exceed the reference model's.
const ABOVE_REFERENCE: f64 = 1.02;
/// Metrics that rarely exceed the reference unless a part of the data set is left out.
const OF_WHOLE_SET: [&str; 7] = ["acc", "mAP", "F1", "WER", "ACCURACY", "DICE", "AUC"];

/// The path and the lines of a text file.
pub(super) struct AccuracyText<'a> {
    pub(super) path: &'a str,
    pub(super) lines: &'a [String],
}

/// A line of a text file.
#[derive(Debug, Clone, Copy)]
struct TextLine<'a> {
    /// Counted from 1.
    number: u64,
    text: &'a str,
}

impl AccuracyText<'_> {
    fn numbered(&self) -> impl Iterator<Item = TextLine<'_>> {
        (1..)
            .zip(self.lines)
            .map(|(number, text)| TextLine { number, text })
    }

    fn error(&self, line: u64, text: String, findings: &mut Findings) {
        findings.error(rules::ACCURACY, (self.path, Some(line)), text, FIX);
    }
}

/// Checks the figures. `library` is the number of samples in the accuracy run.
pub(super) fn check(case: &Case<'_>, text: &AccuracyText<'_>, library: Option<u64>, findings: &mut Findings) {
    let data_set = case
        .rules
        .dataset_samples_in(case.scenario)
        .filter(|_| case.bound());
    let expected = data_set.or(library);
    for line in text.numbered() {
        top1(text, line, findings);
        sums(text, line, findings);
        found_results(text, line, expected, findings);
        let samples = counted(line.text).map(|(_, _, total)| total as f64);
        let samples = samples
            .or_else(|| named(line.text, "gen_num"))
            .or_else(|| named(line.text, "num-samples"));
        if let (Some(samples), Some(expected)) = (samples, expected)
            && samples != expected as f64
        {
            let text_of = format!("accuracy is of {samples} samples, the data set has {expected}");
            findings.error(rules::DATASET, (text.path, Some(line.number)), text_of, FIX);
        }
    }
    average_precision(text, findings);
}

/// Checks the number of responses that a script for detections prints. A log may repeat samples, but must contain all.
fn found_results(
    text: &AccuracyText<'_>,
    line: TextLine<'_>,
    expected: Option<u64>,
    findings: &mut Findings,
) {
    let counted = |what: &str| -> Option<u64> {
        let count = line.text.trim().strip_prefix("found ")?.strip_suffix(what)?;
        count.parse().ok()
    };
    let Some(expected) = expected else { return };
    for what in [" results", " images"] {
        if let Some(found) = counted(what).filter(|&found| found < expected) {
            let text_of = format!("accuracy is of {found}{what}, the data set has {expected} samples");
            findings.error(rules::DATASET, (text.path, Some(line.number)), text_of, FIX);
        }
    }
}

/// Checks that a top-1 accuracy is the share of correct samples.
fn top1(text: &AccuracyText<'_>, line: TextLine<'_>, findings: &mut Findings) {
    let Some((percent, good, total)) = counted(line.text) else {
        return;
    };
    let share = good as f64 / total as f64 * 100.0;
    // The comparison is false for NaN, so 0 of 0 is an error.
    let close = (share - percent).abs() < THREE_PLACES;
    if !close {
        let found = format!("accuracy is {percent} %, {good} of {total} are {share:.3} %");
        text.error(line.number, found, findings);
    }
}

/// Checks results that are sums or averages of other figures in the same line.
fn sums(text: &AccuracyText<'_>, line: TextLine<'_>, findings: &mut Findings) {
    let mut judge = |what: &str, found: f64, made: f64, slack: f64| {
        // The comparison is false for NaN, so NaN is an error.
        let close = (found - made).abs() <= slack;
        if !close {
            text.error(
                line.number,
                format!("{what} is {found}, the line's other figures make {made:.5}"),
                findings,
            );
        }
    };
    if let Some(rest) = line.text.strip_prefix("Word Error Rate:")
        && let (Some(errors), Some(accuracy)) = (first_number(rest), after(rest, "accuracy="))
    {
        judge("accuracy", accuracy, 100.0 - errors, THREE_PLACES);
    }
    if line.text.trim_start().starts_with("Accuracy:")
        && let (Some(mean), Some(kidney), Some(tumor)) = (
            after(line.text, "mean ="),
            after(line.text, "kidney ="),
            after(line.text, "tumor ="),
        )
    {
        judge("mean", mean, f64::midpoint(kidney, tumor), FOUR_PLACES);
    }
    if let (Some(each), Some(tokens), Some(samples)) = (
        named(line.text, "tokens_per_sample"),
        named(line.text, "gen_tok_len"),
        named(line.text, "gen_num"),
    ) {
        judge("tokens_per_sample", each, tokens / samples, 0.051);
    }
    let classes = ["Pedestrian", "Cyclist", "Car"].map(|class| after(line.text, &format!("'{class}': [")));
    if let (Some(total), [Some(a), Some(b), Some(c)]) = (named(line.text, "Total"), classes) {
        judge("Total", total, (a + b + c) / 3.0, THREE_PLACES);
    }
    let (exact, f1) = (named(line.text, "exact_match"), named(line.text, "f1"));
    if let (Some(exact), Some(f1)) = (exact, f1)
        && f1 < exact
    {
        text.error(
            line.number,
            format!("f1 is {f1}, below exact_match, {exact}"),
            findings,
        );
    }
}

/// Checks that `mAP` repeats the average precision in percent.
fn average_precision(text: &AccuracyText<'_>, findings: &mut Findings) {
    let mut average = None;
    for line in text.numbered() {
        if let Some(rest) = line.text.trim_start().strip_prefix(AVERAGE_PRECISION) {
            let places = rest.trim().split_once('.').map_or(0, |(_, places)| places.len());
            let slack = 0.6 * 10_f64.powi(2 - i32::try_from(places).unwrap_or(0));
            average = first_number(rest).map(|average| (average * 100.0, slack));
        }
        let percent = line.text.strip_prefix("mAP=").and_then(first_number);
        if let (Some(percent), Some((average, slack))) = (percent, average)
            && (percent - average).abs() > slack + THREE_PLACES
        {
            let found = format!("mAP is {percent} %, the average precision above it is {average:.3} %");
            text.error(line.number, found, findings);
        }
    }
}

/// A metric of an accuracy run.
#[derive(Debug, Clone, Copy)]
pub(super) struct AccuracyFigure<'a> {
    pub(super) metric: &'a str,
    pub(super) value: f64,
    /// The value of the reference model.
    pub(super) reference: f64,
}

/// Warns about a result that is higher than the reference model's over the complete data set.
pub(super) fn too_good(
    case: &Case<'_>,
    place: (&str, u64),
    result: AccuracyFigure<'_>,
    findings: &mut Findings,
) {
    let AccuracyFigure {
        metric,
        value,
        reference,
    } = result;
    let (path, line) = place;
    // Some rounds state the reference as a fraction although the script prints a percentage.
    let reference = if value > 10.0 * reference {
        reference * 100.0
    } else {
        reference
    };
    if case.bound() && OF_WHOLE_SET.contains(&metric) && value > reference * ABOVE_REFERENCE {
        let text = format!(
            "{metric} is {value}, the reference model has {reference}: is it of the complete data set?"
        );
        let fix = "be ready to explain it in the review";
        findings.add(Severity::Warning, rules::ACCURACY, (path, Some(line)), text, fix);
    }
}

/// Returns the number after a quoted name and its colon. The number may be quoted.
fn named(line: &str, name: &str) -> Option<f64> {
    ['\'', '"'].into_iter().find_map(|quote| {
        let rest = after_text(line, &format!("{quote}{name}{quote}:"))?;
        first_number(rest.trim_start().trim_start_matches(['\'', '"']))
    })
}

fn after(line: &str, opener: &str) -> Option<f64> {
    first_number(after_text(line, opener)?)
}

fn after_text<'a>(line: &'a str, opener: &str) -> Option<&'a str> {
    line.split_once(opener).map(|(_, rest)| rest)
}

/// Returns the number at the start of a text, after spaces.
fn first_number(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let part_of_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e');
    let end = text.find(|c| !part_of_number(c)).unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}
