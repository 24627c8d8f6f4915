//! The input that all parts of the strict check share.

use regatta_catalogue::round::{Checker, CheckerKind, Layout, OfficialCheck, Round};

use super::loaded_sets::LoadedSets;
use crate::{check::finding::Severity, tree::Tree};

/// The submission tree, its round and the cached sample sets.
#[derive(Debug, Clone, Copy)]
pub(super) struct StrictContext<'a> {
    pub(super) tree: &'a Tree,
    pub(super) round: &'a Round,
    pub(super) sets: &'a LoadedSets,
}

impl StrictContext<'_> {
    /// Describes why a file could not be read.
    pub(super) fn unread(&self, path: &str, error: impl std::fmt::Display) -> String {
        match self.tree.get(path) {
            None => "is missing".to_owned(),
            Some(_) => format!("cannot be read: {error}"),
        }
    }

    /// Returns the severity of a surplus file beside a result.
    ///
    /// The monoliths compare the files of its directories. The package since v6.0 only does so for compliance tests and power.
    pub(super) fn file_set_severity(&self) -> Severity {
        match self.round.submission.layout {
            Layout::Classic => Severity::Error,
            Layout::ResultsOnly => Severity::Warning,
        }
    }

    /// Returns the severity of a rule that a certain round introduced: a warning in earlier rounds, an error since.
    pub(super) fn since(&self, check: OfficialCheck) -> Severity {
        let before = |checker: &Checker| checker.kind == CheckerKind::Monolith && !checker.looks_at(check);
        match self.round.submission.checkers.first() {
            Some(checker) if before(checker) => Severity::Warning,
            _ => Severity::Error,
        }
    }
}
