//! The package's check of compliance tests.

use regatta_catalogue::round::BenchmarkRules;

use super::{
    super::{
        Context, accuracy,
        file_set::{self, FileSet},
        path_fault::PathFault,
        python::Raised,
    },
    Faults, endpoints,
    loaded::Loaded,
    performance::{self, PackageRun},
    raised,
};
use crate::check::accuracy_text;

/// Checks the compliance tests. The open division has none.
pub(super) fn check(context: &Context<'_>, rules: &BenchmarkRules, loaded: &Loaded<'_>, faults: &mut Faults) {
    if loaded.endpoints.is_some() {
        return endpoints::tests(context, rules, loaded, faults);
    }
    if loaded.job.place.division == "open" {
        return;
    }
    let mut accuracy = Ok(Faults::new());
    for test in &rules.tests {
        let directory = format!("{}/{test}", loaded.tests);
        if !context.tree.exists(&directory) {
            faults.push(PathFault::new(directory.clone(), "is missing".to_owned()));
        }
        if matches!(test.as_str(), "TEST01" | "TEST04") {
            performance_run(context, rules, loaded, &directory, faults);
            if let Err(error) = verified(context, &directory, faults) {
                faults.push(raised(&directory, error));
            }
        }
        // An exception ends this group of checks.
        if accuracy.is_ok() {
            accuracy = accuracy_of(context, rules, loaded, (test, &directory)).map(|found| {
                faults.extend(found);
                Faults::new()
            });
        }
    }
    if let Err(error) = accuracy {
        faults.push(raised(&loaded.tests, error));
    }
}

/// Returns the errors in a test's accuracy, or in the other properties that it verifies beside performance.
fn accuracy_of(
    context: &Context<'_>,
    rules: &BenchmarkRules,
    loaded: &Loaded<'_>,
    (test, directory): (&str, &str),
) -> Result<Faults, Raised> {
    let verify = format!("{directory}/verify_accuracy.txt");
    let passed = match test {
        "TEST01" => return test01(context, rules, loaded, directory),
        "TEST06" => accuracy_text::test06_passed(accuracy::text(context, &verify)?.lines()),
        "TEST07" => says_passed(context, &verify)?,
        "TEST08" => {
            let text = accuracy::text(context, &verify)?;
            text.lines().any(|line| line.trim() == "TEST PASS")
        }
        "TEST09" => says_passed(context, &format!("{directory}/verify_output_len.txt"))?,
        _ => true,
    };
    let fault = PathFault::new(directory, format!("does not say that {test} passed"));
    Ok((!passed).then_some(fault).into_iter().collect())
}

fn says_passed(context: &Context<'_>, path: &str) -> Result<bool, Raised> {
    let text = accuracy::text(context, path)?;
    Ok(text.lines().any(|line| line.contains("TEST PASS")))
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
        None => faults.push(PathFault::new(path, "is missing".to_owned())),
        Some(log) => {
            let run = PackageRun {
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
        if !says_passed(context, &path)? {
            faults.push(PathFault::new(path, "does not say TEST PASS".to_owned()));
        }
        let run = format!("{directory}/performance/run_1");
        faults.extend(
            file_set::fault(context, &run, FileSet::TEST_RUN).map(|fault| PathFault::new(run, fault)),
        );
    } else {
        faults.push(PathFault::new(path, "is missing".to_owned()));
    }
    Ok(())
}

/// Checks TEST01's accuracy: its own verdict, or two accuracies that are close to each other.
fn test01(
    context: &Context<'_>,
    rules: &BenchmarkRules,
    loaded: &Loaded<'_>,
    directory: &str,
) -> Result<Faults, Raised> {
    let text = accuracy::text(context, &format!("{directory}/verify_accuracy.txt"))?;
    if text.lines().any(|line| line.trim() == "TEST PASS") {
        return Ok(Faults::new());
    }
    let path = format!("{directory}/accuracy");
    if let Some(fault) = file_set::fault(context, &path, FileSet::TEST01_FALLBACK) {
        return Ok(vec![PathFault::new(path, fault)]);
    }
    let benchmark = (rules, loaded.scenario);
    let apart = accuracy::apart(context, benchmark, &loaded.job.benchmark, &path)?;
    Ok(apart.map(|text| PathFault::new(path, text)).into_iter().collect())
}
