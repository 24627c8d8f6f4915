//! The package's check of compliance tests.

use regatta_rules::round::BenchmarkRules;

use super::{
    super::{
        Context, accuracy,
        file_set::{self, FileSet},
        python::Raised,
    },
    Faults, endpoints,
    performance::{self, Run},
    raised,
    scenario::Loaded,
};

/// Checks; the open division has no tests.
pub(super) fn check(context: &Context<'_>, rules: &BenchmarkRules, loaded: &Loaded<'_>, faults: &mut Faults) {
    if loaded.endpoints.is_some() {
        return endpoints::tests(context, rules, loaded, faults);
    }
    if loaded.job.division == "open" {
        return;
    }
    let mut test01 = Ok(Faults::new());
    for test in &rules.tests {
        let directory = format!("{}/{test}", loaded.tests);
        if !context.tree.exists(&directory) {
            faults.push((directory.clone(), "is missing".to_owned()));
        }
        if test == "TEST05" {
            continue;
        }
        performance_run(context, rules, loaded, &directory, faults);
        if let Err(error) = verified(context, &directory, faults) {
            faults.push(raised(&directory, error));
        }
        if test == "TEST01" {
            test01 = accuracy_of(context, rules, loaded, &directory);
        }
    }
    match test01 {
        Ok(found) => faults.extend(found),
        Err(error) => faults.push(raised(&loaded.tests, error)),
    }
}

fn performance_run(
    context: &Context<'_>,
    rules: &BenchmarkRules,
    loaded: &Loaded<'_>,
    directory: &str,
    faults: &mut Faults,
) {
    let path = format!("{directory}/performance/run_1/mlperf_log_detail.txt");
    match loaded.test_logs.get(&path) {
        None => faults.push((path, "is missing".to_owned())),
        Some(log) => {
            let run = Run {
                context,
                rules,
                job: loaded.job,
                scenario: loaded.scenario,
                log,
                path: &path,
            };
            performance::check(run, faults);
        }
    }
}

fn verified(context: &Context<'_>, directory: &str, faults: &mut Faults) -> Result<(), Raised> {
    let path = format!("{directory}/verify_performance.txt");
    if context.tree.exists(&path) {
        let lines = accuracy::lines(context, &path)?;
        if !lines.iter().any(|line| line.contains("TEST PASS")) {
            faults.push((path, "does not say TEST PASS".to_owned()));
        }
        let run = format!("{directory}/performance/run_1");
        faults.extend(file_set::fault(context, &run, FileSet::TEST_RUN).map(|fault| (run, fault)));
    } else {
        faults.push((path, "is missing".to_owned()));
    }
    Ok(())
}

/// TEST01's accuracy: its own verdict, or two accuracies that lie close together.
fn accuracy_of(
    context: &Context<'_>,
    rules: &BenchmarkRules,
    loaded: &Loaded<'_>,
    directory: &str,
) -> Result<Faults, Raised> {
    let verify = format!("{directory}/verify_accuracy.txt");
    let lines = accuracy::lines(context, &verify)?;
    if lines.iter().any(|line| line.trim() == "TEST PASS") {
        return Ok(Faults::new());
    }
    let path = format!("{directory}/accuracy");
    if let Some(fault) = file_set::fault(context, &path, FileSet::TEST01_FALLBACK) {
        return Ok(vec![(path, fault)]);
    }
    let forms = context.round.submission.accuracy_forms;
    let values = |name: &str| {
        let lines = accuracy::lines(context, &format!("{path}/{name}"))?;
        accuracy::last_values(rules, forms, &lines)
    };
    let (baseline, compliance) = (
        values("baseline_accuracy.txt")?,
        values("compliance_accuracy.txt")?,
    );
    for ((bound, baseline), compliance) in rules.accuracy.iter().zip(baseline).zip(compliance) {
        let most = rules.delta_percent(&loaded.job.benchmark, &bound.metric);
        let delta = (1.0 - baseline / compliance).abs() * 100.0;
        let close = baseline != 0.0 && compliance != 0.0 && delta <= most;
        if !close {
            let text = format!(
                "{} is {baseline} before and {compliance} in the test, more than {most} % apart",
                bound.metric
            );
            return Ok(vec![(path, text)]);
        }
    }
    Ok(Faults::new())
}
