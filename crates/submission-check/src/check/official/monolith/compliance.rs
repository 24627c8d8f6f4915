//! The monolith's check of a scenario's compliance tests.

use regatta_catalogue::round::Trait;

use super::{
    super::{
        Context, Note, ScenarioPlace, accuracy,
        file_set::{self, FileSet},
        python::Raised,
    },
    Crash,
    performance::{self, MonolithRun},
};
use crate::check::accuracy_text;

/// Returns whether the compliance tests of `place` passed.
pub(super) fn check(
    run: MonolithRun<'_>,
    place: &ScenarioPlace,
    model: &str,
    notes: &mut Vec<Note>,
) -> Result<bool, Crash> {
    let context = run.context;
    let directory = place.below("compliance");
    let tests = &run.rules.tests;
    let required = !tests.is_empty()
        || context.checker.has(Trait::ComplianceDirectoryAlways)
        || (context.checker.has(Trait::ComplianceDirectoryButGptj) && !place.model.contains("gptj"));
    if required && !context.tree.exists(&directory) {
        notes.push(fatal(&directory, "there is no compliance directory".to_owned()));
        return Ok(false);
    }
    let without_performance = tests.iter().any(|test| test == "TEST06");
    let mut good = true;
    // If a log cannot be checked, the official code reuses the previous test's verdict. Without one, it ends with a traceback.
    let mut last = None;
    for test in tests {
        let test_directory = format!("{directory}/{test}");
        if !context.tree.exists(&test_directory) {
            notes.push(fatal(&directory, format!("{test} is missing")));
            good = false;
            continue;
        }
        if without_performance {
            continue;
        }
        if context.checker.has(Trait::ComplianceLogged) {
            good &= verified(context, &test_directory, notes)?;
            continue;
        }
        let run_directory = format!("{test_directory}/performance/run_1");
        let judged = performance::read(context, &run_directory).and_then(|log| {
            let run = MonolithRun {
                directory: &run_directory,
                ..run
            };
            performance::check(run, &log, notes)
        });
        match judged {
            Ok(outcome) => last = Some(outcome.valid),
            Err(Raised(reason)) => notes.push(fatal(&run_directory, reason)),
        }
        if good && verified(context, &test_directory, notes)? {
            match last {
                Some(valid) => good = valid,
                None => {
                    let reason = format!("no verdict on {run_directory} is left to use");
                    return Err(Crash(reason));
                }
            }
        } else {
            good = false;
        }
    }
    if tests.iter().any(|test| test == "TEST01") {
        good &= test01_accuracy(run, &directory, model, notes)?;
    }
    if without_performance {
        good &= test06(context, &format!("{directory}/TEST06"), notes)?;
    }
    Ok(good)
}

fn fatal(path: &str, text: String) -> Note {
    Note {
        path: path.to_owned(),
        text,
        fatal: true,
    }
}

/// Returns whether `verify_performance.txt` says that the test passed and the run's files exist.
fn verified(context: &Context<'_>, directory: &str, notes: &mut Vec<Note>) -> Result<bool, Crash> {
    let path = format!("{directory}/verify_performance.txt");
    let mut good = true;
    if !context.tree.exists(&path) {
        notes.push(fatal(&path, "is missing".to_owned()));
        good = false;
    } else if !passed(context, &path)? {
        notes.push(fatal(&path, "does not say TEST PASS".to_owned()));
        good = false;
    }
    let run = format!("{directory}/performance/run_1");
    let fault = file_set::fault(context, &run, FileSet::TEST_RUN);
    good &= fault.is_none();
    notes.extend(fault.map(|text| fatal(&run, text)));
    Ok(good)
}

fn passed(context: &Context<'_>, path: &str) -> Result<bool, Crash> {
    let text = accuracy::text(context, path)?;
    Ok(text.lines().any(|line| line.contains("TEST PASS")))
}

fn test01_accuracy(
    run: MonolithRun<'_>,
    directory: &str,
    model: &str,
    notes: &mut Vec<Note>,
) -> Result<bool, Crash> {
    let context = run.context;
    let verify = format!("{directory}/TEST01/verify_accuracy.txt");
    if !context.tree.exists(&verify) {
        notes.push(fatal(&verify, "is missing".to_owned()));
        return Ok(false);
    }
    let passed = passed(context, &verify)?;
    let accuracy = format!("{directory}/TEST01/accuracy");
    if context.checker.has(Trait::ComplianceLogged) {
        // Missing files are only logged, and the two accuracies are not compared.
        let is_there = context.tree.exists(&accuracy);
        if !is_there {
            notes.push(fatal(&accuracy, "is missing".to_owned()));
        }
        return Ok(is_there);
    }
    let set = if passed {
        FileSet::TEST01_PASSED
    } else {
        FileSet::TEST01_FALLBACK
    };
    if let Some(fault) = file_set::fault(context, &accuracy, set) {
        notes.push(fatal(&accuracy, fault));
        return Ok(false);
    }
    if passed {
        return Ok(true);
    }
    let apart = accuracy::apart(context, (run.rules, run.scenario), model, &accuracy)?;
    let close = apart.is_none();
    notes.extend(apart.map(|text| fatal(&accuracy, text)));
    Ok(close)
}

fn test06(context: &Context<'_>, directory: &str, notes: &mut Vec<Note>) -> Result<bool, Crash> {
    let path = format!("{directory}/verify_accuracy.txt");
    if !context.tree.exists(&path) {
        notes.push(fatal(&path, "is missing".to_owned()));
        return Ok(false);
    }
    let good = accuracy_text::test06_passed(accuracy::text(context, &path)?.lines());
    if !good {
        notes.push(fatal(
            &path,
            "does not say that all three checks passed".to_owned(),
        ));
    }
    Ok(good)
}
