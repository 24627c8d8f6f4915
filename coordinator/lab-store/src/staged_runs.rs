//! The runs in submission trees. Removing such a run needs a confirmation.

use std::path::{Path, PathBuf};

use regatta_types::RunId;

use super::{Result, Store, values};
use crate::database::params;

/// A submission tree that was staged from runs of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedTreeRow {
    /// Its directory.
    pub path: PathBuf,
    /// The time when it was staged, RFC 3339 UTC.
    pub staged: String,
    /// The number of its runs that the store has.
    pub runs: u64,
}

/// The runs in submission trees.
#[derive(Debug)]
pub struct StagedRuns<'a> {
    pub(super) store: &'a Store,
}

impl StagedRuns<'_> {
    /// Stores that a submission tree contains a run. Does nothing for a run that is not in the store.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn add(&self, run: RunId, tree: &Path, staged: &str) -> Result<()> {
        self.store.execute(
            "INSERT INTO staged_runs (run, tree, staged) SELECT id, ?2, ?3
                 FROM runs WHERE id = ?1 ON CONFLICT (run, tree) DO UPDATE
                 SET staged = ?3",
            params![run.to_string(), tree.to_string_lossy(), staged],
        )?;
        Ok(())
    }

    /// Returns the submission trees that contain runs of the store, newest first. Some may have been deleted since.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn trees(&self) -> Result<Vec<StagedTreeRow>> {
        self.store.rows(
            "SELECT tree, max(staged) AS staged, count(*) AS runs FROM staged_runs GROUP BY tree
                 ORDER BY staged DESC",
            params![],
            |row| {
                let tree: String = row.get("tree")?;
                Ok(StagedTreeRow {
                    path: PathBuf::from(tree),
                    staged: row.get("staged")?,
                    runs: values::unsigned(row, "runs")?,
                })
            },
        )
    }

    /// Returns the round of the runs in a submission tree.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn round_of_tree(&self, tree: &Path) -> Result<Option<String>> {
        self.store.optional(
            "SELECT draft -> 'spec' ->> 'round' FROM runs JOIN staged_runs
                 ON run = id WHERE tree = ?1 LIMIT 1",
            params![tree.to_string_lossy()],
            |row| row.get(0),
        )
    }

    /// Returns the submission trees that contain a run. Some may have been deleted since.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn trees_with(&self, id: RunId) -> Result<Vec<PathBuf>> {
        self.store.rows(
            "SELECT tree FROM staged_runs WHERE run = ?1 ORDER BY staged",
            params![id.to_string()],
            |row| Ok(PathBuf::from(row.get::<String>(0)?)),
        )
    }
}
