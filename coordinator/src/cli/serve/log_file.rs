//! The log file of a coordinator in the background, which receives its standard output and standard error. A large log is renamed, so that the log
//! and its predecessor together stay bounded.

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
/// The interval between checks of the size. The file may exceed [`MAX_BYTES`] by the output of one interval.
const INTERVAL: Duration = Duration::from_secs(1);
/// The pause after a failed attempt to rename the file.
const RETRY: Duration = Duration::from_secs(60);
/// The maximum number of bytes to read from the log of a failed start.
const MAX_REASON: u64 = 64 << 10;

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

    /// Opens the file for appending.
    pub(super) fn open(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.create(true).append(true).mode(0o600).open(&self.path)
    }

    /// Returns the size in bytes, or 0 for a missing file.
    pub(super) fn bytes(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |found| found.len())
    }

    /// Returns the text after the first `before` bytes.
    pub(super) fn added(&self, before: u64) -> io::Result<String> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(before))?;
        let mut added = Vec::new();
        file.take(MAX_REASON).read_to_end(&mut added)?;
        Ok(String::from_utf8_lossy(&added).into_owned())
    }

    /// Redirects standard output to the file.
    pub(super) fn take_standard_output(&self) -> io::Result<()> {
        redirect(&self.open()?, libc::STDOUT_FILENO)
    }

    /// Renames the file whenever it is large, and continues in a new one. Never returns.
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

    /// Renames the file if it is large. Returns the new file.
    fn renew_if_large(&self) -> io::Result<Option<File>> {
        if self.bytes() <= self.max_bytes {
            return Ok(None);
        }
        fs::rename(&self.path, self.path.with_added_extension("1"))?;
        self.open().map(Some)
    }
}

/// Redirects a standard descriptor to a file.
fn redirect(file: &File, descriptor: RawFd) -> io::Result<()> {
    // SAFETY: `file` is open, and the standard descriptors are not owned by a value that would close them.
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
        // The older file is overwritten.
        file.write_all(b" and larger").unwrap();
        log.renew_if_large().unwrap().unwrap();
        assert_eq!(fs::read(&older).unwrap(), b"new and larger");
    }
}
