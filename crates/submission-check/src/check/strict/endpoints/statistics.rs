//! Recomputes the statistics that the endpoints harness writes of a value: mean, order, histogram and percentiles belong together.

use serde_json::{Map, Value};

use super::EndpointsJudge;
use crate::check::{finding::Findings, rules};

/// The allowed relative deviation of a recomputed figure.
const SLACK: f64 = 1e-6;
/// The allowed deviation of a percentile's rank. The harness rounds ranks down.
const RANKS: f64 = 2.0;
const FIX: &str = "put the harness's document of the run there";

/// The values of a run that have statistics.
const VALUES: [&str; 5] = [
    "ttft",
    "tpot",
    "latency",
    "output_sequence_lengths",
    "input_sequence_lengths",
];

impl EndpointsJudge<'_> {
    /// Checks the statistics of the performance run and of the accuracy run's responses.
    pub(super) fn statistics(&self, findings: &mut Findings) {
        let summary = &self.documents.summary;
        let completed = summary.value.get("n_samples_completed").and_then(Value::as_f64);
        for name in VALUES {
            if let Some(Value::Object(values)) = summary.value.get(name) {
                // Failed requests have a latency, but no tokens; an answer of one token has no time per further token.
                let of_all = name == "latency" || (self.prescribed.is_some() && name != "tpot");
                let count = completed.filter(|_| of_all);
                Statistics { name, values, count }.check(&summary.path, findings);
            }
        }
        for entry in self.accuracy_scores() {
            if let Some(Value::Object(values)) = entry.get("output_sequence_lengths") {
                let scored = entry
                    .get("response_counts")
                    .and_then(|counts| counts.get("scored"));
                let count = scored.or(entry.get("total_samples")).and_then(Value::as_f64);
                let name = "output_sequence_lengths";
                Statistics { name, values, count }.check(&self.documents.accuracy.path, findings);
            }
        }
    }
}

/// The statistics of one value.
struct Statistics<'a> {
    name: &'a str,
    values: &'a Map<String, Value>,
    /// The number of values, if it is known.
    count: Option<f64>,
}

/// A range of a histogram and the number of values in it.
struct Bucket {
    low: f64,
    high: f64,
    count: f64,
}

impl Statistics<'_> {
    fn number(&self, name: &str) -> Option<f64> {
        self.values.get(name).and_then(Value::as_f64)
    }

    /// Returns the percentiles from the lowest to the highest: share and value.
    fn percentiles(&self, of: &str) -> Vec<(f64, f64)> {
        let list = self.values.get(of).and_then(Value::as_object);
        let mut list: Vec<_> = list
            .into_iter()
            .flatten()
            .filter_map(|(share, value)| Some((share.parse::<f64>().ok()?, value.as_f64()?)))
            .collect();
        list.sort_by(|one, other| one.0.total_cmp(&other.0));
        list
    }

    fn buckets(&self) -> Option<Vec<Bucket>> {
        let histogram = self.values.get("histogram")?;
        let (bounds, counts) = (
            histogram.get("buckets")?.as_array()?,
            histogram.get("counts")?.as_array()?,
        );
        (bounds.len() == counts.len()).then_some(())?;
        let bucket = |(bounds, count): (&Value, &Value)| {
            Some(Bucket {
                low: bounds.get(0)?.as_f64()?,
                high: bounds.get(1)?.as_f64()?,
                count: count.as_f64()?,
            })
        };
        bounds.iter().zip(counts).map(bucket).collect()
    }

    fn check(&self, path: &str, findings: &mut Findings) {
        // A run without responses has no statistics.
        if self.values.get("total").is_none_or(Value::is_null) {
            return;
        }
        let faults = [self.order(), self.early_stopping(), self.mean(), self.histogram()];
        for fault in faults.into_iter().flatten() {
            let text = format!("{}: {fault}", self.name);
            findings.error(rules::ENDPOINTS_FIGURES, path, text, FIX);
        }
    }

    /// Checks that minimum, percentiles and maximum ascend, with the mean between them.
    fn order(&self) -> Option<String> {
        let (Some(min), Some(max), Some(mean)) = (self.number("min"), self.number("max"), self.number("avg"))
        else {
            return Some("min, max or avg is missing".to_owned());
        };
        let percentiles = self.percentiles("percentiles");
        if percentiles.is_empty() {
            return Some("the percentiles are missing".to_owned());
        }
        let middle = percentiles.iter().map(|(_, value)| *value);
        let all: Vec<_> = [min].into_iter().chain(middle).chain([max]).collect();
        if !all.is_sorted() || mean < min || mean > max {
            return Some("min, percentiles, max and avg are not in order".to_owned());
        }
        let median = percentiles.iter().find(|(share, _)| *share == 50.0);
        match (self.number("median"), median) {
            (Some(stated), Some((_, median))) if stated != *median => {
                Some(format!("median is {stated}, the 50th percentile {median}"))
            }
            _ => None,
        }
    }

    /// Checks that the estimates of early stopping are not better than the percentiles themselves.
    fn early_stopping(&self) -> Option<String> {
        let estimates = self.percentiles("early_stopping_percentiles");
        let percentiles = self.percentiles("percentiles");
        let max = self.number("max")?;
        estimates.into_iter().find_map(|(share, estimate)| {
            let (_, percentile) = percentiles.iter().find(|(other, _)| *other == share)?;
            (estimate < *percentile || estimate > max).then(|| {
                format!("the early stopping estimate of percentile {share} is {estimate}, the percentile {percentile}, max {max}")
            })
        })
    }

    /// Checks that the mean is the total over the number of values.
    fn mean(&self) -> Option<String> {
        let (total, mean) = (self.number("total")?, self.number("avg")?);
        let count = self
            .count
            .or_else(|| Some(self.buckets()?.iter().map(|bucket| bucket.count).sum()))?;
        let made = total / count;
        let close = (mean - made).abs() <= made.abs() * SLACK;
        (!close).then(|| format!("avg is {mean}, {total} over {count} values is {made}"))
    }

    /// Checks the histogram's number of values, and that mean and percentiles are possible with it.
    fn histogram(&self) -> Option<String> {
        let Some(buckets) = self.buckets().filter(|buckets| !buckets.is_empty()) else {
            return Some("the histogram is missing or incomplete".to_owned());
        };
        let count: f64 = buckets.iter().map(|bucket| bucket.count).sum();
        if self.count.is_some_and(|expected| expected != count) {
            return Some(format!(
                "the histogram has {count} values of {}",
                self.count.unwrap_or_default()
            ));
        }
        let joined = buckets.windows(2).all(|pair| match pair {
            [one, next] => one.low <= one.high && (one.high - next.low).abs() <= one.high.abs() * SLACK,
            _ => true,
        });
        let first = buckets.first().map_or(0.0, |bucket| bucket.low);
        let last = buckets.last().map_or(0.0, |bucket| bucket.high);
        let (min, max) = (self.number("min")?, self.number("max")?);
        if !joined || (first - min).abs() > min.abs() * SLACK || last < max * (1.0 - SLACK) {
            return Some("the histogram's ranges do not reach from min to max".to_owned());
        }
        let sum = |bound: fn(&Bucket) -> f64| {
            buckets
                .iter()
                .map(|bucket| bucket.count * bound(bucket))
                .sum::<f64>()
        };
        let (low, high) = (sum(|bucket| bucket.low), sum(|bucket| bucket.high));
        let total = self.number("total")?;
        if total < low * (1.0 - SLACK) || total > high * (1.0 + SLACK) {
            return Some(format!(
                "total is {total}, the histogram allows {low:.0} to {high:.0}"
            ));
        }
        self.percentiles("percentiles")
            .into_iter()
            .find_map(|(share, value)| {
                let at_most = |bound: fn(&Bucket) -> f64, limit: f64| {
                    let below = buckets.iter().filter(|bucket| bound(bucket) <= limit);
                    below.map(|bucket| bucket.count).sum::<f64>()
                };
                let rank = share / 100.0 * count;
                let (fewest, most) = (
                    at_most(|bucket| bucket.high, value * (1.0 - SLACK)),
                    at_most(|bucket| bucket.low, value * (1.0 + SLACK)),
                );
                let possible = fewest - RANKS <= rank && rank <= most + RANKS;
                (!possible).then(|| format!("percentile {share} is {value}, which the histogram excludes"))
            })
    }
}
