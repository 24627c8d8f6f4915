//! Reads figures of a run from its detail log: the number of samples, and the figure that the round's checker reports. It computes no
//! result itself.

use std::io::BufRead;

use regatta_catalogue::round::Round;
use regatta_mllog::{
    read::DetailReader,
    result_keys::{EARLY_STOPPING_ESTIMATES, RateKey},
};
use regatta_types::{Mode, documents::RunSpec};

use regatta_types::documents::Metric;

/// The figures in a detail log.
#[derive(Debug, Default, PartialEq)]
pub(super) struct DetailFigures {
    /// Queries times samples per query.
    pub(super) samples: Option<u64>,
    /// The figure that the checker reports. `None` when the log has none, for example when early stopping made no estimate.
    pub(super) judged: Option<Metric>,
}

/// Returns the key of the figure that the round's checker reports for a run. `None` for runs without such a figure.
pub(super) fn judged_key<'r>(round: &'r Round, spec: &'r RunSpec) -> Option<&'r str> {
    if !matches!(spec.mode, Mode::PerformanceOnly | Mode::SubmissionRun) {
        return None;
    }
    let submission = &round.submission;
    let mut names = std::iter::once(&spec.benchmark.name).chain(&spec.benchmark.aliases);
    let rules = names.find_map(|name| Some(submission.rules_of(name)?.1));
    submission.result_key(rules, spec.scenario)
}

impl DetailFigures {
    /// Reads the figures. Lines that cannot be parsed are skipped; the other lines still count.
    pub(super) fn read(detail: impl BufRead, judged_key: Option<&str>) -> Self {
        let (mut queries, mut per_query) = (None, None);
        let (mut judged, mut percentile) = (None, None);
        for record in DetailReader::new(detail).flatten() {
            match record.key.as_str() {
                "generated_samples_per_query" => per_query = record.value.as_u64(),
                "result_query_count" => queries = record.value.as_u64(),
                "effective_target_latency_percentile" => percentile = record.value.as_f64(),
                key if Some(key) == judged_key => judged = record.value.as_f64(),
                _ => {}
            }
        }
        let judged = judged.filter(|value| value.is_finite() && *value > 0.0);
        Self {
            samples: queries.and_then(|queries: u64| queries.checked_mul(per_query?)),
            judged: judged
                .zip(judged_key)
                .map(|(value, key)| named(key, value, percentile)),
        }
    }
}

/// Names a value as LoadGen's summary does.
fn named(key: &str, value: f64, percentile: Option<f64>) -> Metric {
    let latency = |name: String| Metric {
        name,
        value,
        unit: "ns".to_owned(),
    };
    if EARLY_STOPPING_ESTIMATES.contains(&key) {
        return latency(match percentile {
            Some(fraction) => format!("Early stopping {:.1}th percentile estimate", fraction * 100.0),
            None => "Early stopping percentile estimate".to_owned(),
        });
    }
    if let Some(rate) = RateKey::of(key) {
        return Metric {
            name: rate.label.to_owned(),
            value,
            unit: rate.unit.to_owned(),
        };
    }
    let percentile = key
        .strip_prefix("result_")
        .and_then(|key| key.strip_suffix("_percentile_latency_ns"));
    match percentile {
        Some(percentile) => latency(format!("{percentile} percentile latency")),
        None => Metric {
            name: key.to_owned(),
            value,
            unit: String::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    use regatta_catalogue::catalogue::Catalogue;
    use regatta_types::Scenario;

    use super::*;
    use regatta_lab_store::examples::example_draft;

    fn line(key: &str, value: impl std::fmt::Display) -> String {
        format!(
            ":::MLLOG {{\"key\": \"{key}\", \"value\": {value}, \"metadata\": {{\"is_error\": false}}}}\n"
        )
    }

    #[test]
    fn samples_are_queries_times_their_size() {
        let samples = |detail: &[u8]| DetailFigures::read(detail, None).samples;
        let detail = line("generated_samples_per_query", 8) + "garbage\n" + &line("result_query_count", 662);
        assert_eq!(samples(detail.as_bytes()), Some(5_296));
        assert_eq!(
            samples(line("result_query_count", 662).as_bytes()),
            None,
            "half an answer is none"
        );
        assert_eq!(samples(b"\xff\xfe"), None);
    }

    #[test]
    fn the_judged_figure_is_the_one_of_the_rounds_checker() {
        let round = regatta_catalogue::known::round("v6.1").unwrap().unwrap();
        let mut spec = example_draft("0".repeat(32).parse().unwrap()).spec;
        let mut judged = |scenario, detail: &str| {
            spec.scenario = scenario;
            DetailFigures::read(detail.as_bytes(), judged_key(round, &spec)).judged
        };
        let log = line("effective_target_latency_percentile", 0.99)
            + &line("result_99.00_percentile_per_query_latency_ns", 3_336_000)
            + &line("early_stopping_latency_ms", 4_473_000);
        let found = judged(Scenario::MultiStream, &log).unwrap();
        assert_eq!(found.name, "Early stopping 99.0th percentile estimate");
        assert_eq!((found.value, found.unit.as_str()), (4_473_000.0, "ns"));
        // LoadGen logs 0 when a run has too few queries for an estimate.
        assert_eq!(
            judged(Scenario::MultiStream, &line("early_stopping_latency_ms", 0)),
            None
        );
        let found = judged(Scenario::Offline, &line("result_samples_per_second", 19_614.2)).unwrap();
        assert_eq!(
            (found.name.as_str(), found.unit.as_str()),
            ("Samples per second", "samples/s")
        );
        let catalogue = Catalogue::read(None).unwrap();
        spec.benchmark = catalogue.benchmark("whisper").unwrap().clone();
        spec.scenario = Scenario::Offline;
        assert_eq!(judged_key(round, &spec), Some("result_tokens_per_second"));
    }
}
