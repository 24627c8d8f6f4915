//! What the official scripts do not look at: whether the audit's run was made as the audit asks, by the LoadGen of the
//! submission's run. It judges nothing; a reviewer would ask about each of these.

use std::path::{Path, PathBuf};

use regatta_mllog::read::{DetailLog, Value, detail_file, file_name};

use super::{AuditError, Request, Test};

/// TEST01's seed for choosing samples, the same in every round.
const TEST01_SEED: u64 = 720_381_539_243_781_796;
const SEEDS: [&str; 3] = [
    "effective_qsl_rng_seed",
    "effective_sample_index_rng_seed",
    "effective_schedule_rng_seed",
];

/// Something odd about a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The detail log that shows it.
    pub path: PathBuf,
    /// The line, from 1, where there is one.
    pub line: Option<u64>,
    /// What is odd, and what it should be.
    pub message: String,
}

/// A detail log with its path, and what was observed in it.
struct Observed<'a> {
    path: PathBuf,
    log: DetailLog,
    found: &'a mut Vec<Observation>,
}

/// Looks through the detail logs of the submission's run and the audit's.
pub(super) fn observe(request: &Request<'_>, run: &Path) -> Result<Vec<Observation>, AuditError> {
    let mut found = Vec::new();
    let path = run.join(file_name::DETAIL);
    let reference = detail_file(&path)?;
    Observed {
        path,
        log: reference.clone(),
        found: &mut found,
    }
    .expect("effective_test_mode", &Value::Text("PerformanceOnly".to_owned()));

    let path = request.compliance.join(file_name::DETAIL);
    let log = detail_file(&path)?;
    let mut audit = Observed {
        path,
        log,
        found: &mut found,
    };
    audit.expect("effective_test_mode", &Value::Text("PerformanceOnly".to_owned()));
    audit.expect("result_validity", &Value::Text("VALID".to_owned()));
    for key in [
        "loadgen_version",
        "sut_name",
        "qsl_name",
        "qsl_reported_total_count",
    ] {
        if let Some(value) = reference.value(key) {
            audit.expect(key, value);
        }
    }
    match request.test {
        Test::Test01 => audit.expect("effective_accuracy_log_rng_seed", &Value::Unsigned(TEST01_SEED)),
        Test::Test04 => audit.expect("effective_performance_issue_same", &Value::Bool(true)),
        Test::Test05 => audit.expect_other_seeds(&reference),
    }
    if request.test != Test::Test05 {
        for key in SEEDS {
            if let Some(value) = reference.value(key) {
                audit.expect(key, value);
            }
        }
    }
    Ok(found)
}

impl Observed<'_> {
    fn expect(&mut self, key: &str, wanted: &Value) {
        let (line, given) = match self.log.first(key) {
            Some(record) if record.value == *wanted => return,
            Some(record) => (Some(record.line), format!("is {}", show(&record.value))),
            None => (None, "is missing".to_owned()),
        };
        self.found.push(Observation {
            path: self.path.clone(),
            line,
            message: format!("{key} {given}, not {}", show(wanted)),
        });
    }

    /// TEST05 is the same run with other seeds.
    fn expect_other_seeds(&mut self, reference: &DetailLog) {
        for key in SEEDS {
            let record = self.log.first(key);
            if record.is_some() && record.map(|record| &record.value) == reference.value(key) {
                self.found.push(Observation {
                    path: self.path.clone(),
                    line: record.map(|record| record.line),
                    message: format!("{key} is that of the submission's run: the audit asks for another"),
                });
            }
        }
    }
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
