//! A scenario that the endpoints harness ran: its documents stand in for LoadGen's logs. The official checker compares
//! hardly any of what is compared here.

use regatta_rules::{
    Scenario,
    round::{AccuracyBound, Endpoints, SubmittedScenario},
};
use serde_json::{Map, Value};

use super::{accuracy, measurements, scenario::Case, system};
use crate::check::{
    endpoints::{Document, Documents, Logs},
    finding::Findings,
    official::truthy,
    rules,
    run_log::{RunLog, shown},
};

/// What the page and the results need of the scenario.
pub(super) struct Judged {
    pub(super) log: RunLog,
    pub(super) result: Option<f64>,
}

/// Whether the scenario was run by the endpoints harness: it has its files and no LoadGen logs.
pub(super) fn is_one(case: &Case<'_>) -> bool {
    let there = |path: &str| case.context.tree.exists(&format!("{}/{path}", case.results));
    !there("performance/run_1/mlperf_log_detail.txt")
        && !there("accuracy/mlperf_log_detail.txt")
        && (there("config.yaml") || there("config.yml") || there("performance/result_summary.json"))
}

/// Judges it; `None` where its documents cannot be read as such.
pub(super) fn check(case: &Case<'_>, findings: &mut Findings) -> Option<Judged> {
    let round = case.context.round;
    let Some(endpoints) = &round.submission.endpoints else {
        let text = format!("{} takes no results of the endpoints harness", round.name);
        let mend = "run the scenario with LoadGen";
        findings.error(rules::ENDPOINTS, case.results, text, mend);
        return None;
    };
    if !endpoints.benchmarks.contains(&case.job.benchmark) {
        let text = format!("{} may not be run by the endpoints harness", case.job.benchmark);
        findings.error(rules::ENDPOINTS, case.results, text, "run it with LoadGen");
    }
    let documents = Documents::read(case.context.tree, case.results);
    for document in [&documents.summary, &documents.accuracy, &documents.config] {
        if let Some(fault) = &document.fault {
            let mend = "add the harness's own document of this run";
            findings.error(rules::ENDPOINTS, &document.path, fault.as_str(), mend);
        }
    }
    measurements::check(case, findings);
    accuracy::extra_files(case, findings);
    let logs = match documents.logs(Some(endpoints)) {
        Ok(logs) => logs,
        Err(text) => {
            let mend = "put the harness's own documents there: the official checker ends here";
            findings.error(rules::ENDPOINTS, case.results, text, mend);
            return None;
        }
    };
    let judge = Judge {
        case,
        endpoints,
        documents: &documents,
        logs: &logs,
    };
    judge.run(findings);
    judge.scenario(findings);
    judge.settings(findings);
    judge.latencies(findings);
    judge.accuracy(findings);
    judge.tests(findings);
    if case
        .context
        .tree
        .exists(&format!("{}/performance/power", case.results))
    {
        let path = format!("{}/performance/power", case.results);
        let text = "there is no LoadGen run that this power could belong to";
        findings.error(rules::POWER, &path, text, "remove it");
    }
    let result = judge.result(findings);
    Some(Judged {
        log: logs.performance,
        result,
    })
}

struct Judge<'a> {
    case: &'a Case<'a>,
    endpoints: &'a Endpoints,
    documents: &'a Documents,
    logs: &'a Logs,
}

impl Judge<'_> {
    fn config(&self, path: &[&str]) -> Option<&Value> {
        path.iter()
            .try_fold(&self.documents.config.value, |value, name| value.get(name))
    }

    /// The run came to its end, and every request was answered.
    fn run(&self, findings: &mut Findings) {
        let Document { path, value, .. } = &self.documents.summary;
        let mend = "repeat the run until every request is answered";
        let state = value.get("state").and_then(Value::as_str);
        if value.get("complete") == Some(&Value::Bool(false))
            || state.is_some_and(|state| state != "complete")
        {
            let state = state.unwrap_or("not complete");
            findings.error(rules::VALID, path, format!("the run is {state}"), mend);
        }
        let log = &self.logs.performance;
        if log.error_count > 0 {
            let text = format!("{} requests failed", log.error_count);
            findings.error(rules::LOADGEN_ERRORS, path, text, mend);
        }
        let number = |key: &str| log.number(key).filter(|count| count.is_finite());
        if let (Some(issued), Some(completed)) =
            (number("generated_query_count"), number("result_query_count"))
            && completed < issued
        {
            let text = format!("{completed} of {issued} requests were completed");
            findings.error(rules::VALID, path, text, mend);
        }
    }

    /// The configuration is that of the directory's scenario.
    fn scenario(&self, findings: &mut Findings) {
        let path = &self.documents.config.path;
        let given = self.config(&["type"]).and_then(Value::as_str).unwrap_or_default();
        let to = self.case.scenario;
        let fits = match to {
            // One request after the other is an online run with a concurrency of one.
            SubmittedScenario::SingleStream => {
                ["online", "singlestream"].contains(&given.to_ascii_lowercase().as_str())
            }
            SubmittedScenario::Server => ["online", "server"].contains(&given.to_ascii_lowercase().as_str()),
            SubmittedScenario::Interactive => {
                ["online", "interactive"].contains(&given.to_ascii_lowercase().as_str())
            }
            _ => given.eq_ignore_ascii_case(to.as_str()),
        };
        if !fits {
            let text = format!("the run's type is `{given}`, the directory {to}");
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

    /// Seeds and duration.
    fn settings(&self, findings: &mut Findings) {
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
                    let mend = format!("set settings.runtime.{name} and repeat the run");
                    findings.error(rules::SEEDS, path, text, mend);
                }
            }
        }
        let key = "effective_min_duration_ms";
        let needed = round.submission.min_duration_ms;
        if !log.number(key).is_some_and(|found| found >= needed as f64) {
            let text = format!("min_duration_ms is {}, at least {needed} is needed", found(key));
            let mend = format!("set settings.runtime.min_duration_ms to {needed} and repeat the run");
            findings.error(rules::DURATION, path, text, mend);
        }
        if self.case.job.description.network {
            let text = "the endpoints harness writes no name of the system under test";
            let mend = "run it with LoadGen in the network division";
            findings.error(rules::NETWORK, self.case.results, text, mend);
        }
    }

    /// The answers come within the scenario's bounds: the tokens of language models, the whole answers of others.
    fn latencies(&self, findings: &mut Findings) {
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
                let mend = "ask for fewer queries per second";
                findings.error(rules::LATENCY, &self.documents.summary.path, text, mend);
            }
        }
    }

    /// The score is there, complete, of the whole data set, and what the rules ask.
    fn accuracy(&self, findings: &mut Findings) {
        let path = &self.documents.accuracy.path;
        let mend = "run accuracy over the whole data set, and put its document there";
        for entry in &self.logs.scores {
            if entry.get("complete") == Some(&Value::Bool(false)) {
                let text = format!("the score of {} is not complete", name_of(entry));
                findings.error(rules::ACCURACY, path, text, mend);
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
            findings.error(rules::DATASET, path, text, mend);
        }
        // A performance run may score its own responses beside the accuracy run's.
        let mut entries = self.logs.scores.iter();
        let is_accuracy = |entry: &&Map<String, Value>| {
            entry
                .get("dataset_type")
                .is_none_or(|kind| kind.is_null() || kind == "accuracy")
        };
        let score = entries.find(is_accuracy).and_then(|entry| entry.get("score"));
        match score.filter(|score| !score.is_null()) {
            None => findings.error(rules::ACCURACY, path, "there is no score", mend),
            Some(score) if self.case.bound() => self.score(score, path, findings),
            Some(_) => {}
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
                let mend = "see that the scorer of the benchmark was used";
                findings.warning(rules::ACCURACY, path, text, mend);
                continue;
            };
            let limit = bound.value();
            let met = if at_least { value >= limit } else { value <= limit };
            if !met {
                let side = if at_least { "below" } else { "above" };
                let text = format!("{} is {value}, {side} {limit}", bound.metric);
                let mend = "meet the accuracy target, or submit to the open division";
                findings.error(rules::ACCURACY, path, text, mend);
            }
        }
    }

    /// The audits that the round asks for passed.
    fn tests(&self, findings: &mut Findings) {
        if !self.case.bound() {
            return;
        }
        for test in &self.case.rules.tests {
            self.output_tokens(test, findings);
            let Some(name) = self.endpoints.audits.get(test) else {
                continue;
            };
            let path = format!("{}/audit/audit_{name}.json", self.case.results);
            if !self.case.context.tree.exists(&path) {
                if self.endpoints.required_audits.contains(test) {
                    let mend = format!("run {test} and add its document");
                    findings.error(rules::TESTS, &path, "is missing", mend);
                }
                continue;
            }
            let Some(audit) = system::object(self.case.context, &path, rules::TESTS, findings) else {
                continue;
            };
            let passed = audit.get("passed").is_some_and(truthy);
            if audit.get("test").and_then(Value::as_str) != Some(name) || !passed {
                let text = format!("does not say that {name} passed");
                findings.error(rules::TESTS, &path, text, format!("repeat {test}"));
            }
        }
    }

    /// A test that bounds the mean of output tokens, which the run's own summary gives.
    fn output_tokens(&self, test: &str, findings: &mut Findings) {
        let Some(&(low, high)) = self.endpoints.mean_output_tokens.get(test) else {
            return;
        };
        let log = &self.logs.performance;
        let mean = log.value("mean_output_tokens");
        if !mean
            .and_then(regatta_mllog::read::Value::as_f64)
            .is_some_and(|mean| (low..=high).contains(&mean))
        {
            let found = mean.map_or_else(|| "missing".to_owned(), shown);
            let text =
                format!("{test}: the mean of output tokens is {found}, it must lie from {low} to {high}");
            let mend = "see that answers are neither cut nor padded";
            findings.error(rules::TESTS, &self.documents.summary.path, text, mend);
        }
    }

    fn result(&self, findings: &mut Findings) -> Option<f64> {
        let key = self.endpoints.result_keys.get(&self.case.scenario)?;
        let scenario = self.case.scenario.run();
        let own = self.case.rules.result_keys.get(&scenario);
        let streams = matches!(scenario, Scenario::SingleStream | Scenario::MultiStream);
        // The official checker takes the benchmark's own key for the streams alone.
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

fn name_of(entry: &Map<String, Value>) -> &str {
    entry
        .get("dataset_name")
        .and_then(Value::as_str)
        .unwrap_or("a data set")
}

/// A metric of a score, in the unit of its bound: alone where the benchmark has one metric, or by its name.
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
    // Scorers give shares where the targets are in percent.
    let is_share = (0.0..=1.0).contains(&value) && bound.reference > 1.0;
    Some(if is_share { value * 100.0 } else { value })
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        value => value.as_f64(),
    }
}
