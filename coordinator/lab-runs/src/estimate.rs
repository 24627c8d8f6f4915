//! Estimates rates for `user.conf` from the device's recorded runs.
//!
//! LoadGen plans the number of queries by these rates. A wrong rate makes a short run INVALID (too few queries) or needlessly long. The
//! margins give a VALID run on a machine whose speed varies by about ten percent. An estimate is only a setting in `user.conf`: LoadGen
//! measures.

use std::collections::BTreeMap;

use regatta_types::{Mode, Scenario, documents::RunSpec};

use regatta_lab_store::RunRow;

/// Offline: LoadGen issues about `target_qps x 1.1 x duration` samples, which must last for the duration.
const OFFLINE_MARGIN: f64 = 1.2;
/// Offline, when only other scenarios are measured: batches are faster than single samples.
const OFFLINE_MARGIN_FROM_OTHERS: f64 = 1.6;
/// SingleStream and MultiStream: LoadGen prepares queries by the expected latency, and too few would run out.
const LATENCY_MARGIN: f64 = 0.5;
/// Server: the share of one stream's rate at which queues stay short.
const SERVER_SHARE: f64 = 0.2;
/// Server: the factor for the next rate after one was too high.
const SERVER_RETREAT: f64 = 0.4;

/// Returns the conf lines for a run, estimated from `past`: the device's recorded runs of the same benchmark and engine, newest first.
pub(super) fn estimate(spec: &RunSpec, past: &[RunRow]) -> BTreeMap<String, String> {
    let past = Past { spec, rows: past };
    let (key, value) = match spec.scenario {
        Scenario::SingleStream | Scenario::MultiStream => ("target_latency", past.target_latency_ms()),
        Scenario::Server => ("target_qps", past.server_qps()),
        Scenario::Offline => ("target_qps", past.offline_qps()),
    };
    value
        .filter(|value| value.is_finite() && *value > 0.0)
        .map(|value| {
            (
                format!("{}.{}.{key}", spec.benchmark.loadgen_model, spec.scenario),
                rounded(value),
            )
        })
        .into_iter()
        .collect()
}

/// Rounds to four significant digits, because more would suggest a precision that is not there.
fn rounded(value: f64) -> String {
    let scale = 10f64.powf(3.0 - value.log10().floor());
    format!("{}", (value * scale).round() / scale)
}

struct Past<'a> {
    spec: &'a RunSpec,
    rows: &'a [RunRow],
}

impl Past<'_> {
    /// Returns the newest complete run of a scenario and mode with the same engine settings, because other settings have other speeds.
    fn newest(&self, scenario: Scenario, mode: Mode) -> Option<&RunRow> {
        self.rows.iter().find(|row| {
            row.scenario == scenario
                && row.mode == mode
                // An audit may use a single sample.
                && row.draft.spec.audit.is_none()
                && row.draft.spec.task.is_measurement()
                && row.draft.spec.engine == self.spec.engine
                && row.outcome.as_ref().is_some_and(|outcome| outcome.complete)
        })
    }

    fn query_ns(&self, scenario: Scenario) -> Option<f64> {
        [Mode::PerformanceOnly, Mode::AccuracyOnly]
            .into_iter()
            .find_map(|mode| {
                self.newest(scenario, mode)?
                    .outcome
                    .as_ref()?
                    .judgement
                    .rates
                    .query_ns
            })
    }

    fn samples_per_second(&self, scenario: Scenario, mode: Mode) -> Option<f64> {
        self.newest(scenario, mode)?
            .outcome
            .as_ref()?
            .judgement
            .rates
            .samples_per_second
    }

    fn target_latency_ms(&self) -> Option<f64> {
        Some(self.query_ns(self.spec.scenario)? / 1e6 * LATENCY_MARGIN)
    }

    fn offline_qps(&self) -> Option<f64> {
        if let Some(rate) = self.samples_per_second(Scenario::Offline, Mode::PerformanceOnly) {
            return Some(rate * OFFLINE_MARGIN);
        }
        let streams = [Scenario::SingleStream, Scenario::MultiStream]
            .map(|scenario| self.samples_per_second(scenario, Mode::PerformanceOnly));
        let accuracy = self.samples_per_second(Scenario::Offline, Mode::AccuracyOnly);
        let fastest = streams.into_iter().chain([accuracy]).flatten().reduce(f64::max)?;
        Some(fastest * OFFLINE_MARGIN_FROM_OTHERS)
    }

    fn server_qps(&self) -> Option<f64> {
        let before = self
            .newest(Scenario::Server, Mode::PerformanceOnly)
            .and_then(|row| row.outcome.as_ref());
        if let Some(outcome) = before
            && let Some(rate) = outcome.judgement.rates.target_qps
        {
            return Some(if outcome.judgement.valid == Some(false) {
                rate * SERVER_RETREAT
            } else {
                rate
            });
        }
        Some(1e9 / self.query_ns(Scenario::SingleStream)? * SERVER_SHARE)
    }
}

#[cfg(test)]
mod tests {
    use regatta_catalogue::catalogue::Catalogue;
    use regatta_types::{
        documents::{Delivery, EngineKind, EngineSpec, LoadgenChoice, Rates, RunLength, RunTask},
        engine_settings::EngineSettings,
    };

    use super::*;
    use crate::ResolvedRequest;
    use regatta_lab_store::examples::example_row;

    fn row(scenario: Scenario, mode: Mode, batch_size: usize, rates: Rates) -> RunRow {
        let catalogue = Catalogue::read(None).unwrap();
        let request = ResolvedRequest {
            device: "0".repeat(32).parse().unwrap(),
            benchmark: catalogue.benchmark("digits").unwrap(),
            round: catalogue.round(None).unwrap(),
            scenario,
            mode,
            engine: EngineSpec {
                kind: EngineKind::Tract,
                settings: EngineSettings {
                    batch_size: Some(batch_size),
                    ..EngineSettings::default()
                },
            },
            loadgen: LoadgenChoice::Native,
            length: RunLength::TestRun,
            delivery: Delivery::After,
            system: None,
            conf: BTreeMap::new(),
            state: None,
            gate: None,
            task: RunTask::Measurement,
        };
        let draft = request.draft().unwrap();
        let mut row = example_row(draft);
        row.outcome.as_mut().unwrap().judgement.rates = rates;
        row
    }

    fn estimated(scenario: Scenario, past: &[RunRow]) -> Vec<String> {
        let requested = row(scenario, Mode::PerformanceOnly, 1, Rates::default());
        estimate(&requested.draft.spec, past)
            .into_iter()
            .map(|(key, value)| format!("{key} = {value}"))
            .collect()
    }

    #[test]
    fn an_unknown_device_gets_no_estimate() {
        for scenario in Scenario::ALL {
            assert!(estimated(scenario, &[]).is_empty());
        }
    }

    #[test]
    fn offline_goes_by_its_own_rate_before_others() {
        let rate = |samples| Rates {
            samples_per_second: Some(samples),
            ..Rates::default()
        };
        let stream = row(Scenario::MultiStream, Mode::PerformanceOnly, 1, rate(5_000.0));
        assert_eq!(
            estimated(Scenario::Offline, std::slice::from_ref(&stream)),
            ["digits.Offline.target_qps = 8000"]
        );
        let own = row(Scenario::Offline, Mode::PerformanceOnly, 1, rate(20_000.0));
        assert_eq!(
            estimated(Scenario::Offline, &[stream, own]),
            ["digits.Offline.target_qps = 24000"]
        );
    }

    #[test]
    fn the_newest_run_counts_and_other_settings_do_not() {
        let rate = |ns| Rates {
            query_ns: Some(ns),
            ..Rates::default()
        };
        let other = row(Scenario::SingleStream, Mode::PerformanceOnly, 8, rate(9e6));
        let newest = row(Scenario::SingleStream, Mode::PerformanceOnly, 1, rate(123_456.0));
        let older = row(Scenario::SingleStream, Mode::PerformanceOnly, 1, rate(7e6));
        let past = [other, newest, older];
        assert_eq!(
            estimated(Scenario::SingleStream, &past),
            ["digits.SingleStream.target_latency = 0.06173"]
        );
        assert_eq!(
            estimated(Scenario::Server, &past),
            ["digits.Server.target_qps = 1620"]
        );
    }

    #[test]
    fn server_keeps_a_rate_that_was_valid_and_retreats_from_one_that_was_not() {
        let rates = Rates {
            target_qps: Some(1_000.0),
            ..Rates::default()
        };
        let mut before = row(Scenario::Server, Mode::PerformanceOnly, 1, rates);
        assert_eq!(
            estimated(Scenario::Server, std::slice::from_ref(&before)),
            ["digits.Server.target_qps = 1000"]
        );
        before.outcome.as_mut().unwrap().judgement.valid = Some(false);
        assert_eq!(
            estimated(Scenario::Server, &[before]),
            ["digits.Server.target_qps = 400"]
        );
    }
}
