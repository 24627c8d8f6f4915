//! Metrics for benchmarks of one's own, which no official script computes: top-5, area under the curve, mean squared error, and exact match.

use std::fmt;

use half::f16;
use regatta_datasets::val_map::ValMap;
use regatta_mllog::read::{AccuracyEntry, AccuracyLogError};
use regatta_types::{
    accuracy_line::top1_line,
    benchmark::{AccuracyMetric, Dtype},
};

use super::{
    expected_values::ExpectedValues,
    first_responses::{OtherResponses, ResponseError, first_responses},
};

/// The number of classes among which the right one counts, for top-5.
const BEST: usize = 5;

/// A value of one of these metrics. Its `Display` has the form of the official script's line for classes, or `NAME=VALUE`.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// The metric's name in documents.
    pub name: &'static str,
    /// The value: a percentage for top-5 and exact match.
    pub value: f64,
    /// The number of correct samples, for these two.
    pub correct: Option<usize>,
    /// The number of samples with a response.
    pub total: usize,
    /// The number of further responses to the same samples, which are ignored.
    pub duplicates: usize,
    /// The indices of the samples without a response, ascending.
    pub missing: Vec<usize>,
}

impl Score {
    fn new(metric: AccuracyMetric, value: f64, correct: Option<usize>, others: OtherResponses) -> Self {
        Self {
            name: metric.official_name(),
            value,
            correct,
            total: others.total,
            duplicates: others.duplicates,
            missing: others.missing,
        }
    }

    fn of_correct(metric: AccuracyMetric, correct: usize, others: OtherResponses) -> Self {
        let percent = 100.0 * correct as f64 / others.total as f64;
        Self::new(metric, percent, Some(correct), others)
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.correct {
            Some(correct) => f.write_str(&top1_line(self.value, correct, self.total)),
            None => write!(f, "{}={}", self.name, self.value),
        }
    }
}

/// The share of samples whose class is among the five with the largest scores. Of equal scores, the first ones count as larger, as for the
/// largest one. `offset` is added to a position to get its class.
pub(crate) fn top5(
    entries: impl IntoIterator<Item = Result<AccuracyEntry, AccuracyLogError>>,
    map: &ValMap,
    dtype: Dtype,
    offset: i32,
) -> Result<Score, ResponseError> {
    let mut correct = 0;
    let others = first_responses(entries, map.len(), |index, data| {
        let scores = numbers(data, dtype)?;
        let label = map.label(index).unwrap_or_default();
        let place = label.checked_sub(i64::from(offset));
        let found = place
            .and_then(|place| usize::try_from(place).ok())
            .and_then(|label| Some((label, *scores.get(label)?)));
        let Some((label, own)) = found else {
            return Err(format!(
                "has {} scores, but none for its class {label}",
                scores.len()
            ));
        };
        let is_before = |(at, score): &(usize, &f64)| **score > own || (**score == own && *at < label);
        let before = scores.iter().enumerate().filter(is_before).count();
        correct += usize::from(before < BEST && !own.is_nan());
        Ok(())
    })?;
    Ok(Score::of_correct(AccuracyMetric::Top5, correct, others))
}

/// The area under the receiver operating characteristic: the probability that a sample of class 1 has a higher score than one of class 0;
/// pairs with equal scores count half. The score is the last number of a response, which for two classes is that of class 1.
pub(crate) fn auc(
    entries: impl IntoIterator<Item = Result<AccuracyEntry, AccuracyLogError>>,
    map: &ValMap,
    dtype: Dtype,
) -> Result<Score, ResponseError> {
    let mut scores: Vec<(f64, bool)> = Vec::new();
    let others = first_responses(entries, map.len(), |index, data| {
        let score = numbers(data, dtype)?.pop().unwrap_or(f64::NAN);
        let is_positive = match map.label(index) {
            Some(0) => false,
            Some(1) => true,
            label => {
                return Err(format!(
                    "is for class {}, but AUC is of classes 0 and 1",
                    label.unwrap_or(-1)
                ));
            }
        };
        if score.is_nan() {
            return Err("is not a number".to_owned());
        }
        scores.push((score, is_positive));
        Ok(())
    })?;
    let positive = scores.iter().filter(|(_, is_positive)| *is_positive).count();
    let negative = scores.len() - positive;
    if positive == 0 || negative == 0 {
        let reason = "all samples with a response have one class, so that there is no AUC".to_owned();
        return Err(ResponseError::Undefined(reason));
    }
    scores.sort_by(|one, other| one.0.total_cmp(&other.0));
    // Doubled, so that it is whole: the pairs in which the score of class 1 is higher, and half of the equal ones.
    let (mut doubled, mut below) = (0_u128, 0_u128);
    for equal in scores.chunk_by(|one, other| one.0 == other.0) {
        let ones = equal.iter().filter(|(_, is_positive)| *is_positive).count() as u128;
        let zeros = equal.len() as u128 - ones;
        doubled += ones * (2 * below + zeros);
        below += zeros;
    }
    let area = doubled as f64 / (2.0 * positive as f64 * negative as f64);
    Ok(Score::new(AccuracyMetric::Auc, area, None, others))
}

/// The mean of the squared differences from the expected values, over all elements of all samples.
pub(crate) fn mean_squared_error(
    entries: impl IntoIterator<Item = Result<AccuracyEntry, AccuracyLogError>>,
    expected: &ExpectedValues,
    dtype: Dtype,
) -> Result<Score, ResponseError> {
    let (mut sum, mut count) = (0.0, 0_u64);
    let others = first_responses(entries, expected.samples(), |index, data| {
        let found = numbers(data, dtype)?;
        let row = numbers(expected.row(index), expected.dtype())?;
        if found.len() != row.len() {
            return Err(format!(
                "has {} numbers, but {} are expected",
                found.len(),
                row.len()
            ));
        }
        let squares = found.iter().zip(&row).map(|(found, row)| (found - row).powi(2));
        let own: f64 = squares.sum();
        if !own.is_finite() {
            return Err("or its expected values have a number that is not finite".to_owned());
        }
        sum += own;
        count += found.len() as u64;
        Ok(())
    })?;
    Ok(Score::new(
        AccuracyMetric::MeanSquaredError,
        sum / count as f64,
        None,
        others,
    ))
}

/// The share of samples whose response has exactly the expected bytes.
pub(crate) fn exact_match(
    entries: impl IntoIterator<Item = Result<AccuracyEntry, AccuracyLogError>>,
    expected: &ExpectedValues,
) -> Result<Score, ResponseError> {
    let mut correct = 0;
    let others = first_responses(entries, expected.samples(), |index, data| {
        let row = expected.row(index);
        if data.len() != row.len() {
            return Err(format!(
                "has {} bytes, but {} are expected",
                data.len(),
                row.len()
            ));
        }
        correct += usize::from(data == row);
        Ok(())
    })?;
    Ok(Score::of_correct(AccuracyMetric::ExactMatch, correct, others))
}

/// Returns the elements of a response as doubles.
fn numbers(data: &[u8], dtype: Dtype) -> Result<Vec<f64>, String> {
    fn each<const N: usize>(data: &[u8], number: fn([u8; N]) -> f64) -> Option<Vec<f64>> {
        let (elements, rest) = data.as_chunks();
        (rest.is_empty() && !data.is_empty()).then(|| elements.iter().map(|&bytes| number(bytes)).collect())
    }
    let read = match dtype {
        Dtype::Float32 => each(data, |bytes| f32::from_le_bytes(bytes).into()),
        Dtype::Float16 => each(data, |bytes| f16::from_le_bytes(bytes).into()),
        Dtype::Float64 => each(data, f64::from_le_bytes),
        Dtype::Int32 => each(data, |bytes| i32::from_le_bytes(bytes).into()),
        Dtype::Int64 => each(data, |bytes| i64::from_le_bytes(bytes) as f64),
        Dtype::Int8 => each(data, |bytes| i8::from_le_bytes(bytes).into()),
        Dtype::Uint8 | Dtype::Bool => each(data, |bytes| u8::from_le_bytes(bytes).into()),
    };
    read.ok_or_else(|| {
        format!(
            "has {} bytes, which are not numbers of {}; hint: set `response_dtype` under [accuracy]",
            data.len(),
            dtype.word()
        )
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn log<const N: usize>(responses: &[[f32; N]]) -> Vec<Result<AccuracyEntry, AccuracyLogError>> {
        let entry = |(number, values): (usize, &[f32; N])| {
            Ok(AccuracyEntry {
                seq_id: number as u64,
                qsl_idx: number as u64,
                data: values.iter().flat_map(|value| value.to_le_bytes()).collect(),
                token_data: None,
                token_count: None,
            })
        };
        responses.iter().enumerate().map(entry).collect()
    }

    fn map(labels: &[i64]) -> ValMap {
        let file = tempfile::NamedTempFile::new().unwrap();
        let line = |(number, label): (usize, &i64)| format!("sample_{number} {label}\n");
        let text: String = labels.iter().enumerate().map(line).collect();
        fs::write(file.path(), text).unwrap();
        ValMap::read(file.path()).unwrap()
    }

    #[test]
    fn a_class_counts_among_the_five_largest_scores() {
        let scores = [7.0, 6.0, 5.0, 4.0, 3.0, 3.0, 1.0];
        let of_label = |label: i64, offset: i32| {
            top5(log(&[scores]), &map(&[label]), Dtype::Float32, offset).map(|score| score.value)
        };
        assert_eq!(of_label(0, 0).unwrap(), 100.0);
        assert_eq!(of_label(4, 0).unwrap(), 100.0);
        assert_eq!(
            of_label(5, 0).unwrap(),
            0.0,
            "of equal scores the first is larger"
        );
        assert_eq!(of_label(4, -1).unwrap(), 0.0, "the first position is no class");
        assert_eq!(
            of_label(7, 0).unwrap_err().to_string(),
            "the response in entry 1 (sample 0) has 7 scores, but none for its class 7"
        );
        let score = top5(log(&[scores, [0.0; 7]]), &map(&[6, 1, 2]), Dtype::Float32, 0).unwrap();
        assert_eq!(score.to_string(), "accuracy=50.000%, good=1, total=2");
        assert_eq!(score.missing, [2]);
    }

    #[test]
    fn the_area_under_the_curve_counts_pairs() {
        let area = |scores: &[[f32; 1]], labels: &[i64]| auc(log(scores), &map(labels), Dtype::Float32);
        let of = |scores: &[[f32; 1]], labels: &[i64]| area(scores, labels).unwrap().value;
        assert_eq!(of(&[[0.1], [0.4], [0.35], [0.8]], &[0, 0, 1, 1]), 0.75);
        assert_eq!(of(&[[0.5], [0.5], [0.5]], &[0, 1, 1]), 0.5);
        assert_eq!(of(&[[0.9], [0.1]], &[0, 1]), 0.0);
        let one_class = area(&[[0.9], [0.1]], &[1, 1]).unwrap_err();
        assert_eq!(
            one_class.to_string(),
            "all samples with a response have one class, so that there is no AUC"
        );
        assert!(area(&[[f32::NAN], [0.1]], &[0, 1]).is_err());
        assert!(area(&[[0.1]], &[2]).is_err());
        let two = auc(log(&[[0.8, 0.2], [0.3, 0.7]]), &map(&[0, 1]), Dtype::Float32).unwrap();
        assert_eq!(two.to_string(), "AUC=1");
    }

    #[test]
    fn expected_values_are_compared_element_by_element() {
        let expected = ExpectedValues::of_floats(2, &[1.0, 2.0, 3.0, 4.0]);
        let found = log(&[[1.0, 2.0], [3.0, 6.0]]);
        let error = mean_squared_error(found, &expected, Dtype::Float32).unwrap();
        assert_eq!(error.to_string(), "MSE=1");
        let exact = exact_match(log(&[[1.0, 2.0], [3.0, 6.0]]), &expected).unwrap();
        assert_eq!((exact.value, exact.correct), (50.0, Some(1)));
        let short = mean_squared_error(log(&[[1.0]]), &expected, Dtype::Float32).unwrap_err();
        assert_eq!(
            short.to_string(),
            "the response in entry 1 (sample 0) has 1 numbers, but 2 are expected"
        );
        let infinite =
            mean_squared_error(log(&[[1.0, f32::INFINITY]]), &expected, Dtype::Float32).unwrap_err();
        assert!(
            infinite.to_string().ends_with("have a number that is not finite"),
            "{infinite}"
        );
        let odd = mean_squared_error(log(&[[1.0]]), &expected, Dtype::Int64).unwrap_err();
        assert!(
            odd.to_string()
                .contains("has 4 bytes, which are not numbers of int64"),
            "{odd}"
        );
    }
}
