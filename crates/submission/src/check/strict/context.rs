//! What all parts of the strict check have in common.

use regatta_config::round::{Checker, Engine, Layout, OfficialCheck, Round};

use super::loaded_sets::LoadedSets;
use crate::{check::finding::Severity, tree::Tree};

/// The input of every part of the check.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) tree: &'a Tree,
    pub(super) round: &'a Round,
    pub(super) sets: &'a LoadedSets,
}

impl Context<'_> {
    /// Describes a file that could not be read.
    pub(super) fn unread(&self, path: &str, error: impl std::fmt::Display) -> String {
        match self.tree.get(path) {
            None => "is missing".to_owned(),
            Some(_) => format!("cannot be read: {error}"),
        }
    }

    /// The severity of a file too many beside a result: the monoliths compare the files of its directories, the package since
    /// v6.0 does so for tests and power only.
    pub(super) fn file_set_severity(&self) -> Severity {
        match self.round.submission.layout {
            Layout::Classic => Severity::Error,
            Layout::ResultsOnly => Severity::Warning,
        }
    }

    /// The severity of a rule that came into force with some round: a warning before it.
    pub(super) fn since(&self, check: OfficialCheck) -> Severity {
        let before = |checker: &Checker| checker.engine == Engine::Monolith && !checker.looks_at(check);
        match self.round.submission.checkers.first() {
            Some(checker) if before(checker) => Severity::Warning,
            _ => Severity::Error,
        }
    }
}
