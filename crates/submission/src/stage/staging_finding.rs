//! What keeps a submission from being staged: one finding for each thing that is missing or may not be submitted, with its place
//! and a fix. A finding that the operator can fix with an answer has the question.

use std::fmt::{self, Write as _};

use regatta_text::Escaped;

/// A thing that is missing or may not be submitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagingFinding {
    /// Where: a run, a result, a line of the answers.
    pub place: String,
    /// What is missing there, in a few words.
    pub what: String,
    /// What to do about it.
    pub fix: String,
    /// The answer that would fill the gap.
    pub question: Option<Question>,
}

/// An answer that only the operator has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// The submitter's name.
    Submitter,
    /// A field of a system description.
    System {
        /// The system's directory name.
        system: String,
        /// The official field.
        field: String,
    },
    /// A field of the measurement file.
    Measurement {
        /// The benchmark as the runs name it.
        benchmark: String,
        /// The official field.
        field: String,
    },
}

impl StagingFinding {
    /// A finding that no answer fixes.
    pub(super) fn new(place: impl Into<String>, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            what: what.into(),
            fix: fix.into(),
            question: None,
        }
    }

    /// A finding that an answer of the operator fixes.
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

/// Lists the findings, one a line.
pub(super) fn list(findings: &[StagingFinding]) -> String {
    let mut text = String::new();
    for finding in findings {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n  {}", Escaped(finding));
    }
    text
}
