//! The paths of a result's parts in the round's layout, relative to the submission's root (`submission_rules.adoc`, "Directory
//! structure").

use regatta_catalogue::round::Layout;
use regatta_types::{Division, Scenario};

/// The paths of one submitter.
#[derive(Debug, Clone)]
pub(super) struct Places {
    layout: Layout,
    /// The submitter's directory, `<division>/<submitter>`.
    pub(super) home: String,
}

/// The directory names that identify a result.
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

    /// Returns the path of the system description.
    pub(super) fn system(&self, system: &str) -> String {
        format!("{}/systems/{system}.json", self.home)
    }

    /// Returns the directory of the result.
    pub(super) fn results(&self, of: Of<'_>) -> String {
        self.below("results", of)
    }

    /// Returns the directory of `user.conf` and the other texts about the measurement.
    pub(super) fn measurements(&self, of: Of<'_>) -> String {
        match self.layout {
            Layout::Classic => self.below("measurements", of),
            Layout::ResultsOnly => self.results(of),
        }
    }

    /// Returns the path of the measurement file. The checkers read the implementation's name from it.
    pub(super) fn measurement_file(&self, of: Of<'_>, implementation: &str) -> String {
        let directory = self.measurements(of);
        match self.layout {
            Layout::Classic => format!("{directory}/{}_{implementation}_{}.json", of.system, of.scenario),
            Layout::ResultsOnly => format!("{directory}/measurements.json"),
        }
    }

    /// Returns the directory that contains the audits' directories.
    pub(super) fn audits(&self, of: Of<'_>) -> String {
        match self.layout {
            Layout::Classic => self.below("compliance", of),
            Layout::ResultsOnly => self.results(of),
        }
    }

    /// Returns the directory of the implementation's code.
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

/// Returns whether a text is a valid directory name: letters, digits, `_`, `-` and `.`, without a leading dot.
pub(super) fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    !text.is_empty() && !text.starts_with('.') && text.chars().all(plain)
}

/// Returns whether a file name has no white space, no control characters and no replacement characters.
pub(super) fn is_plain(name: &str) -> bool {
    !name
        .chars()
        .any(|c| c.is_whitespace() || c.is_control() || c == char::REPLACEMENT_CHARACTER)
}
