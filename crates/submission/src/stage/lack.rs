//! What keeps a submission from being staged: one entry per thing that is missing or may not be submitted, each with its
//! place and the way out. The entries that an operator can simply answer say which answer is asked for.

use std::fmt::{self, Write as _};

use regatta_text::Escaped;

/// One thing that is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// Where: a run, a result, a line of the answers.
    pub place: String,
    /// What is missing there, in a few words.
    pub what: String,
    /// What to do about it.
    pub mend: String,
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

impl Lack {
    /// Something that no answer mends.
    pub(super) fn new(place: impl Into<String>, what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            what: what.into(),
            mend: mend.into(),
            question: None,
        }
    }

    /// Something that an answer mends.
    pub(super) fn asked(question: Question) -> Self {
        let (place, what, mend) = match &question {
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
            mend,
            question: Some(question),
        }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.place, self.what, self.mend)
    }
}

/// The lacks, one a line.
pub(super) fn list(lacks: &[Lack]) -> String {
    let mut text = String::new();
    for lack in lacks {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n  {}", Escaped(lack));
    }
    text
}
