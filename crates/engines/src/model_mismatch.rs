//! How a model or an engine differs from what the benchmark needs.

use std::fmt;

/// What a model has and what the benchmark needs: the reason of [`EngineError::ModelUnfit`](super::EngineError::ModelUnfit).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelMismatch(String);

impl fmt::Display for ModelMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for ModelMismatch {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for ModelMismatch {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}
