//! Removes recorded runs from the workspace: first the name of a run's directory, then its rows, then the files. A removal that was
//! interrupted before the rows were removed is undone. It does not decide whether a run may be removed.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use regatta_types::RunId;
use rustix::fs::{FlockOperation, flock};

use regatta_lab_store::{RunRemoval, Store, workspace::Workspace};

/// The ending of a run's directory that is being removed. No run has such a name, so an interrupted removal leaves no incomplete run.
const ASIDE: &str = "removed";

/// The removal of runs. One process at a time removes runs of a workspace.
pub struct Removal<'a> {
    workspace: &'a Workspace,
    store: &'a Store,
    /// Holds the lock.
    _runs: File,
}

impl<'a> Removal<'a> {
    /// Waits for other removals, and completes or undoes those that were interrupted.
    ///
    /// # Errors
    /// Returns an error when the directory of the runs cannot be read, or a run's directory cannot be moved or deleted.
    pub fn begin(workspace: &'a Workspace, store: &'a Store) -> anyhow::Result<Self> {
        let path = workspace.runs();
        let runs = File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
        flock(&runs, FlockOperation::LockExclusive)
            .map_err(io::Error::from)
            .with_context(|| format!("cannot lock {}", path.display()))?;
        let removal = Self {
            workspace,
            store,
            _runs: runs,
        };
        removal.sweep()?;
        Ok(removal)
    }

    /// Removes one run from the store, and sets its directory aside. [`Self::sweep`] deletes it.
    ///
    /// # Errors
    /// Returns an error when the directory cannot be renamed or the store fails. The run is unchanged then.
    pub fn remove(&self, run: RunId) -> anyhow::Result<RunRemoval> {
        let dir = self.workspace.run(run);
        let aside = aside(dir.path());
        let is_there = match fs::rename(dir.path(), &aside) {
            Ok(()) => true,
            // A run that was never sent has none.
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(unusable(dir.path(), error)),
        };
        let removed = self.store.runs().remove(run);
        if is_there && matches!(removed, Ok(RunRemoval::Refused) | Err(_)) {
            fs::rename(&aside, dir.path()).map_err(|error| unusable(&aside, error))?;
        }
        Ok(removed?)
    }

    /// Deletes the directories that were set aside. That of a run in the store gets its name back: its removal was interrupted.
    ///
    /// # Errors
    /// Returns an error when a directory cannot be read, moved or deleted.
    pub fn sweep(&self) -> anyhow::Result<()> {
        let runs = self.workspace.runs();
        for entry in fs::read_dir(&runs).map_err(|error| unusable(&runs, error))? {
            let path = entry.map_err(|error| unusable(&runs, error))?.path();
            let Some(run) = run_of(&path) else {
                continue;
            };
            if self.store.runs().get(run)?.is_none() {
                fs::remove_dir_all(&path).map_err(|error| unusable(&path, error))?;
                continue;
            }
            let own = self.workspace.run(run);
            anyhow::ensure!(
                !own.path().exists(),
                "{} and {} are of the same run; hint: one was made after an interrupted removal: compare and merge them",
                own.path().display(),
                path.display()
            );
            fs::rename(&path, own.path()).map_err(|error| unusable(&path, error))?;
            tracing::warn!(%run, "its removal was interrupted: its files are back");
        }
        Ok(())
    }
}

fn aside(dir: &Path) -> PathBuf {
    dir.with_extension(ASIDE)
}

/// Returns the run whose directory was set aside at `path`.
fn run_of(path: &Path) -> Option<RunId> {
    let is_aside = path.extension().is_some_and(|extension| extension == ASIDE);
    let stem = path.file_stem()?.to_str()?;
    is_aside.then(|| stem.parse().ok()).flatten()
}

fn unusable(path: &Path, error: io::Error) -> anyhow::Error {
    anyhow::Error::new(error).context(format!("cannot remove {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_lab_store::examples::example_draft;

    #[test]
    fn an_interrupted_removal_is_undone_while_the_run_is_in_the_store() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::create(dir.path(), "schema = 1\n").unwrap();
        let store = workspace.store().unwrap();
        let draft = example_draft("ab".repeat(16).parse().unwrap());
        let run = draft.spec.run;
        store.runs().add(&draft).unwrap();
        // The process ended between the rename and the rows, and another one after the rows.
        let gone = RunId::now();
        for aside_run in [run, gone] {
            let path = aside(workspace.run(aside_run).path());
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("record.json"), "{}").unwrap();
        }
        let other = workspace.runs().join("notes.removed");
        fs::create_dir(&other).unwrap();

        let removal = Removal::begin(&workspace, &store).unwrap();
        assert!(workspace.run(run).record().exists());
        assert!(!aside(workspace.run(gone).path()).exists());
        assert!(other.exists(), "it is not a run's");
        assert_eq!(removal.remove(run).unwrap(), RunRemoval::Refused, "it is queued");
        assert!(workspace.run(run).record().exists());
    }
}
