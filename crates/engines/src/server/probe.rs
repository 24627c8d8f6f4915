//! What a server answers before its run begins: the driver's probe, and the name of the model that it loaded. A wrong model, a wrong chat template
//! or garbage then fails the run in seconds instead of after hours.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::Value;

use super::{
    answer::{AnswerError, beginning, reasons},
    http::{Connection, HttpError},
    placeholders::unknown_placeholder,
};

/// The placeholders of a probe.
const IN_PROBES: &[&str] = &["model"];

/// The maximum size of a path in bytes, as Linux has it.
const MAX_PATH: usize = 4096;

/// A request that a server for clients answers once, after it is ready.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Probe {
    /// The path that it is posted to.
    path: String,
    /// The JSON document, with `{model}` for the path of the model.
    body: String,
    /// The JSON pointer to the answer's text, which must not be empty.
    text: String,
    /// What the text must contain, if anything.
    #[serde(default)]
    contains: Option<String>,
    /// The JSON pointer to the text of the model's reasoning, which must be missing or empty: the benchmarks switch reasoning off.
    #[serde(default)]
    reasoning: Option<String>,
}

/// Where a server says which model it loaded.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoadedModel {
    /// The path of a JSON document.
    path: String,
    /// The JSON pointer to the path of the model in it.
    model: String,
}

/// Why a server cannot be used although it is ready.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProbeError {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error(transparent)]
    Answer(#[from] AnswerError),
    #[error(transparent)]
    Request(Box<dyn Error + Send + Sync>),
    #[error("the server's answer is empty: {0}")]
    Empty(String),
    #[error("the server's answer does not contain `{expected}`: {text}")]
    Garbage { expected: String, text: String },
    #[error("the server has loaded another model, {found}, instead of {expected}")]
    OtherModel { found: String, expected: String },
}

impl Probe {
    /// Returns what makes the table unusable.
    pub(super) fn fault(&self) -> Option<String> {
        if let Some(unknown) = unknown_placeholder(&self.body, IN_PROBES) {
            return Some(unknown);
        }
        if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&self.body) {
            return Some(format!("`probe.body` is not JSON: {error}"));
        }
        let mut pointers = self.reasoning.iter().chain([&self.text, &self.path]);
        let is_valid = pointers.all(|pointer| pointer.starts_with('/'));
        (!is_valid).then(|| "`path`, `text` and `reasoning` of `probe` begin with /".to_owned())
    }

    /// Sends the request and checks the answer.
    pub(super) fn check(&self, connection: &mut Connection, model: &Path) -> Result<(), ProbeError> {
        // A path may have characters that JSON escapes. A text is always JSON.
        let model = serde_json::to_string(&model.to_string_lossy()).unwrap_or_default();
        let body = self.body.replace("{model}", model.trim_matches('"'));
        let mut document = Vec::new();
        connection.post(&self.path, body.as_bytes(), &mut |part| {
            document.extend_from_slice(part);
        })?;
        let value = parsed(&document)?;
        let text_at = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::trim);
        if let Some(reasoning) = self
            .reasoning
            .as_deref()
            .and_then(text_at)
            .filter(|text| !text.is_empty())
        {
            return Err(AnswerError::Reasons(shown(reasoning)).into());
        }
        let text = text_at(&self.text).ok_or_else(|| AnswerError::NoText {
            pointer: self.text.clone(),
            text: beginning(&document),
        })?;
        if reasons(text) {
            return Err(AnswerError::Reasons(shown(text)).into());
        }
        match &self.contains {
            _ if text.is_empty() => Err(ProbeError::Empty(beginning(&document))),
            Some(expected) if !text.contains(expected.as_str()) => Err(ProbeError::Garbage {
                expected: expected.clone(),
                text: shown(text),
            }),
            _ => Ok(()),
        }
    }
}

impl LoadedModel {
    /// Returns what makes the table unusable.
    pub(super) fn fault(&self) -> Option<String> {
        let is_valid = self.path.starts_with('/') && self.model.starts_with('/');
        (!is_valid).then(|| "the keys of `loaded_model` begin with /".to_owned())
    }

    /// Returns the path of the model that the server states. One that is not absolute begins in `directory`.
    pub(super) fn stated(
        &self,
        connection: &mut Connection,
        directory: Option<&Path>,
    ) -> Result<PathBuf, ProbeError> {
        let document = connection.get_document(&self.path)?;
        let value = parsed(&document)?;
        let found = value.pointer(&self.model).and_then(Value::as_str);
        let found = found
            .filter(|path| path.len() <= MAX_PATH)
            .ok_or_else(|| AnswerError::NoText {
                pointer: self.model.clone(),
                text: beginning(&document),
            })?;
        Ok(directory.map_or_else(|| PathBuf::from(found), |directory| directory.join(found)))
    }
}

/// Checks that the model that a server states is the expected one.
pub(super) fn check_model(stated: &Path, expected: &Path) -> Result<(), ProbeError> {
    let is_same = stated == expected
        || matches!((fs::canonicalize(stated), fs::canonicalize(expected)), (Ok(stated), Ok(expected)) if stated == expected);
    if is_same {
        return Ok(());
    }
    Err(ProbeError::OtherModel {
        found: shown(&stated.to_string_lossy()),
        expected: expected.display().to_string(),
    })
}

fn parsed(document: &[u8]) -> Result<Value, ProbeError> {
    let parsed = serde_json::from_slice(document);
    parsed.map_err(|source| {
        AnswerError::NotJson {
            text: beginning(document),
            source,
        }
        .into()
    })
}

/// Returns the beginning of a text for a message.
fn shown(text: &str) -> String {
    beginning(text.as_bytes())
}
