//! Checks the performance run of the endpoints harness, and reads its result.
//!
//! The run must be complete, of its directory's scenario, with the round's seeds and duration, and within the latency limits.

use regatta_catalogue::round::SubmittedScenario;
use regatta_types::Scenario;
use serde_json::Value;

use super::EndpointsJudge;
use crate::check::{endpoints::HarnessDocument, finding::Findings, rules, run_log::shown};

impl EndpointsJudge<'_> {
    /// Checks that the run is complete and that every request was answered.
    pub(super) fn run(&self, findings: &mut Findings) {
        let HarnessDocument { path, value, .. } = &self.documents.summary;
        let fix = "repeat the run until every request is answered";
        let state = value.get("state").and_then(Value::as_str);
        let complete = value.get("complete");
        if complete != Some(&Value::Bool(true)) || state != Some("complete") {
            let state = state.unwrap_or("missing");
            let complete = complete.map_or_else(|| "missing".to_owned(), Value::to_string);
            let text = format!("the run is not complete: state is {state}, complete is {complete}");
            findings.error(rules::VALID, path, text, fix);
        }
        let log = &self.logs.performance;
        if log.error_count > 0 {
            let text = format!("{} requests failed", log.error_count);
            findings.error(rules::LOADGEN_ERRORS, path, text, fix);
        }
        let number = |key: &str| log.number(key).filter(|count| count.is_finite());
        if let (Some(issued), Some(completed)) =
            (number("generated_query_count"), number("result_query_count"))
            && completed < issued
        {
            let text = format!("{completed} of {issued} requests were completed");
            findings.error(rules::VALID, path, text, fix);
        }
    }

    /// Checks that the configuration matches the directory's scenario.
    pub(super) fn scenario(&self, findings: &mut Findings) {
        let path = &self.documents.config.path;
        let run_type = self.config(&["type"]).and_then(Value::as_str).unwrap_or_default();
        let to = self.case.scenario;
        let fits = match to {
            // A SingleStream run is an online run with a concurrency of one.
            SubmittedScenario::SingleStream => {
                ["online", "singlestream"].contains(&run_type.to_ascii_lowercase().as_str())
            }
            SubmittedScenario::Server => {
                ["online", "server"].contains(&run_type.to_ascii_lowercase().as_str())
            }
            SubmittedScenario::Interactive => {
                ["online", "interactive"].contains(&run_type.to_ascii_lowercase().as_str())
            }
            _ => run_type.eq_ignore_ascii_case(to.as_str()),
        };
        if !fits {
            let text = format!("the run's type is `{run_type}`, the directory {to}");
            findings.error(rules::INFERRED, path, text, format!("run {to}"));
        }
        let concurrency = self
            .config(&["settings", "load_pattern", "target_concurrency"])
            .and_then(Value::as_u64);
        if let (SubmittedScenario::SingleStream, Some(concurrency)) = (to, concurrency)
            && concurrency != 1
        {
            let text = format!("{concurrency} requests at a time are not {to}");
            findings.error(rules::INFERRED, path, text, "set target_concurrency to 1");
        }
    }

    /// Checks the seeds and the minimum duration.
    pub(super) fn settings(&self, findings: &mut Findings) {
        let path = &self.documents.config.path;
        let log = &self.logs.performance;
        let round = self.case.context.round;
        let found = |key: &str| log.value(key).map_or_else(|| "missing".to_owned(), shown);
        if let Some(seeds) = round.seeds() {
            for (key, name, expected) in [
                (
                    "effective_sample_index_rng_seed",
                    "dataloader_random_seed",
                    seeds.sample_index,
                ),
                (
                    "effective_schedule_rng_seed",
                    "scheduler_random_seed",
                    seeds.schedule,
                ),
            ] {
                if log.value(key).and_then(regatta_mllog::read::Value::as_u64) != Some(expected) {
                    let text = format!("{name} is {}, {} has {expected}", found(key), round.name);
                    let fix = format!("set settings.runtime.{name} and repeat the run");
                    findings.error(rules::SEEDS, path, text, fix);
                }
            }
        }
        let key = "effective_min_duration_ms";
        let needed = round.submission.min_duration_ms;
        if !log.number(key).is_some_and(|found| found >= needed as f64) {
            let text = format!("min_duration_ms is {}, at least {needed} is needed", found(key));
            let fix = format!("set settings.runtime.min_duration_ms to {needed} and repeat the run");
            findings.error(rules::DURATION, path, text, fix);
        }
        if self.case.job.description.network {
            let text = "the endpoints harness writes no name of the system under test";
            let fix = "run it with LoadGen in the network division";
            findings.error(rules::NETWORK, self.case.results, text, fix);
        }
    }

    /// Checks that latencies are within the scenario's limits: token latencies for language models, complete answers for others.
    pub(super) fn latencies(&self, findings: &mut Findings) {
        let rules_of = self.case.rules;
        let whole = match self.case.scenario {
            _ if rules_of.token_latencies => None,
            SubmittedScenario::Server => rules_of.server_latency_ns,
            SubmittedScenario::Interactive => rules_of.interactive_latency_ns,
            _ => None,
        };
        let tokens = rules_of.token_limits.get(&self.case.scenario);
        let bounds = [
            ("result_99.00_percentile_latency_ns", whole),
            (
                "result_first_token_99.00_percentile_latency_ns",
                tokens.map(|limits| limits.first_token_ns),
            ),
            (
                "result_time_per_output_token_99.00_percentile_ns",
                tokens.map(|limits| limits.per_token_ns),
            ),
        ];
        let log = &self.logs.performance;
        for (key, limit) in bounds {
            let Some(limit) = limit else { continue };
            if !log.number(key).is_some_and(|found| found <= limit as f64) {
                let found = log.value(key).map_or_else(|| "missing".to_owned(), shown);
                let text = format!("{key} is {found}, at most {limit} is allowed");
                let fix = "request fewer queries per second";
                findings.error(rules::LATENCY, &self.documents.summary.path, text, fix);
            }
        }
    }

    pub(super) fn result(&self, findings: &mut Findings) -> Option<f64> {
        let key = self.endpoints.result_keys.get(&self.case.scenario)?;
        let scenario = self.case.scenario.run();
        let own = self.case.rules.result_keys.get(&scenario);
        let streams = matches!(scenario, Scenario::SingleStream | Scenario::MultiStream);
        // The official checker only uses the benchmark's own key for SingleStream and MultiStream.
        let key = own.filter(|_| streams).unwrap_or(key);
        let value = self.logs.performance.number(key);
        let value = value.filter(|value| value.is_finite() && *value > 0.0);
        if value.is_none() {
            let text = format!("gives no value for {key}");
            findings.error(
                rules::RESULT,
                &self.documents.summary.path,
                text,
                "repeat the run",
            );
        }
        let unit = match streams {
            true if self.case.rules.latency_in_seconds => 1e9,
            true => 1e6,
            false => 1.0,
        };
        Some(value? / unit)
    }
}
