//! Where the parts of a result lie, in the layout of the round and relative to the submission's root
//! (`submission_rules.adoc`, "Directory structure").

use regatta_config::round::Layout;
use regatta_types::{Division, Scenario};

/// The places of one submitter.
#[derive(Debug, Clone)]
pub(super) struct Places {
    layout: Layout,
    /// `<division>/<submitter>`.
    pub(super) home: String,
}

/// What a result is of, as its directories are named.
#[derive(Debug, Clone, Copy)]
pub(super) struct Of<'a> {
    pub(super) system: &'a str,
    pub(super) model: &'a str,
    pub(super) scenario: Scenario,
}

impl Places {
    pub(super) fn new(layout: Layout, division: Division, submitter: &str) -> Self {
        Self {
            layout,
            home: format!("{division}/{submitter}"),
        }
    }

    /// The system description.
    pub(super) fn system(&self, system: &str) -> String {
        format!("{}/systems/{system}.json", self.home)
    }

    /// The result's own directory.
    pub(super) fn results(&self, of: Of<'_>) -> String {
        self.below("results", of)
    }

    /// The directory of `user.conf` and the other texts about how it was measured.
    pub(super) fn measurements(&self, of: Of<'_>) -> String {
        match self.layout {
            Layout::Classic => self.below("measurements", of),
            Layout::ResultsOnly => self.results(of),
        }
    }

    /// The measurement file, in the spelling from which the checkers find the implementation.
    pub(super) fn measurement_file(&self, of: Of<'_>, implementation: &str) -> String {
        let directory = self.measurements(of);
        match self.layout {
            Layout::Classic => format!("{directory}/{}_{implementation}_{}.json", of.system, of.scenario),
            Layout::ResultsOnly => format!("{directory}/measurements.json"),
        }
    }

    /// The directory that holds an audit's directory.
    pub(super) fn audits(&self, of: Of<'_>) -> String {
        match self.layout {
            Layout::Classic => self.below("compliance", of),
            Layout::ResultsOnly => self.results(of),
        }
    }

    /// The implementation's code.
    pub(super) fn code(&self, model: &str, implementation: &str) -> String {
        let part = match self.layout {
            Layout::Classic => "code",
            Layout::ResultsOnly => "src",
        };
        format!("{}/{part}/{model}/{implementation}", self.home)
    }

    fn below(&self, part: &str, of: Of<'_>) -> String {
        format!("{}/{part}/{}/{}/{}", self.home, of.system, of.model, of.scenario)
    }
}

/// Whether a text may be a directory's name in a submission: letters, digits, `_`, `-` and `.`, no dot in front.
pub(super) fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    !text.is_empty() && !text.starts_with('.') && text.chars().all(plain)
}

/// Whether a file's name has neither white space nor control characters, nor what was no text.
pub(super) fn is_plain(name: &str) -> bool {
    !name
        .chars()
        .any(|c| c.is_whitespace() || c.is_control() || c == char::REPLACEMENT_CHARACTER)
}
