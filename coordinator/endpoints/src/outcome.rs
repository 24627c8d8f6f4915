//! What the client's documents say of a run, and what its exit code does not say: after a dead server it is 0, with `complete` true.

use std::path::Path;

use regatta_catalogue::round::{AccuracyBound, PrescribedRun};
use regatta_fsutil::regular_file;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    EndpointsError,
    documents::{ACCURACY, SUMMARY},
};

/// The maximum size of a document in bytes.
const MAX_DOCUMENT: u64 = 64 << 20;

/// The figures of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EndpointsOutcome {
    /// The mean latency in nanoseconds: the benchmark's result.
    pub mean_latency_ns: Option<f64>,
    /// The mean time to the first token in nanoseconds.
    pub mean_first_token_ns: Option<f64>,
    pub tokens_per_second: Option<f64>,
    /// Correct responses in percent.
    pub accuracy: Option<f64>,
    /// The mean of the categories' scores in percent.
    pub normalized_accuracy: Option<f64>,
    pub requests: u64,
    pub problems: Vec<EndpointsProblem>,
}

/// A reason why a run is not a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointsProblem {
    /// The document, below the report's directory.
    pub file: String,
    pub text: String,
}

impl EndpointsOutcome {
    /// Reads the documents in a report's directory. `accuracy` is the bound of the correct responses, if the rules have one.
    pub(crate) fn read(
        report: &Path,
        run: &PrescribedRun,
        accuracy: Option<&AccuracyBound>,
    ) -> Result<Self, EndpointsError> {
        let mut outcome = Self::default();
        if let Some(summary) = outcome.document(report, SUMMARY)? {
            outcome.performance(&summary, run);
        }
        if let Some(document) = outcome.document(report, ACCURACY)? {
            outcome.scores(&document, run, accuracy);
        }
        Ok(outcome)
    }

    fn document(&mut self, report: &Path, file: &str) -> Result<Option<Value>, EndpointsError> {
        let path = report.join(file);
        if !path.exists() {
            self.problem(file, "the client did not write it");
            return Ok(None);
        }
        let bytes = regular_file::read(&path, MAX_DOCUMENT).map_err(EndpointsError::file(&path))?;
        let document = serde_json::from_slice(&bytes);
        if let Err(error) = &document {
            self.problem(file, format!("it is not JSON: {error}"));
        }
        Ok(document.ok())
    }

    fn performance(&mut self, summary: &Value, run: &PrescribedRun) {
        let number = |pointer: &str| summary.pointer(pointer).and_then(Value::as_f64);
        let count = |name: &str| summary[name].as_u64().unwrap_or_default();
        self.mean_latency_ns = number("/latency/avg");
        self.mean_first_token_ns = number("/ttft/avg");
        self.tokens_per_second = number("/tps");
        let [issued, completed, failed] =
            ["n_samples_issued", "n_samples_completed", "n_samples_failed"].map(count);
        self.requests = issued;
        if failed > 0 {
            // Failed requests count as completed.
            self.problem(SUMMARY, format!("{failed} of {issued} requests failed"));
        }
        if completed < issued {
            self.problem(SUMMARY, format!("{completed} of {issued} requests were answered"));
        }
        if issued != run.requests {
            let text = format!(
                "{issued} requests were made, and the rules prescribe {}",
                run.requests
            );
            self.problem(SUMMARY, text);
        }
        if summary["state"] != "complete" || summary["complete"] != true {
            self.problem(SUMMARY, format!("the run's state is {}", summary["state"]));
        }
    }

    fn scores(&mut self, document: &Value, run: &PrescribedRun, accuracy: Option<&AccuracyBound>) {
        let Some(scores) = document.pointer("/accuracy_scores/0") else {
            self.problem(ACCURACY, "it has no score");
            return;
        };
        let percent = |pointer: &str| scores.pointer(pointer).and_then(Value::as_f64);
        self.accuracy = percent("/breakdown/overall_accuracy");
        self.normalized_accuracy = percent("/breakdown/normalized_single_turn_score");
        let counts = &scores["response_counts"];
        let count = |name: &str| counts[name].as_u64().unwrap_or_default();
        let samples = run.accuracy_samples();
        if count("scored") != samples {
            // Empty responses count as correct refusals to call a function.
            let text = format!(
                "{} of {samples} responses were scored, {} were empty and {} missing",
                count("scored"),
                count("empty"),
                count("missing")
            );
            self.problem(ACCURACY, text);
        }
        let normalized = self.normalized_accuracy;
        for (name, score, bound) in [
            ("accuracy", self.accuracy, accuracy),
            ("normalized accuracy", normalized, Some(&run.normalized)),
        ] {
            let Some(bound) = bound.map(AccuracyBound::value) else {
                continue;
            };
            match score {
                Some(score) if score >= bound => {}
                Some(score) => self.problem(
                    ACCURACY,
                    format!("the {name} is {score:.2} %, below {bound:.2} %"),
                ),
                None => self.problem(ACCURACY, format!("it has no {name}")),
            }
        }
    }

    pub(crate) fn problem(&mut self, file: &str, text: impl Into<String>) {
        self.problems.push(EndpointsProblem {
            file: file.to_owned(),
            text: text.into(),
        });
    }
}
