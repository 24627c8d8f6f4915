//! The strict check of a staged tree.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use regatta_catalogue::catalogue::RoundCatalogue;
use regatta_submission_check::{
    check::{StrictReport, strict},
    tree::Tree,
};

use super::readiness::key;
use crate::{page_error::PageError, recent_results::RecentResults};
use regatta_lab_store::{self as store, workspace::Workspace};

/// The newest checks, by the tree and the time when it was staged. A check reads every log of a tree.
static NEWEST: RecentResults<CheckedTree, TreeReport, anyhow::Error> = RecentResults::new();

/// A staging of a tree, whose check does not change.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CheckedTree {
    path: PathBuf,
    staged: String,
}

/// The strict check of a tree.
pub(crate) struct TreeReport {
    /// The tree's directory.
    pub(super) path: PathBuf,
    /// The round whose rules apply: the one of its runs.
    pub(super) round: String,
    pub(super) report: StrictReport,
    /// The time when it was checked, RFC 3339 UTC.
    pub(super) checked: String,
}

impl TreeReport {
    /// Returns the check of a tree that was staged from this workspace, made now or a moment ago. It blocks.
    ///
    /// # Errors
    /// Returns an error when no tree has this name, or it cannot be read.
    pub(crate) fn of(name: &str, workspace: &Workspace) -> Result<Arc<anyhow::Result<Self>>, PageError> {
        let trees = workspace.store()?.staged_runs().trees()?;
        let tree = trees
            .into_iter()
            .find(|tree| key(&tree.path) == name && tree.path.is_dir())
            .ok_or_else(|| PageError::not_found("there is no such staged tree"))?;
        let tree = CheckedTree {
            path: tree.path,
            staged: tree.staged,
        };
        Ok(NEWEST.of(&tree, workspace.root(), || Self::check(&tree.path, workspace)))
    }

    fn check(path: &Path, workspace: &Workspace) -> anyhow::Result<Self> {
        let store = workspace.store()?;
        let rounds = RoundCatalogue::read(Some(&workspace.configs()))?;
        let round = rounds.named(store.staged_runs().round_of_tree(path)?.as_deref())?;
        Ok(Self {
            report: strict(&Tree::scan(path)?, round),
            round: round.name.clone(),
            path: path.to_owned(),
            checked: store::now(),
        })
    }
}
