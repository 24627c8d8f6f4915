//! The submission trees that were made with a run. The store has them for commands. A file in the run's directory has them for a store that
//! is rebuilt. Callers must check whether a tree still exists.

use std::{collections::BTreeSet, io, path::Path};

use anyhow::Context as _;
use regatta_fsutil::{
    atomic_file::AtomicFile,
    regular_file::{self, MAX_DOCUMENT},
};
use regatta_types::{Mode, RunId, documents::RunPhase};
use serde::{Deserialize, Serialize};

use regatta_lab_store::{
    self as store, RunRow, Store,
    workspace::{RunDir, Workspace},
};

/// A submission tree with a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StagedIn {
    /// The tree's absolute path.
    tree: String,
    /// The time when it was made, RFC 3339 UTC.
    staged: String,
}

/// Stores that a submission tree, an absolute path, was made with runs. Runs that the store does not know are left out.
///
/// # Errors
/// Returns an error when a run's file cannot be read or written, or when the store fails.
pub fn keep(workspace: &Workspace, store: &Store, runs: &BTreeSet<RunId>, tree: &Path) -> anyhow::Result<()> {
    let new = StagedIn {
        tree: tree.to_string_lossy().into_owned(),
        staged: store::now(),
    };
    for run in runs {
        if store.runs().get(*run)?.is_none() {
            continue;
        }
        let dir = workspace.run(*run);
        let mut trees = read(&dir)?;
        trees.retain(|known| known.tree != new.tree);
        trees.push(new.clone());
        AtomicFile::new(&dir.staged()).write(&serde_json::to_vec_pretty(&trees)?)?;
        store.staged_runs().add(*run, tree, &new.staged)?;
    }
    Ok(())
}

/// Returns whether a run may be part of a submission of a round: it is done and recorded, and is not a search for the highest rate.
pub fn is_offered(row: &RunRow, round: &str) -> bool {
    row.recorded.is_some()
        && row.state.phase == RunPhase::Done
        && row.mode != Mode::FindPeakPerformance
        && row.draft.spec.round == round
}

/// Restores in the store which trees were made with a run.
///
/// # Errors
/// Returns an error when the run's file cannot be read, or when the store fails.
pub(super) fn restore(run: RunId, dir: &RunDir, store: &Store) -> anyhow::Result<()> {
    for known in read(dir)? {
        store
            .staged_runs()
            .add(run, Path::new(&known.tree), &known.staged)?;
    }
    Ok(())
}

fn read(dir: &RunDir) -> anyhow::Result<Vec<StagedIn>> {
    let path = dir.staged();
    match regular_file::read(&path, MAX_DOCUMENT) {
        Ok(bytes) => {
            serde_json::from_slice(&bytes).with_context(|| format!("cannot read {}", path.display()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_lab_store::examples::example_draft;

    #[test]
    fn trees_of_a_run_are_known_after_the_store_was_lost() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::create(dir.path(), "schema = 1\n").unwrap();
        let draft = example_draft("ab".repeat(16).parse().unwrap());
        let run = draft.spec.run;
        std::fs::create_dir_all(workspace.run(run).path()).unwrap();
        let open = |name: &str| {
            let store = Store::open(&dir.path().join(name)).unwrap();
            store.runs().add(&draft).unwrap();
            store
        };
        let store = open("first.db");
        let (one, two) = (Path::new("/trees/one"), Path::new("/trees/two"));
        for tree in [one, two, one] {
            keep(&workspace, &store, &[run, RunId::now()].into(), tree).unwrap();
        }
        let rebuilt = open("second.db");
        restore(run, &workspace.run(run), &rebuilt).unwrap();
        assert_eq!(rebuilt.staged_runs().trees_with(run).unwrap(), [two, one]);
        assert_eq!(
            rebuilt.staged_runs().trees_with(run).unwrap(),
            store.staged_runs().trees_with(run).unwrap()
        );
    }
}
