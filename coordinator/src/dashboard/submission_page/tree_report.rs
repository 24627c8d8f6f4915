//! The strict check of a staged tree.

use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use regatta_config::catalogue::RoundCatalogue;
use regatta_submission::{
    check::{Report, strict},
    tree::Tree,
};

use super::readiness::key;
use crate::{store::Store, workspace::Workspace};

/// A check reads every log of a tree, so one runs at a time.
static CHECKING: Mutex<()> = Mutex::new(());

/// The strict check of a tree.
pub(in crate::dashboard) struct TreeReport {
    /// The tree's directory.
    pub(super) path: PathBuf,
    /// The round whose rules apply: the one of its runs.
    pub(super) round: String,
    /// The report.
    pub(super) report: Report,
}

impl TreeReport {
    /// Checks a tree that was staged from this workspace. `None` when no tree has this name. It blocks.
    pub(in crate::dashboard) fn of(name: &str, workspace: &Workspace) -> anyhow::Result<Option<Self>> {
        let _one_at_a_time = CHECKING.lock().unwrap_or_else(PoisonError::into_inner);
        let store = Store::open(&workspace.database())?;
        let mut trees = store.staged_trees()?.into_iter().map(|(path, ..)| path);
        let Some(path) = trees.find(|path| key(path) == name && path.is_dir()) else {
            return Ok(None);
        };
        let rounds = RoundCatalogue::read(Some(&workspace.configs()))?;
        let round = rounds.named(store.round_of_tree(&path)?.as_deref())?;
        Ok(Some(Self {
            report: strict(&Tree::scan(&path)?, round),
            round: round.name.clone(),
            path,
        }))
    }
}
