//! Why documents of the endpoints harness cannot be used.

use std::io;

use serde_json::Value;

use super::yaml::YamlError;

/// Why one document cannot be read. The text continues a sentence that begins with the document's path.
#[derive(Debug, thiserror::Error)]
pub(super) enum DocumentError {
    #[error("cannot be read: {0}")]
    Unreadable(io::Error),
    #[error("is not UTF-8 text")]
    NotText,
    #[error("is not JSON: {0}")]
    NotJson(serde_json::Error),
    #[error(transparent)]
    Yaml(#[from] YamlError),
}

/// Why the official parser ends while it takes values from the documents of a scenario.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum LogsError {
    #[error("{path} is not a JSON object")]
    NotAnObject { path: String },
    #[error("{path}: accuracy_scores is not a list")]
    ScoresAreNoList { path: String },
    #[error("{path}: accuracy_scores contains a value that is not an object")]
    ScoreIsNoObject { path: String },
    #[error("a count of accuracy samples is {0}")]
    SampleCount(Value),
    #[error("the type in config.yaml is not text")]
    TypeIsNoText,
    #[error("a count or duration in result_summary.json is not a number")]
    RateIsNoNumber,
}
