//! Checks a scenario that the endpoints harness ran. Its documents replace LoadGen's logs.
//!
//! The official checker makes few of these comparisons. Published results have neither `scores.json` nor `report.txt` in every
//! case, so these two are only checked if they exist.

mod accuracy;
mod audits;
mod breakdown;
mod counts;
mod performance;
mod prescribed;
mod report;
mod statistics;
mod turns;

use regatta_catalogue::round::{Endpoints, PrescribedRun};
use serde_json::Value;

use super::{accuracy::extra_files, case::Case, measurements};
use crate::check::{
    endpoints::{Documents, Logs},
    finding::Findings,
    rules,
    run_log::RunLog,
};

const CONFIGS: [&str; 2] = ["config.yaml", "config.yml"];
const SUMMARY: &str = "performance/result_summary.json";
/// The summary's place in the layout that the harness's own publishing script still writes.
const MISPLACED: &str = "performance/run_1/result_summary.json";

/// The log and the result of the scenario, for the facts and the result row.
pub(super) struct Judged {
    pub(super) log: RunLog,
    pub(super) result: Option<f64>,
}

/// Returns whether the endpoints harness ran the scenario: it has the harness's files and no LoadGen logs.
pub(super) fn is_one(case: &Case<'_>) -> bool {
    let there = |path: &str| case.context.tree.exists(&format!("{}/{path}", case.results));
    !there("performance/run_1/mlperf_log_detail.txt")
        && !there("accuracy/mlperf_log_detail.txt")
        && [CONFIGS[0], CONFIGS[1], SUMMARY, MISPLACED]
            .into_iter()
            .any(there)
}

/// Checks the scenario. Returns `None` if its documents cannot be read as logs.
pub(super) fn check(case: &Case<'_>, findings: &mut Findings) -> Option<Judged> {
    let round = case.context.round;
    let Some(endpoints) = &round.submission.endpoints else {
        let text = format!("{} takes no results of the endpoints harness", round.name);
        let fix = "run the scenario with LoadGen";
        findings.error(rules::ENDPOINTS, case.results, text, fix);
        return None;
    };
    if !endpoints.benchmarks.contains(&case.job.benchmark) {
        let text = format!("{} may not be run by the endpoints harness", case.job.benchmark);
        findings.error(rules::ENDPOINTS, case.results, text, "run it with LoadGen");
    }
    let documents = Documents::read(case.context.tree, case.results);
    layout(case, findings);
    for document in [&documents.summary, &documents.accuracy, &documents.config] {
        for fault in document.fault.iter().chain(&document.repeated) {
            let fix = "add the harness's document of this run";
            findings.error(rules::ENDPOINTS, &document.path, fault.as_str(), fix);
        }
    }
    measurements::check(case, findings);
    extra_files(case, findings);
    let logs = match documents.logs(Some(endpoints)) {
        Ok(logs) => logs,
        Err(error) => {
            let fix = "put the harness's documents there: the official checker stops here";
            findings.error(rules::ENDPOINTS, case.results, error.to_string(), fix);
            return None;
        }
    };
    let judge = EndpointsJudge {
        case,
        endpoints,
        prescribed: endpoints
            .prescribed
            .get(&case.job.benchmark)
            .filter(|_| case.bound()),
        documents: &documents,
        logs: &logs,
    };
    judge.run(findings);
    judge.requests(findings);
    judge.duration(findings);
    judge.statistics(findings);
    judge.scenario(findings);
    judge.settings(findings);
    judge.prescribed_settings(findings);
    judge.settings_of_run(findings);
    judge.latencies(findings);
    judge.accuracy(findings);
    judge.breakdown(findings);
    judge.turns(findings);
    judge.report(findings);
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

/// Reports documents in places where the official checker does not look.
fn layout(case: &Case<'_>, findings: &mut Findings) {
    let there = |path: &str| case.context.tree.exists(&format!("{}/{path}", case.results));
    if there(MISPLACED) {
        let path = format!("{}/{MISPLACED}", case.results);
        let text = "is not where the rules of the round have it";
        let fix = "move it to performance/, and config.yaml to the scenario's directory";
        findings.error(rules::ENDPOINTS, &path, text, fix);
    }
    if CONFIGS.into_iter().all(there) {
        let text = "there is a config.yaml and a config.yml";
        findings.error(rules::ENDPOINTS, case.results, text, "keep the one of the run");
    }
}

struct EndpointsJudge<'a> {
    case: &'a Case<'a>,
    endpoints: &'a Endpoints,
    /// The rules' own run of the benchmark. The open division may have another one.
    prescribed: Option<&'a PrescribedRun>,
    documents: &'a Documents,
    logs: &'a Logs,
}

impl EndpointsJudge<'_> {
    fn config(&self, path: &[&str]) -> Option<&Value> {
        path.iter()
            .try_fold(&self.documents.config.value, |value, name| value.get(name))
    }
}
