//! A power session that the operator names, and the run that it belongs to. `power` plans its files.

use std::{
    io,
    path::{Path, PathBuf},
};

use regatta_mllog::read::file_name;

use super::{StageError, run::Run};
use regatta_submission_check::{
    check::power::has_own_programs,
    files::{At as _, FileError, sha256},
    tree::Tree,
};

/// Messages, each with its fix.
pub(super) type Faults = Vec<(String, &'static str)>;

/// A power session: a directory with `power/`, `ranging/` and `run_1/`.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) directory: PathBuf,
    pub(super) tree: Tree,
    /// The SHA-256 of the measured run's detail log, or `None` if the log does not exist.
    pub(super) log: Option<String>,
    /// Whether a result already uses the session.
    pub(super) taken: bool,
}

impl Session {
    /// Scans the session's directory and hashes the measured run's detail log.
    ///
    /// A rehearsal refuses a session of Regatta's own programs, too: unlike a simulated one, it may look like a measurement.
    fn read(directory: &Path) -> Result<Self, StageError> {
        let tree = Tree::scan(directory)
            .map_err(io::Error::other)
            .at("list", directory)?;
        if has_own_programs(&tree, "") {
            let directory = directory.to_owned();
            return Err(StageError::InformativePower { directory });
        }
        let log = format!("run_1/{}", file_name::DETAIL);
        let log = match tree.is_file(&log) {
            true => Some(sha256(&directory.join(log))?.0),
            false => None,
        };
        Ok(Self {
            directory: directory.to_owned(),
            tree,
            log,
            taken: false,
        })
    }

    /// Reports a session whose summary differs from the performance run's.
    ///
    /// The session's checks include the summary, but the staged summary is the device's.
    pub(super) fn other_summary(&self, performance: &Run) -> Result<Faults, FileError> {
        let path = format!("run_1/{}", file_name::SUMMARY);
        let Some(proof) = performance.proof(file_name::SUMMARY) else {
            return Ok(Faults::new());
        };
        if self.tree.is_file(&path) && sha256(&self.directory.join(&path))?.0 == proof.sha256 {
            return Ok(Faults::new());
        }
        let fix = "name the session as the power client left it";
        Ok(vec![(format!("{path} is not the performance run's"), fix)])
    }

    pub(super) fn called(&self) -> String {
        format!("power session {}", self.directory.display())
    }
}

/// Reads the sessions that the operator names.
pub(super) fn read(directories: &[PathBuf]) -> Result<Vec<Session>, StageError> {
    directories.iter().map(|path| Session::read(path)).collect()
}
