//! The findings that prevent staging. Each names one thing that is missing or may not be submitted, its place and a fix.
//!
//! If an answer of the operator can fix it, the finding has the question.

use std::{
    error::Error,
    fmt::{self, Write as _},
    path::Path,
};

use regatta_text::{ErrorChain, Escaped};

/// One thing that is missing or may not be submitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagingFinding {
    /// The place: a run, a result or a part of the answers.
    pub place: String,
    /// The missing or forbidden part.
    pub what: String,
    /// The hint about the fix.
    pub fix: String,
    /// The question whose answer fixes it.
    pub question: Option<Question>,
}

/// A question that only the operator can answer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// The submitter's name.
    Submitter,
    /// A field of a system description.
    System {
        /// The system's directory name.
        system: String,
        /// The official field name.
        field: String,
    },
    /// A field of the measurement file.
    Measurement {
        /// The benchmark's name in the runs.
        benchmark: String,
        /// The official field name.
        field: String,
    },
}

impl StagingFinding {
    /// Creates a finding that no answer fixes.
    pub(super) fn new(place: impl Into<String>, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            what: what.into(),
            fix: fix.into(),
            question: None,
        }
    }

    /// Creates the finding of a run whose documents cannot be read.
    pub(super) fn unreadable(directory: &Path, error: &(dyn Error + 'static)) -> Self {
        let name = directory.file_name().unwrap_or(directory.as_os_str());
        Self::new(
            format!("run {}", name.display()),
            ErrorChain(error).to_string(),
            "restore its directory, or repeat the run",
        )
    }

    /// Creates a finding that an answer of the operator fixes.
    pub(super) fn unanswered(question: Question) -> Self {
        let (place, what, fix) = match &question {
            Question::Submitter => (
                "answers".to_owned(),
                "the submitter's name is missing".to_owned(),
                "set `submitter`".to_owned(),
            ),
            Question::System { system, field } => (
                format!("answers: system {system}"),
                format!("the field {field} is missing"),
                format!("set `{field}` under [system.description]"),
            ),
            Question::Measurement { benchmark, field } => (
                format!("answers: benchmark {benchmark}"),
                format!("the field {field} is missing"),
                format!("set `{field}` under [benchmark.\"{benchmark}\"]"),
            ),
        };
        Self {
            place,
            what,
            fix,
            question: Some(question),
        }
    }
}

impl fmt::Display for StagingFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.place, self.what, self.fix)
    }
}

/// Lists the findings, one per line.
pub(super) fn list(findings: &[StagingFinding]) -> String {
    let mut text = String::new();
    for finding in findings {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n  {}", Escaped(finding));
    }
    text
}
