//! The log of a coordinator in the background: its standard output and standard error, in a file that is renamed when it is large, so that the
//! file and the older one together stay bounded.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom},
    os::{
        fd::{AsRawFd as _, RawFd},
        unix::fs::OpenOptionsExt as _,
    },
    path::{Path, PathBuf},
    time::Duration,
};

use regatta_lab_store::workspace::Workspace;

/// The size at which the file is renamed.
const MAX_BYTES: u64 = 8 << 20;
/// The interval for looking at the size. What is written in it may exceed [`MAX_BYTES`].
const INTERVAL: Duration = Duration::from_secs(1);
/// The time until the next attempt after one that failed.
const RETRY: Duration = Duration::from_secs(60);
/// The most that is read of a start that failed.
const MAX_REASON: u64 = 64 << 10;

/// The file.
#[derive(Debug, Clone)]
pub(super) struct LogFile {
    path: PathBuf,
    max_bytes: u64,
}

impl LogFile {
    pub(super) fn of(workspace: &Workspace) -> Self {
        Self {
            path: workspace.serve_log(),
            max_bytes: MAX_BYTES,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file for a process that adds to it.
    pub(super) fn open(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.create(true).append(true).mode(0o600).open(&self.path)
    }

    /// Returns the size in bytes; 0 for a missing file.
    pub(super) fn bytes(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |found| found.len())
    }

    /// Returns what was added behind the first `before` bytes.
    pub(super) fn added(&self, before: u64) -> io::Result<String> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(before))?;
        let mut added = Vec::new();
        file.take(MAX_REASON).read_to_end(&mut added)?;
        Ok(String::from_utf8_lossy(&added).into_owned())
    }

    /// Makes standard output the file that standard error is.
    pub(super) fn take_standard_output(&self) -> io::Result<()> {
        redirect(&self.open()?, libc::STDOUT_FILENO)
    }

    /// Renames the file whenever it is large, and continues in a new one. Does not end.
    pub(super) async fn keep_bounded(self) {
        loop {
            let pause = match self.rotate() {
                Ok(()) => INTERVAL,
                Err(error) => {
                    tracing::error!("{} cannot be rotated: {error}", self.path.display());
                    RETRY
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    fn rotate(&self) -> io::Result<()> {
        if let Some(file) = self.renew_if_large()? {
            redirect(&file, libc::STDERR_FILENO)?;
            redirect(&file, libc::STDOUT_FILENO)?;
        }
        Ok(())
    }

    /// Renames a large file, and returns a new one.
    fn renew_if_large(&self) -> io::Result<Option<File>> {
        if self.bytes() <= self.max_bytes {
            return Ok(None);
        }
        fs::rename(&self.path, self.path.with_added_extension("1"))?;
        self.open().map(Some)
    }
}

/// Makes one of the standard descriptors another name of a file.
fn redirect(file: &File, descriptor: RawFd) -> io::Result<()> {
    // SAFETY: `file` is open. The standard descriptors have no owner that would close them.
    match unsafe { libc::dup2(file.as_raw_fd(), descriptor) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_large_log_is_renamed_and_a_new_one_begun() {
        let directory = tempfile::tempdir().unwrap();
        let log = LogFile {
            path: directory.path().join("serve.log"),
            max_bytes: 10,
        };
        log.open().unwrap().write_all(b"0123456789").unwrap();
        assert!(log.renew_if_large().unwrap().is_none());
        log.open().unwrap().write_all(b"abc").unwrap();
        assert_eq!(log.added(10).unwrap(), "abc");
        let mut file = log.renew_if_large().unwrap().unwrap();
        file.write_all(b"new").unwrap();
        let older = directory.path().join("serve.log.1");
        assert_eq!(fs::read(&older).unwrap(), b"0123456789abc");
        assert_eq!(fs::read(log.path()).unwrap(), b"new");
        // The file before is given up.
        file.write_all(b" and larger").unwrap();
        log.renew_if_large().unwrap().unwrap();
        assert_eq!(fs::read(&older).unwrap(), b"new and larger");
    }
}
