//! Checks TEST01's comparison of responses, or the two accuracies that replace it.
//!
//! The script's counters must agree with each other and with the two runs that they describe.

use regatta_loadgen::effective::EffectiveSettings;

use super::{accuracy, case::Case, logged_run::LoggedRun, settings};
use crate::check::{accuracy_text, finding::Findings, rules, run_log::RunLog};

const FIX: &str = "run TEST01's verification again and put its output there";
/// The allowed deviation of the number of logged responses from the expected number, in standard deviations.
const DEVIATIONS: f64 = 7.0;

/// The logs that TEST01's output describes, as far as they can be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct TestedLogs<'a> {
    /// The log of the test's run.
    pub(super) test: Option<&'a RunLog>,
    /// The log of the scenario's accuracy run.
    pub(super) accuracy: Option<&'a RunLog>,
}

/// Checks TEST01's files in `directory` against the log of its run and the log of the accuracy run.
pub(super) fn check(case: &Case<'_>, directory: &str, logs: TestedLogs<'_>, findings: &mut Findings) {
    let path = format!("{directory}/verify_accuracy.txt");
    let Some(lines) = accuracy::lines(case, &path, findings) else {
        return;
    };
    let passed = lines.iter().any(|line| line.trim() == "TEST PASS");
    let counters = Counters {
        lines: &lines,
        path: &path,
    };
    counters.check(passed, findings);
    counters.check_accuracy_run(case, logs.accuracy, findings);
    if let Some(log) = logs.test {
        let log_path = format!("{directory}/performance/run_1/mlperf_log_detail.txt");
        counters.check_run(
            &LoggedRun {
                case,
                log,
                path: &log_path,
            },
            findings,
        );
    }
    let base = format!("{directory}/accuracy");
    for name in ["mlperf_log_accuracy.json", "accuracy.txt"] {
        let file = format!("{base}/{name}");
        // In the new layout, the official truncation removes the accuracy files of a passed TEST01.
        if !case.context.tree.is_file(&file) && (case.classic() || !passed) {
            findings.error(
                rules::TEST_ACCURACY,
                &file,
                "is missing",
                "add TEST01's accuracy log and hash",
            );
        }
    }
    let log = format!("{base}/mlperf_log_accuracy.json");
    if case.context.tree.is_file(&log) {
        accuracy::truncated(case, &log, findings);
    }
    if !passed {
        fallback(case, &base, findings);
    }
}

/// Returns the number after `label =`, ignoring the label's letter case.
pub(super) fn labelled(line: &str, label: &str) -> Option<f64> {
    let (left, right) = line.split_once('=')?;
    left.trim()
        .eq_ignore_ascii_case(label)
        .then(|| right.trim().parse().ok())?
}

/// The counters in the script's output.
struct Counters<'a> {
    lines: &'a [String],
    path: &'a str,
}

impl Counters<'_> {
    /// Returns a counter's line number and value.
    fn get(&self, label: &str) -> Option<(u64, f64)> {
        let mut lines = (1..).zip(self.lines);
        lines.find_map(|(line, text)| Some((line, labelled(text, label)?)))
    }

    fn error(&self, line: Option<u64>, text: String, findings: &mut Findings) {
        findings.error(rules::TEST_ACCURACY, (self.path, line), text, FIX);
    }

    /// Checks the counters against each other and against the verdict.
    fn check(&self, passed: bool, findings: &mut Findings) {
        let Some((line, compared)) = self.get("num_perf_log_entries") else {
            return self.error(None, "the script's counters are missing".to_owned(), findings);
        };
        let mismatches = self
            .get("num_perf_log_data_mismatch")
            .map_or(0.0, |(_, count)| count);
        if passed && (mismatches > 0.0 || compared == 0.0) {
            let text = format!("has TEST PASS with {mismatches} mismatches of {compared}");
            self.error(None, text, findings);
        }
        let known = self
            .get("num_perf_log_qsl_idx_match")
            .zip(self.get("num_missing_qsl_idxs"));
        if let Some(((line, known), (_, unknown))) = known {
            if known + unknown != compared {
                let text =
                    format!("{known} responses of known samples and {unknown} of others are not {compared}");
                self.error(Some(line), text, findings);
            }
            if mismatches > known {
                let text = format!("{mismatches} mismatches of {known} compared responses");
                self.error(Some(line), text, findings);
            }
            if passed && unknown > 0.0 {
                let text =
                    format!("says TEST PASS, and {unknown} responses are of samples without an answer");
                self.error(Some(line), text, findings);
            }
        }
        let duplicates = self.get("num_acc_log_duplicate_keys");
        let differing = self.get("num_acc_log_data_mismatch");
        if let (Some((_, all)), Some((line, some))) = (duplicates, differing)
            && some > all
        {
            let text = format!("{some} of {all} repeated answers differ");
            self.error(Some(line), text, findings);
        }
        if passed && compared < 0.0 {
            self.error(
                Some(line),
                format!("{compared} responses were compared"),
                findings,
            );
        }
    }

    /// Checks that the script compared the complete accuracy run.
    ///
    /// It must have as many samples as the data set. MultiStream repeats some of them to fill its last set.
    fn check_accuracy_run(&self, case: &Case<'_>, accuracy: Option<&RunLog>, findings: &mut Findings) {
        let data_set = case.rules.dataset_samples_in(case.scenario);
        let Some(expected) = data_set.or_else(|| accuracy.and_then(accuracy::library)) else {
            return;
        };
        let Some((line, entries)) = self.get("num_acc_log_entries") else {
            return;
        };
        let repeated = self.get("num_acc_log_duplicate_keys").map(|(_, count)| count);
        let samples = entries - repeated.unwrap_or_default();
        // The short form of the output does not have the number of repeated samples.
        let right = match repeated {
            Some(_) => samples == expected as f64,
            None => samples >= expected as f64,
        };
        if !right {
            let text = format!(
                "num_acc_log_entries is {entries}, of {samples} samples; the data set has {expected} samples"
            );
            self.error(Some(line), text, findings);
        }
    }

    /// Checks that the script compared as many responses as the test's run logged, by the logging probability of its settings.
    fn check_run(&self, run: &LoggedRun<'_>, findings: &mut Findings) {
        let (Some((line, found)), Some(requested)) =
            (self.get("num_perf_log_entries"), settings::requested(run))
        else {
            return;
        };
        let (mut settings, _) = EffectiveSettings::new(&requested.settings, requested.library);
        for (key, setting) in [
            ("effective_min_query_count", &mut settings.min_query_count),
            ("effective_min_sample_count", &mut settings.min_sample_count),
        ] {
            *setting = run.count(key).unwrap_or(*setting);
        }
        let samples = super::figures::samples(run);
        let Some(samples) = samples.map(|samples| samples as f64) else {
            return;
        };
        let share = settings.effective_accuracy_log_probability().min(1.0);
        let expected = samples * share;
        let slack = DEVIATIONS * (expected * (1.0 - share)).sqrt() + 1.0;
        if share > 0.0 && (found - expected).abs() > slack {
            let text = format!(
                "num_perf_log_entries is {found}; of {samples} samples the run logs about {expected:.0}"
            );
            self.error(Some(line), text, findings);
        }
    }
}

fn fallback(case: &Case<'_>, base: &str, findings: &mut Findings) {
    let forms = case.context.round.submission.accuracy_forms;
    let mut read = |name: &str| {
        let path = format!("{base}/{name}");
        accuracy::lines(case, &path, findings)
    };
    let (baseline, compliance) = (read("baseline_accuracy.txt"), read("compliance_accuracy.txt"));
    let (Some(baseline), Some(compliance)) = (baseline, compliance) else {
        return;
    };
    for bound in case.rules.accuracy_in(Some(case.scenario)) {
        let last = |lines: &[String]| {
            let mut texts = lines
                .iter()
                .rev()
                .filter_map(|line| accuracy_text::metric(&bound.metric, forms, line));
            texts.next()?.parse::<f64>().ok().filter(|value| *value > 0.0)
        };
        let values = last(&baseline).zip(last(&compliance));
        let most = case.rules.delta_percent(&case.job.benchmark, &bound.metric);
        let close = values.is_some_and(|(a, b)| (1.0 - a / b).abs() * 100.0 <= most);
        if !close {
            let text = match values {
                Some((a, b)) => format!("{} is {a} and {b}, more than {most} % apart", bound.metric),
                None => format!("{} is missing from one of the files", bound.metric),
            };
            let fix = "repeat TEST01, or find out what differs between the two runs";
            findings.error(rules::TEST_ACCURACY, base, text, fix);
        }
    }
}
