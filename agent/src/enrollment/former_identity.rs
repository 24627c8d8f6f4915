//! The former identity of a device that gets a new key: the key, its enrollment and the runs that it signed. Nobody else can sign or deliver
//! these runs, so they do not become runs of the new identity. They are kept until the user deletes them.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use regatta_fsutil::atomic_file::sync_directory;

use crate::{
    exit::Failure,
    identity::{DeviceIdentity, KEY_FILE},
};

/// What belongs to a key, in the state directory. The key is the last: without it the others are not used.
const BELONGINGS: [&str; 4] = ["runs", "enrollment.json", "commands.number", KEY_FILE];

/// A former identity that was moved aside.
#[derive(Debug)]
pub(super) struct FormerIdentity {
    state_dir: PathBuf,
    directory: PathBuf,
    /// Held until the new identity is enrolled, so that no daemon starts meanwhile.
    _lock: File,
}

impl FormerIdentity {
    /// Moves the identity in a state directory aside. Returns `None` when there is none.
    ///
    /// # Errors
    /// A daemon uses the identity (2), or it cannot be moved (3).
    pub(super) fn set_aside(state_dir: &Path) -> Result<Option<Self>, Failure> {
        let key = state_dir.join(KEY_FILE);
        if !key.try_exists().map_err(anyhow::Error::from)? {
            return Ok(None);
        }
        let lock = lock(state_dir)?;
        let identity = DeviceIdentity::load_or_create(&key).map_err(Failure::could_not)?;
        let directory = state_dir.join(format!("former-{}", identity.id()));
        let former = Self {
            state_dir: state_dir.to_owned(),
            directory,
            _lock: lock,
        };
        former.make_directory()?;
        former.move_all(&former.state_dir, &former.directory)?;
        Ok(Some(former))
    }

    /// Restores the identity, because no new one was enrolled.
    ///
    /// # Errors
    /// It cannot be moved (3).
    pub(super) fn put_back(&self) -> Result<(), Failure> {
        self.move_all(&self.directory, &self.state_dir)?;
        // A directory that is not empty has more than the identity.
        let _ = fs::remove_dir(&self.directory);
        Ok(())
    }

    /// Says where the identity is.
    pub(super) fn sentence(&self) -> String {
        format!(
            "the former key, its enrollment and its runs are in {}; delete that directory when nobody needs the runs",
            self.directory.display()
        )
    }

    fn make_directory(&self) -> Result<(), Failure> {
        match fs::create_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made.map_err(|error| cannot_move(error, &self.directory)),
        }
    }

    fn move_all(&self, from: &Path, to: &Path) -> Result<(), Failure> {
        for name in BELONGINGS {
            match fs::rename(from.join(name), to.join(name)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                moved => moved.map_err(|error| cannot_move(error, &from.join(name)))?,
            }
        }
        for directory in [&self.state_dir, &self.directory] {
            sync_directory(directory).map_err(|error| cannot_move(error, directory))?;
        }
        Ok(())
    }
}

fn cannot_move(error: io::Error, path: &Path) -> Failure {
    Failure::could_not(anyhow::Error::from(error).context(format!("{} cannot be moved", path.display())))
}

/// Takes the daemon's lock of a state directory.
fn lock(state_dir: &Path) -> Result<File, Failure> {
    let path = state_dir.join("lock");
    let cannot = |error: io::Error| {
        Failure::could_not(anyhow::Error::from(error).context(format!("{} cannot be locked", path.display())))
    };
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(cannot)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(Failure::usage(anyhow!(
            "a daemon works in {}; hint: stop `regatta-agent serve` first, and start it after the enrollment",
            state_dir.display()
        ))),
        Err(fs::TryLockError::Error(error)) => Err(cannot(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_moved_with_its_runs_and_put_back() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path();
        assert!(FormerIdentity::set_aside(state).unwrap().is_none(), "no identity");
        let key = state.join(KEY_FILE);
        let id = DeviceIdentity::load_or_create(&key).unwrap().id().clone();
        fs::create_dir_all(state.join("runs/1")).unwrap();
        fs::write(state.join("commands.number"), "7").unwrap();
        let former = FormerIdentity::set_aside(state).unwrap().unwrap();
        let kept = state.join(format!("former-{id}"));
        assert!(!key.exists() && !state.join("runs").exists());
        assert!(kept.join(KEY_FILE).exists() && kept.join("runs/1").exists());
        assert!(former.sentence().contains(&kept.display().to_string()));
        former.put_back().unwrap();
        assert!(key.exists() && state.join("runs/1").exists() && !kept.exists());
    }

    #[test]
    fn the_identity_of_a_working_daemon_is_not_moved() {
        let dir = tempfile::tempdir().unwrap();
        DeviceIdentity::load_or_create(&dir.path().join(KEY_FILE)).unwrap();
        let held = lock(dir.path()).unwrap();
        let refused = FormerIdentity::set_aside(dir.path()).unwrap_err();
        assert!(refused.to_string().contains("a daemon works in"), "{refused}");
        drop(held);
        assert!(FormerIdentity::set_aside(dir.path()).unwrap().is_some());
    }
}
