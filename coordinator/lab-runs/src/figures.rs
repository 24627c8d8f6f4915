//! Reads LoadGen's figures of a run from its logs and evidence: the verdict, the metric, and the speed for planning later runs. It
//! computes no result itself.

use regatta_mllog::{
    read::{Summary, SummaryEntry, Verdict},
    result_keys::RateKey,
};
use regatta_types::documents::{Metric, Rates};
use regatta_types::{
    Mode, Scenario,
    documents::{Attempt, Evidence, RunSpec},
};

/// LoadGen's figures of a run.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) valid: Option<bool>,
    pub(super) reasons: Vec<String>,
    pub(super) metric: Option<Metric>,
    pub(super) rates: Rates,
}

/// Returns the figures of a run, from its summary or from its evidence alone.
pub(super) fn figures(spec: &RunSpec, summary: Option<&Summary>, evidence: Option<&Evidence>) -> Figures {
    let attempt = evidence.and_then(|evidence| evidence.attempts.last());
    let mut figures = Figures {
        valid: attempt.and_then(|attempt| attempt.valid),
        reasons: attempt
            .map(|attempt| attempt.invalid_reasons.clone())
            .unwrap_or_default(),
        ..Figures::default()
    };
    if let Some(summary) = summary {
        figures.take_summary(spec, summary);
    }
    if spec.mode == Mode::AccuracyOnly {
        figures.rates = attempt
            .map(|attempt| accuracy_rates(spec, attempt))
            .unwrap_or_default();
    }
    figures
}

impl Figures {
    fn take_summary(&mut self, spec: &RunSpec, summary: &Summary) {
        if let Some(verdict) = summary.verdict {
            // Both verdicts come from the run process. INVALID wins.
            self.valid = Some(verdict == Verdict::Valid && self.valid != Some(false));
        }
        if self.valid == Some(false) && self.reasons.is_empty() {
            let unmet = summary
                .requirements
                .iter()
                .filter(|requirement| !requirement.satisfied);
            self.reasons = unmet
                .map(|requirement| format!("{} not satisfied", requirement.name))
                .collect();
        }
        self.metric = summary.metrics.first().and_then(metric);
        self.rates = measured_rates(spec, summary);
    }
}

/// Parses `90.0th percentile latency (ns) : 123` and `Samples per second: 123`, and takes the unit from the label.
fn metric(entry: &SummaryEntry) -> Option<Metric> {
    let value = entry.number()?;
    let (name, unit) = match entry.label.split_once('(') {
        Some((name, unit)) if unit.starts_with("ns") => (name.trim(), "ns"),
        _ => {
            let rate = RateKey::labelled(&entry.label);
            (entry.label.as_str(), rate.map_or("queries/s", |rate| rate.unit))
        }
    };
    Some(Metric {
        name: name.to_owned(),
        value,
        unit: unit.to_owned(),
    })
}

fn samples_per_query(summary: &Summary) -> f64 {
    number(summary, "samples_per_query").unwrap_or(8.0)
}

fn number(summary: &Summary, parameter: &str) -> Option<f64> {
    summary.parameter(parameter).and_then(SummaryEntry::number)
}

fn measured_rates(spec: &RunSpec, summary: &Summary) -> Rates {
    let query_ns = summary
        .statistic("50.00 percentile latency (ns)")
        .and_then(SummaryEntry::number);
    let per_second = |samples: f64| query_ns.filter(|ns| *ns > 0.0).map(|ns| samples * 1e9 / ns);
    match spec.scenario {
        Scenario::SingleStream => Rates {
            samples_per_second: per_second(1.0),
            query_ns,
            target_qps: None,
        },
        Scenario::MultiStream => Rates {
            samples_per_second: per_second(samples_per_query(summary)),
            query_ns,
            target_qps: None,
        },
        Scenario::Server => Rates {
            target_qps: number(summary, "target_qps"),
            ..Rates::default()
        },
        Scenario::Offline => Rates {
            samples_per_second: summary.metrics.first().and_then(SummaryEntry::number),
            ..Rates::default()
        },
    }
}

/// Returns a first estimate of the speed: the accuracy pass computes every sample once. It includes LoadGen's start and end, so the
/// estimate is on the slow side.
fn accuracy_rates(spec: &RunSpec, attempt: &Attempt) -> Rates {
    let (Some(started), Some(ended)) = (&attempt.started, &attempt.ended) else {
        return Rates::default();
    };
    if started.boot_id != ended.boot_id || ended.monotonic_ns <= started.monotonic_ns {
        return Rates::default();
    }
    let nanoseconds = (ended.monotonic_ns - started.monotonic_ns) as f64;
    let samples = spec.benchmark.dataset.total_samples as f64;
    let per_query = match spec.scenario {
        Scenario::SingleStream => Some(1.0),
        Scenario::MultiStream => Some(8.0),
        // Queries of these scenarios overlap.
        Scenario::Server | Scenario::Offline => None,
    };
    Rates {
        // In Server, the accuracy pass arrives at the Server rate, which says nothing about the machine.
        samples_per_second: (spec.scenario != Scenario::Server).then_some(samples * 1e9 / nanoseconds),
        query_ns: per_query.map(|per_query| nanoseconds / samples * per_query),
        target_qps: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Summary {
        Summary::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn loadgens_headline_is_taken_with_its_unit() {
        let headline = |line: &str| {
            let text =
                format!("MLPerf Results Summary\nMode     : PerformanceOnly\n{line}\nResult is : VALID\n");
            metric(&read(&text).metrics[0]).unwrap()
        };
        for (line, name, value, unit) in [
            (
                "90.0th percentile latency (ns) : 125123",
                "90.0th percentile latency",
                125_123.0,
                "ns",
            ),
            (
                "Samples per second: 4538.07",
                "Samples per second",
                4538.07,
                "samples/s",
            ),
            (
                "Completed samples per second    : 856.23",
                "Completed samples per second",
                856.23,
                "samples/s",
            ),
            (
                "Tokens per second (inferred): 12.5",
                "Tokens per second (inferred)",
                12.5,
                "tokens/s",
            ),
        ] {
            assert_eq!(
                headline(line),
                Metric {
                    name: name.to_owned(),
                    value,
                    unit: unit.to_owned()
                }
            );
        }
    }
}
