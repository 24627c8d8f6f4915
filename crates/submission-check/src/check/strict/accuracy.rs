//! Checks the accuracy run: its metrics, the hash and the truncated log.

use memchr::memchr;
use regatta_fsutil::hash::sha256_hex;
use regatta_mllog::read::Value;

use super::{
    accuracy_figures::{self, AccuracyFigure, AccuracyText},
    case::Case,
    facts::Metric,
    performance,
};
use crate::check::{
    accuracy_text,
    finding::{Findings, Severity},
    rules,
    run_log::RunLog,
};

/// The largest file that is read, in bytes. Output of the reference scripts is shorter.
const MAX: u64 = 64 << 20;
/// The size in bytes below which truncation leaves a log unchanged.
const MIN_CUT: u64 = 4096;
const FILES: [&str; 4] = [
    "accuracy.txt",
    "mlperf_log_accuracy.json",
    "mlperf_log_detail.txt",
    "mlperf_log_summary.txt",
];

/// Checks the accuracy directory. Returns the last value of each metric that the benchmark's accuracy target uses.
pub(super) fn check(case: &Case<'_>, log: Option<&RunLog>, findings: &mut Findings) -> Vec<Metric> {
    let directory = format!("{}/accuracy", case.results);
    files(case, &directory, findings);
    let library = log.and_then(library);
    let metrics = metrics(case, &format!("{directory}/accuracy.txt"), library, findings);
    truncated(case, &format!("{directory}/mlperf_log_accuracy.json"), findings);
    if let Some(log) = log {
        performance::check_accuracy_run(case, &directory, log, findings);
        dataset(case, &format!("{directory}/mlperf_log_detail.txt"), log, findings);
    }
    extra_files(case, findings);
    metrics
}

/// Checks the additional accuracy files that the round requires.
pub(super) fn extra_files(case: &Case<'_>, findings: &mut Findings) {
    let directory = format!("{}/accuracy", case.results);
    for (folder, names) in &case.rules.extra_accuracy_files {
        let path = format!("{directory}/{folder}");
        let found = case.context.tree.files(&path).unwrap_or_default();
        for name in names {
            if !found.iter().any(|file| file.split('.').next() == Some(name)) {
                let text = format!("{name}.* is missing");
                findings.error(
                    rules::FILE_SET,
                    &path,
                    text,
                    "add the files that the round requires",
                );
            }
        }
    }
}

/// Returns the lines of a text file. Invalid UTF-8 is an error and is replaced, so that it cannot hide a metric.
pub(super) fn lines(case: &Case<'_>, path: &str, findings: &mut Findings) -> Option<Vec<String>> {
    match case.context.tree.read(path, MAX) {
        Ok(bytes) => {
            let mut text = String::from_utf8(bytes).unwrap_or_else(|error| {
                let fix = "the official checker ends here; write it as UTF-8";
                findings.error(rules::FILE_SET, path, "is not UTF-8 text", fix);
                String::from_utf8_lossy(error.as_bytes()).into_owned()
            });
            if memchr(b'\r', text.as_bytes()).is_some() {
                text = text.replace("\r\n", "\n").replace('\r', "\n");
            }
            Some(text.split_inclusive('\n').map(str::to_owned).collect())
        }
        Err(error) => {
            findings.error(
                rules::FILE_SET,
                path,
                case.context.unread(path, error),
                "add the file",
            );
            None
        }
    }
}

fn files(case: &Case<'_>, directory: &str, findings: &mut Findings) {
    let Some(found) = case.context.tree.files(directory) else {
        return findings.error(
            rules::FILE_SET,
            directory,
            "is not a directory",
            "add the accuracy run",
        );
    };
    let summary = "mlperf_log_summary.txt";
    if !found.contains(&summary) {
        let path = format!("{directory}/{summary}");
        findings.error(
            rules::FILE_SET,
            &path,
            "is missing",
            "add LoadGen's summary of this run",
        );
    }
    for name in found {
        let allowed = ["mlperf_log_trace.json", "results.json", ".gitkeep"];
        if !FILES.contains(&name) && !allowed.contains(&name) {
            let path = format!("{directory}/{name}");
            let severity = case.context.file_set_severity();
            findings.add(
                severity,
                rules::FILE_SET,
                &path,
                "does not belong here",
                "remove it",
            );
        }
    }
}

fn metrics(case: &Case<'_>, path: &str, library: Option<u64>, findings: &mut Findings) -> Vec<Metric> {
    let mut metrics = Vec::new();
    let Some(lines) = lines(case, path, findings) else {
        return metrics;
    };
    let forms = case.context.round.submission.accuracy_forms;
    let bounds = case.rules.accuracy_in(Some(case.scenario)).iter();
    let bounds = bounds.map(|bound| (bound, true));
    let bounds = bounds.chain(case.rules.accuracy_at_most.iter().map(|bound| (bound, false)));
    for (bound, lower) in bounds {
        let (mut seen, mut last) = (false, None);
        for (line, text) in (1..).zip(&lines) {
            let Some(value) = accuracy_text::metric(&bound.metric, forms, text) else {
                continue;
            };
            last = Some(value);
            let limit = bound.value();
            let number = value.parse::<f64>().ok();
            seen |= number.is_some();
            let met = number.is_some_and(|number| if lower { number >= limit } else { number <= limit });
            if let Some(number) = number.filter(|_| lower) {
                let figure = AccuracyFigure {
                    metric: bound.metric.as_str(),
                    value: number,
                    reference: bound.reference,
                };
                accuracy_figures::too_good(case, (path, line), figure, findings);
            }
            if !met && case.bound() {
                let side = if lower { "below" } else { "above" };
                let text = format!("{} is {value}, {side} {limit}", bound.metric);
                let fix = "meet the accuracy target, or submit to the open division";
                findings.error(rules::ACCURACY, (path, Some(line)), text, fix);
            }
        }
        if !seen && lower && case.bound() {
            let text = format!("{} is missing", bound.metric);
            let fix = "put the reference accuracy script's output there";
            findings.error(rules::ACCURACY, path, text, fix);
        }
        metrics.extend(last.filter(|_| lower).map(|value| Metric {
            name: bound.metric.clone(),
            value: value.to_owned(),
        }));
    }
    let text = AccuracyText { path, lines: &lines };
    accuracy_figures::check(case, &text, library, findings);
    hash(path, &lines, findings);
    hash_of_log(case, path, &lines, findings);
    metrics
}

fn hash(path: &str, lines: &[String], findings: &mut Findings) {
    let hashes: Vec<_> = (1_u64..)
        .zip(lines)
        .filter_map(|(line, text)| Some((line, accuracy_text::hash(text)?)))
        .collect();
    match hashes.as_slice() {
        [] => {
            let glued = (1_u64..).zip(lines).find(|(_, text)| text.contains("hash="));
            let place = (path, glued.map(|(line, _)| line));
            let text = "there is no line with the hash of the accuracy log";
            findings.error(
                rules::HASH,
                place,
                text,
                "truncate the accuracy logs, which appends it",
            );
        }
        [(line, hash)] => {
            if hash.len() != 64 || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                let fix = "truncate again from the backup";
                findings.error(rules::HASH, (path, Some(*line)), "the hash is not a SHA-256", fix);
            }
        }
        [.., (line, _)] => {
            let text = format!("{} hashes: the log was truncated more than once", hashes.len());
            let fix = "truncate once, from the backup";
            findings.warning(rules::HASH, (path, Some(*line)), text, fix);
        }
    }
}

/// Checks that the hash is that of the accuracy log, if nothing was truncated from the log.
fn hash_of_log(case: &Case<'_>, path: &str, lines: &[String], findings: &mut Findings) {
    let Some((directory, _)) = path.rsplit_once('/') else {
        return;
    };
    let log = format!("{directory}/mlperf_log_accuracy.json");
    let uncut = case.context.tree.size(&log).is_some_and(|size| size < MIN_CUT);
    let hashes: Vec<_> = lines
        .iter()
        .filter_map(|line| accuracy_text::hash(line))
        .collect();
    let ([hash], true) = (hashes.as_slice(), uncut) else {
        return;
    };
    let Ok(bytes) = case.context.tree.read(&log, MIN_CUT) else {
        return;
    };
    let found = sha256_hex(&bytes);
    if !hash.eq_ignore_ascii_case(&found) {
        let text = format!("the hash is not that of mlperf_log_accuracy.json, {found}");
        findings.error(rules::HASH, path, text, "truncate again from the backup");
    }
}

/// Checks that the log exists and was truncated.
pub(super) fn truncated(case: &Case<'_>, path: &str, findings: &mut Findings) {
    let limit = case.context.round.submission.max_accuracy_log_bytes;
    match case.context.tree.size(path) {
        None => findings.error(rules::FILE_SET, path, "is missing", "add the accuracy log"),
        Some(size) if size > limit => {
            let text = format!("{size} bytes, at most {limit} are allowed");
            findings.error(rules::TRUNCATED, path, text, "truncate the accuracy logs");
        }
        Some(_) => {}
    }
}

/// Returns the number of samples in an accuracy run.
pub(super) fn library(log: &RunLog) -> Option<u64> {
    let count = |key| log.value(key).and_then(Value::as_u64);
    count("effective_accuracy_sample_count").or_else(|| count("qsl_reported_total_count"))
}

/// Checks that the run used the data set of the rules. The open division may use another one.
fn dataset(case: &Case<'_>, path: &str, log: &RunLog, findings: &mut Findings) {
    let Some(expected) = case.rules.dataset_samples_in(case.scenario) else {
        return;
    };
    let severity = match case.bound() {
        true => Severity::Error,
        false => Severity::Note,
    };
    for (key, needed) in [
        ("qsl_reported_total_count", true),
        ("effective_accuracy_sample_count", false),
    ] {
        let found = log.value(key).and_then(Value::as_u64);
        if found != Some(expected) && (needed || log.value(key).is_some()) {
            let found = found.map_or_else(|| "missing".to_owned(), |found| found.to_string());
            let text = format!("{key} is {found}, the data set has {expected} samples");
            let place = (path, log.line(key));
            let fix = "run accuracy over the complete data set";
            findings.add(severity, rules::DATASET, place, text, fix);
        }
    }
}
