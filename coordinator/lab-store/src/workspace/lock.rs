//! The lock of a workspace, so that one daemon serves it. It is a kernel lock on a file, which ends with its process.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    thread::sleep,
    time::Duration,
};

use regatta_fsutil::regular_file;
use rustix::fs::{FlockOperation, flock};

/// The pauses in milliseconds before a lock counts as held. [`is_held`] holds it for a moment.
const PAUSES_MS: [u64; 4] = [5, 15, 40, 100];

/// The reason why a workspace cannot be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another daemon holds the lock.
    #[error("another daemon{holder} serves this workspace")]
    HeldSlot {
        /// ` (process N)`, if known.
        holder: String,
    },
    /// The lock file cannot be used.
    #[error("cannot lock {}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// A held lock of the workspace. Dropping it releases the lock.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    pub(super) fn take(path: &Path) -> Result<Self, LockError> {
        let io = |source| LockError::Io {
            path: path.to_owned(),
            source,
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(io)?;
        let mut pauses = PAUSES_MS.into_iter();
        let locked = loop {
            let locked = flock(&file, FlockOperation::NonBlockingLockExclusive);
            match (locked, pauses.next()) {
                (Err(rustix::io::Errno::WOULDBLOCK), Some(pause)) => sleep(Duration::from_millis(pause)),
                _ => break locked,
            }
        };
        match locked {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut text = String::new();
                // The holder is only for the message.
                let _ = file.read_to_string(&mut text);
                let holder = text
                    .trim()
                    .parse::<u32>()
                    .map_or_else(|_| String::new(), |pid| format!(" (process {pid})"));
                return Err(LockError::HeldSlot { holder });
            }
            Err(error) => return Err(io(error.into())),
        }
        file.set_len(0).map_err(io)?;
        file.rewind().map_err(io)?;
        writeln!(file, "{}", std::process::id()).map_err(io)?;
        Ok(Self { _file: file })
    }
}

/// Returns whether a daemon holds the lock.
pub(super) fn is_held(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| {
        flock(&file, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)
    })
}

/// Returns the process that has the lock. `None` when no process has it, or when the file does not name that process.
pub(super) fn holder(path: &Path) -> Option<u32> {
    if !is_held(path) {
        return None;
    }
    let process: u32 = regular_file::read_text(path).ok()?.trim().parse().ok()?;
    has_open(process, path).then_some(process)
}

/// Returns whether a process has a file open. This detects a process number that was reused after the holder ended. The result is `true` for
/// processes of other users and on systems without `/proc`, where this is unknown.
fn has_open(process: u32, path: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino()));
    let (Ok(file), Ok(descriptors)) = (identity(path), fs::read_dir(format!("/proc/{process}/fd"))) else {
        return !Path::new("/proc/self").exists() || Path::new(&format!("/proc/{process}")).exists();
    };
    descriptors
        .flatten()
        .any(|descriptor| identity(&descriptor.path()).is_ok_and(|found| found == file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_has_one_daemon_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        assert!(!is_held(&path));
        let lock = Lock::take(&path).unwrap();
        assert!(is_held(&path));
        assert_eq!(holder(&path), Some(std::process::id()));
        let refused = Lock::take(&path).unwrap_err().to_string();
        assert!(refused.contains(&std::process::id().to_string()), "{refused}");
        // The number of a process that does not have the lock.
        fs::write(&path, std::os::unix::process::parent_id().to_string()).unwrap();
        assert_eq!(holder(&path), None);
        drop(lock);
        assert!(!is_held(&path));
        assert_eq!(holder(&path), None);
        Lock::take(&path).unwrap();
    }

    /// A command may look whether a daemon serves the workspace in the moment in which one starts.
    #[test]
    fn a_look_at_the_lock_keeps_no_daemon_from_starting() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        drop(Lock::take(&path).unwrap());
        let look = File::open(&path).unwrap();
        flock(&look, FlockOperation::NonBlockingLockShared).unwrap();
        let looking = std::thread::spawn(move || {
            sleep(Duration::from_millis(10));
            drop(look);
        });
        assert!(Lock::take(&path).is_ok());
        looking.join().unwrap();
    }
}
