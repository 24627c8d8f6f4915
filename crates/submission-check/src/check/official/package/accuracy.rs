//! The package's check of the accuracy run.

use regatta_catalogue::round::{BenchmarkRules, OfficialCheck};
use regatta_mllog::read::Value;

use super::{
    super::{Context, accuracy, path_fault::PathFault},
    Faults, endpoints,
    loaded::Loaded,
    raised,
};

/// Checks the accuracy run and returns the metrics for the CSV.
pub(super) fn check(
    context: &Context<'_>,
    rules: &BenchmarkRules,
    loaded: &Loaded<'_>,
    faults: &mut Faults,
) -> String {
    let directory = format!("{}/accuracy", loaded.results);
    let shown = match &loaded.endpoints {
        Some(run) => endpoints::accuracy(context, (rules, loaded), &run.scores, (&directory, faults)),
        None => reported(context, rules, loaded, (&directory, faults)),
    };
    let log = &loaded.accuracy;
    let detail = format!("{directory}/mlperf_log_detail.txt");
    let errors = log.error_count;
    if errors > 0 && context.checker.looks_at(OfficialCheck::LoadgenErrorsAccuracy) {
        faults.push(PathFault::new(
            detail.clone(),
            format!("LoadGen reports {errors} errors"),
        ));
    }
    let found = log
        .value("effective_accuracy_sample_count")
        .or_else(|| log.value("qsl_reported_total_count"));
    if let Some(expected) = rules.dataset_samples {
        // The package looks up a scenario's own number of samples by the exact directory name.
        let exact = loaded
            .scenario
            .filter(|scenario| scenario.as_str() == loaded.directory);
        let own = exact.and_then(|scenario| rules.dataset_samples_in.get(&scenario).copied());
        let expected = own.or(rules.dataset_samples_in.is_empty().then_some(expected));
        if expected.is_none() || found.and_then(Value::as_u64) != expected {
            let text = match expected {
                Some(expected) => format!("the accuracy run does not have {expected} samples"),
                None => "there is no number of samples for a directory of this name".to_owned(),
            };
            faults.push(PathFault::new(detail, text));
        }
    }
    if context.checker.looks_at(OfficialCheck::ExtraAccuracyFiles) {
        extra_files(context, rules, &directory, faults);
    }
    shown
}

/// Checks `accuracy.txt` and the size of the accuracy log. Returns the metrics for the CSV.
fn reported(
    context: &Context<'_>,
    rules: &BenchmarkRules,
    loaded: &Loaded<'_>,
    (directory, faults): (&str, &mut Faults),
) -> String {
    let text = format!("{directory}/accuracy.txt");
    let forms = context.round.submission.accuracy_forms;
    let judged =
        accuracy::text(context, &text).and_then(|text| accuracy::judge(rules, loaded.scenario, forms, &text));
    let shown = match judged {
        Err(error) => {
            faults.push(raised(&text, error));
            String::new()
        }
        Ok(judged) => {
            let open = loaded.job.place.division == "open";
            if !judged.met && !open {
                faults.push(PathFault::new(
                    text.clone(),
                    format!("accuracy is not met: {}", judged.listed()),
                ));
            }
            if !judged.hash && !open {
                faults.push(PathFault::new(
                    text,
                    "there is no hash of the accuracy log".to_owned(),
                ));
            }
            judged.listed()
        }
    };
    let log = format!("{directory}/mlperf_log_accuracy.json");
    match context.tree.size(&log) {
        None => faults.push(PathFault::new(log, "is missing".to_owned())),
        Some(size) if size > context.round.submission.max_accuracy_log_bytes => {
            faults.push(PathFault::new(log, format!("is not truncated ({size} bytes)")));
        }
        Some(_) => {}
    }
    shown
}

fn extra_files(context: &Context<'_>, rules: &BenchmarkRules, directory: &str, faults: &mut Faults) {
    for (folder, names) in &rules.extra_accuracy_files {
        let path = format!("{directory}/{folder}");
        let found = context.tree.files(&path).unwrap_or_default();
        let there = |name: &str| found.iter().any(|file| file.split('.').next() == Some(name));
        let missing = names.iter().filter(|name| !there(name)).count();
        if missing > 0 {
            faults.push(PathFault::new(
                path,
                format!("{missing} of the required files are missing"),
            ));
        }
    }
}
