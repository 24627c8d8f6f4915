//! Observations that the official scripts do not make: whether the runs have the expected modes and settings, and one LoadGen.
//!
//! Observations do not change the verdict. A reviewer would question each of them.

use std::path::{Path, PathBuf};

use regatta_loadgen_conf::{Conf, ConfKind, TestSettings};
use regatta_mllog::read::{DetailLog, Value, Verdict, detail_file, file_name, summary_file};
use regatta_types::{Mode, Scenario};

use super::{AuditError, AuditRequest, Test};

const SEEDS: [&str; 3] = [
    "effective_qsl_rng_seed",
    "effective_sample_index_rng_seed",
    "effective_schedule_rng_seed",
];
/// Keys that must have the same value in every run of a submission: LoadGen and the system under test.
const IDENTITY: [&str; 4] = [
    "loadgen_version",
    "sut_name",
    "qsl_name",
    "qsl_reported_total_count",
];

/// An unexpected value in a run's logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The log's path.
    pub path: PathBuf,
    /// The line, from 1, if there is one.
    pub line: Option<u64>,
    /// The unexpected value and the expected one.
    pub message: String,
}

/// A detail log with its path, and the observations so far.
struct Observed<'a> {
    path: PathBuf,
    log: DetailLog,
    found: &'a mut Vec<Observation>,
}

/// Compares the logs of the submission's runs and of the audit's run.
pub(super) fn observe(request: &AuditRequest<'_>) -> Result<Vec<Observation>, AuditError> {
    let mut found = Vec::new();
    let mut performance = Observed::open(&request.audited.performance, &mut found)?;
    performance.expect_mode(Mode::PerformanceOnly);
    performance.expect_same_summary();
    let reference = performance.log;

    // A tree that comes from others may lack the accuracy run's detail log. The checker requires it; the audit does not.
    let accuracy = &request.audited.accuracy;
    if request.test == Test::Test01 && accuracy.join(file_name::DETAIL).exists() {
        let mut accuracy = Observed::open(accuracy, &mut found)?;
        accuracy.expect_mode(Mode::AccuracyOnly);
        accuracy.expect_all(&IDENTITY, &reference);
    }

    let mut audit = Observed::open(request.compliance, &mut found)?;
    audit.expect("result_validity", &text("VALID"));
    audit.expect_all(&IDENTITY, &reference);
    audit.expect_settings(request);
    audit.expect_same_summary();
    match request.test {
        Test::Test05 => audit.expect_other_seeds(&reference),
        Test::Test01 | Test::Test04 => audit.expect_all(&SEEDS, &reference),
    }
    Ok(found)
}

impl<'a> Observed<'a> {
    fn open(directory: &Path, found: &'a mut Vec<Observation>) -> Result<Self, AuditError> {
        let path = directory.join(file_name::DETAIL);
        let log = detail_file(&path)?;
        Ok(Self { path, log, found })
    }

    fn say(&mut self, line: Option<u64>, message: String) {
        self.found.push(Observation {
            path: self.path.clone(),
            line,
            message,
        });
    }

    fn expect(&mut self, key: &str, expected: &Value) {
        self.expect_because(key, expected, "");
    }

    fn expect_because(&mut self, key: &str, expected: &Value, consequence: &str) {
        let (line, actual) = match self.log.first(key) {
            Some(record) if record.value == *expected => return,
            Some(record) => (Some(record.line), format!("is {}", show(&record.value))),
            None => (None, "is missing".to_owned()),
        };
        self.say(
            line,
            format!("{key} {actual}, not {}{consequence}", show(expected)),
        );
    }

    fn expect_mode(&mut self, mode: Mode) {
        self.expect("effective_test_mode", &text(mode.as_str()));
    }

    /// Expects the other log's values of these keys.
    fn expect_all(&mut self, keys: &[&str], reference: &DetailLog) {
        for key in keys {
            if let Some(value) = reference.value(key) {
                self.expect(key, value);
            }
        }
    }

    /// Expects the settings of the round's `audit.config`. A configuration that cannot be parsed is ignored.
    fn expect_settings(&mut self, request: &AuditRequest<'_>) {
        let scenario = self.log.value("effective_scenario").and_then(Value::as_str);
        let Some(scenario) = scenario.and_then(|name| name.parse::<Scenario>().ok()) else {
            return;
        };
        let Some(expected) = settings(request, scenario) else {
            return;
        };
        self.expect_mode(expected.mode);
        if expected.accuracy_log_rng_seed != 0 {
            let seed = Value::Unsigned(expected.accuracy_log_rng_seed);
            self.expect("effective_accuracy_log_rng_seed", &seed);
        }
        if expected.performance_issue_same {
            let many = ": the run requested many samples, and shows nothing about caching";
            self.expect_because("effective_performance_issue_same", &Value::Bool(true), many);
            // LoadGens of some rounds do not log these keys.
            for (key, value) in [
                ("effective_performance_issue_unique", Value::Bool(false)),
                (
                    "effective_performance_issue_same_index",
                    Value::Unsigned(expected.performance_issue_same_index),
                ),
            ] {
                if self.log.first(key).is_some() {
                    self.expect(key, &value);
                }
            }
        }
    }

    /// Expects seeds that differ from the submission's run, because TEST05 repeats it with other seeds.
    fn expect_other_seeds(&mut self, reference: &DetailLog) {
        for key in SEEDS {
            let record = self.log.first(key);
            if record.is_some() && record.map(|record| &record.value) == reference.value(key) {
                let line = record.map(|record| record.line);
                let message = format!("{key} is that of the submission's run: the audit requires another");
                self.say(line, message);
            }
        }
    }

    /// Compares the summary with the log beside it. Code that needs the summary reports one that cannot be parsed.
    fn expect_same_summary(&mut self) {
        let path = self.path.with_file_name(file_name::SUMMARY);
        let Ok(summary) = summary_file(&path) else {
            return;
        };
        let verdict = summary.verdict.map(|verdict| match verdict {
            Verdict::Valid => "VALID",
            Verdict::Invalid => "INVALID",
        });
        let claims = [
            ("effective_scenario", summary.scenario.map(Scenario::as_str)),
            ("effective_test_mode", summary.mode.map(Mode::as_str)),
            ("sut_name", summary.sut_name.as_deref()),
            ("result_validity", verdict),
        ];
        for (key, claimed) in claims {
            let logged = self.log.value(key).and_then(Value::as_str);
            if let (Some(claimed), Some(logged)) = (claimed, logged)
                && claimed != logged
            {
                self.found.push(Observation {
                    path: path.clone(),
                    line: None,
                    message: format!("the summary has `{claimed}`, {key} in the detail log is `{logged}`"),
                });
            }
        }
    }
}

/// Returns the settings that the audit's configuration makes.
fn settings(request: &AuditRequest<'_>, scenario: Scenario) -> Option<TestSettings> {
    let rule = request.round.audits.get(request.test.name())?;
    let conf = Conf::parse("audit.config", &rule.config).ok()?;
    let mut settings = TestSettings::new(scenario, Mode::PerformanceOnly);
    settings.apply(&conf, ConfKind::Audit, "*").ok()?;
    Some(settings)
}

fn text(word: &str) -> Value {
    Value::Text(word.to_owned())
}

fn show(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("`{text}`"),
        Value::Bool(value) => value.to_string(),
        Value::Unsigned(value) => value.to_string(),
        Value::Signed(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Null | Value::List(_) | Value::Map(_) => "something else".to_owned(),
    }
}
