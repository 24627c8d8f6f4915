//! Checks one scenario: its runs, their agreement, measurements, compliance tests and power.

use super::{
    accuracy, agreement,
    case::Case,
    compliance_tests::{self, ScenarioLogs},
    context::StrictContext,
    endpoints,
    facts::{self, Facts},
    logged_run::Purpose,
    measurements, performance, power,
    read_log::{read_hashed_log, read_log},
    report::ResultRow,
    result,
    run_identity::{Role, RunIdentity},
    stated_hash::StatedHash,
    submitted_confs, summary,
    walk::{StrictJob, scenario_of},
};
use crate::check::{
    finding::{Findings, Severity},
    rules,
    run_log::RunLog,
};

/// The findings, results and facts of one scenario.
#[derive(Debug, Default)]
pub(super) struct StrictOutcome {
    pub(super) findings: Findings,
    pub(super) results: Vec<ResultRow>,
    pub(super) facts: Option<Facts>,
    /// The identities of its runs, to find runs that other results share.
    pub(super) runs: Vec<RunIdentity>,
    /// The stated hashes of its accuracy logs, to find hashes of other logs.
    pub(super) hashes: Vec<StatedHash>,
}

/// Checks a scenario.
pub(super) fn check(context: &StrictContext<'_>, job: &StrictJob) -> StrictOutcome {
    let mut outcome = StrictOutcome::default();
    let results = job.place.below("results");
    // `walk` reports a benchmark or scenario that the round does not have.
    let known = context
        .round
        .submission
        .benchmarks
        .get(&job.benchmark)
        .zip(scenario_of(&job.place.scenario));
    let Some((rules, scenario)) = known else {
        outcome.results.push(row(job, None, String::new(), false));
        return outcome;
    };
    let mut case = Case {
        context,
        job,
        rules,
        scenario,
        results: &results,
        endpoints: false,
    };
    case.endpoints = endpoints::is_one(&case);
    judge(&case, &mut outcome);
    let accuracy = [case.results.to_owned()]
        .into_iter()
        .chain(compliance_tests::directories(&case));
    let hashes = accuracy.filter_map(|directory| StatedHash::read(&case, &format!("{directory}/accuracy")));
    outcome.hashes = hashes.collect();
    outcome
}

fn judge(case: &Case<'_>, outcome: &mut StrictOutcome) {
    let (findings, runs) = (&mut outcome.findings, &mut outcome.runs);
    let units = case.rules.unit(case.scenario).to_owned();
    if case.endpoints {
        let judged = endpoints::check(case, findings);
        outcome.facts = Some(facts::of(
            case,
            judged.as_ref().map(|judged| &judged.log),
            Vec::new(),
        ));
        let result = judged.and_then(|judged| judged.result);
        let accepted = result.is_some() && !case.job.tainted && findings.errors() == 0;
        outcome.results.push(row(case.job, result, units, accepted));
        return;
    }
    let run = format!("{}/performance/run_1", case.results);
    let performance = if case.has_power() {
        read_hashed_log(case, &run, findings)
    } else {
        read_log(case, &run, findings)
    };
    spelling(case, performance.as_ref(), findings);
    let accuracy_log = read_log(case, &format!("{}/accuracy", case.results), findings);
    measurements::check(case, findings);
    submitted_confs::check(case, performance.as_ref(), findings);
    let metrics = accuracy::check(case, accuracy_log.as_ref(), findings);
    let mut measured = None;
    if let Some(log) = &accuracy_log {
        let directory = format!("{}/accuracy", case.results);
        runs.push(RunIdentity::of(case, &directory, log, Role::Accuracy));
        summary::check(case, &directory, log, findings);
    }
    if let Some(log) = &performance {
        runs.push(RunIdentity::of(case, &run, log, Role::Performance));
        performance::check(case, &run, log, Purpose::Submission, findings);
        summary::check(case, &run, log, findings);
        measured = result::measured(case, &run, log, findings);
    }
    outcome.facts = Some(facts::of(case, performance.as_ref(), metrics));
    let surplus = match case.has_power() {
        true => Severity::Error,
        false => case.context.file_set_severity(),
    };
    performance::files(case, &run, surplus, findings);
    agreement::check(case, performance.as_ref(), accuracy_log.as_ref(), findings);
    let logs = ScenarioLogs {
        performance: performance.as_ref(),
        accuracy: accuracy_log.as_ref(),
    };
    compliance_tests::check(case, logs, runs, findings);
    let power = power::check(case, performance.as_ref(), runs, findings);
    let accepted = measured.is_some() && !case.job.tainted && findings.errors() == 0;
    outcome.results.push(row(case.job, measured, units, accepted));
    outcome.results.extend(power.map(|(metric, units)| ResultRow {
        result: metric,
        units: units.to_owned(),
        power: true,
        ..row(case.job, None, String::new(), accepted)
    }));
}

/// Warns about a measured scenario whose directory is not spelt as in the rules.
///
/// The package since v6.0 treats every scenario in lower case as inferred, because the rules spell inferred scenarios so.
fn spelling(case: &Case<'_>, performance: Option<&RunLog>, findings: &mut Findings) {
    let (found, scenario) = (&case.job.place.scenario, case.scenario);
    let ran = performance.and_then(|log| log.text("effective_scenario"));
    let measured = ran == Some(scenario.run().as_str());
    if case.classic() || !case.bound() || found == scenario.as_str() || !measured {
        return;
    }
    let text = format!("is spelt `{found}`, not `{scenario}`, and was measured");
    let fix = "rename it: the official checker treats results of this name as inferred";
    findings.warning(rules::SCENARIOS, case.results, text, fix);
}

fn row(job: &StrictJob, result: Option<f64>, units: String, accepted: bool) -> ResultRow {
    ResultRow {
        division: job.place.division.clone(),
        submitter: job.place.submitter.clone(),
        system: job.place.system.clone(),
        model: job.place.model.clone(),
        scenario: scenario_of(&job.place.scenario)
            .map_or_else(|| job.place.scenario.clone(), |scenario| scenario.to_string()),
        result,
        units,
        power: false,
        accepted,
    }
}
