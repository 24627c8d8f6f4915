//! Files at the other end of a connection, by SFTP.

use std::{
    fs::{self, File},
    io::{self, Read, Seek as _, SeekFrom, Write as _},
    path::{Component, Path, PathBuf},
};

use ssh2::{ErrorCode, FileStat, Sftp};

/// The bytes that one call of [`RemoteFiles::read_from`] returns at most.
const MAX_READ: u64 = 1 << 20;
/// The most entries of a directory that are listed. A server may report entries without end.
const MAX_ENTRIES: usize = 10_000;
/// The piece of a file after which [`FetchLimits`] are checked.
const PIECE: u64 = 1 << 20;
/// The deepest directory that is fetched or removed.
const MAX_DEPTH: usize = 8;
/// libssh2's code at the end of a directory.
const END_OF_DIRECTORY: i32 = -16;
/// SFTP's code of a path that does not exist.
const NO_SUCH_FILE: i32 = 2;

/// The wait for the end of a file on a connection that has failed. Each end would take as long as the failure.
const NO_PATIENCE_MS: u32 = 50;

/// The files of a login.
pub struct RemoteFiles {
    sftp: Sftp,
    session: ssh2::Session,
}

/// What a fetched directory may take on this machine. The other one decides what is in it.
pub struct FetchLimits<'a> {
    /// The bytes of all files.
    pub max_bytes: u64,
    /// The files and directories.
    pub max_entries: usize,
    /// Is called after each mebibyte; an error ends the transfer, for example when the disk is nearly full.
    pub expect_space: &'a dyn Fn() -> io::Result<()>,
}

/// What is left of the limits of a transfer.
struct Budget<'a> {
    limits: &'a FetchLimits<'a>,
    bytes: u64,
    entries: usize,
}

impl Budget<'_> {
    fn take_entry(&mut self) -> io::Result<()> {
        let left = self.entries.checked_sub(1);
        self.entries = left.ok_or_else(|| {
            io::Error::other(format!(
                "it has more than {} files and directories",
                self.limits.max_entries
            ))
        })?;
        Ok(())
    }

    fn take_bytes(&mut self, count: u64) -> io::Result<()> {
        let left = self.bytes.checked_sub(count);
        self.bytes = left.ok_or_else(|| {
            io::Error::other(format!(
                "its files are larger than {} MiB in all",
                self.limits.max_bytes >> 20
            ))
        })?;
        (self.limits.expect_space)()
    }

    fn copy(&mut self, from: &mut impl Read, to: &mut File) -> io::Result<()> {
        loop {
            let copied = io::copy(&mut from.by_ref().take(PIECE), to)?;
            if copied == 0 {
                return Ok(());
            }
            self.take_bytes(copied)?;
        }
    }
}

/// Returns whether an error is the answer of a server that works.
fn is_answer(error: &ssh2::Error) -> bool {
    matches!(error.code(), ErrorCode::SFTP(_))
}

/// Returns whether an error means that the connection is silent.
fn is_silence(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut
}

impl RemoteFiles {
    pub(super) fn open(session: &ssh2::Session) -> Result<Self, ssh2::Error> {
        Ok(Self {
            sftp: session.sftp()?,
            session: session.clone(),
        })
    }

    /// Returns the directory in which the login begins.
    ///
    /// # Errors
    /// Returns the server's error.
    pub fn home(&self) -> io::Result<String> {
        let path = self.sftp.realpath(Path::new("."))?;
        Ok(path.to_string_lossy().into_owned())
    }

    /// Checks that the server answers.
    ///
    /// # Errors
    /// Returns an error when the connection does not bring an answer in time.
    pub fn expect_answer(&self) -> io::Result<()> {
        match self.sftp.stat(Path::new(".")) {
            Err(error) if !is_answer(&error) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Makes a directory and those above it.
    ///
    /// # Errors
    /// Returns the server's error.
    pub fn make_directories(&self, path: &str) -> io::Result<()> {
        let path = Path::new(path);
        let is_there = || self.sftp.stat(path).is_ok_and(|stat| stat.is_dir());
        match self.sftp.stat(path).map_err(io::Error::from) {
            Ok(stat) if stat.is_dir() => return Ok(()),
            // Each parent would take as long on a connection that no longer answers.
            Err(error) if is_silence(&error) => return Err(error),
            _ => {}
        }
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            self.make_directories(&parent.to_string_lossy())?;
        }
        match self.sftp.mkdir(path, 0o700) {
            // Another session has made it meanwhile.
            Err(_) if is_there() => Ok(()),
            made => Ok(made?),
        }
    }

    /// Writes a file.
    ///
    /// # Errors
    /// Returns the server's error.
    pub fn write(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.sftp.create(Path::new(path))?;
        file.write_all(bytes)?;
        Ok(file.close()?)
    }

    /// Copies a file of this machine.
    ///
    /// # Errors
    /// Returns the error of either side.
    pub fn copy_from(&self, local: &Path, path: &str) -> io::Result<()> {
        let mut from = File::open(local)?;
        let mut to = self.sftp.create(Path::new(path))?;
        io::copy(&mut from, &mut to)?;
        Ok(to.close()?)
    }

    /// Returns the names of the entries of a directory, of directories only.
    ///
    /// # Errors
    /// Returns the server's error.
    pub fn directories(&self, path: &str) -> io::Result<Vec<PathBuf>> {
        let entries = self.entries(Path::new(path))?.into_iter();
        let directories = entries.filter(|(.., stat)| stat.is_dir());
        Ok(directories.map(|(_, path, _)| path).collect())
    }

    /// Returns the length of a file. `None` when there is none.
    ///
    /// # Errors
    /// Returns the server's error.
    pub fn length(&self, path: &Path) -> io::Result<Option<u64>> {
        match self.sftp.stat(path) {
            Ok(stat) => Ok(stat.size),
            Err(error) if error.code() == ErrorCode::SFTP(NO_SUCH_FILE) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads a file from an offset on, up to 1 MiB or its present end.
    ///
    /// # Errors
    /// Returns the server's error.
    pub fn read_from(&self, path: &Path, offset: u64) -> io::Result<Vec<u8>> {
        let mut file = self.sftp.open(path)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.take(MAX_READ).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Fetches a directory of files and directories.
    ///
    /// # Errors
    /// Returns the error of either side. Names with path separators, links and other special files are refused, and what exceeds the limits.
    pub fn fetch(&self, path: &str, to: &Path, limits: &FetchLimits<'_>) -> io::Result<()> {
        let mut budget = Budget {
            limits,
            bytes: limits.max_bytes,
            entries: limits.max_entries,
        };
        self.fetch_within(Path::new(path), to, MAX_DEPTH, &mut budget)
    }

    fn fetch_within(&self, path: &Path, to: &Path, left: usize, budget: &mut Budget<'_>) -> io::Result<()> {
        fs::create_dir_all(to)?;
        for (name, path, stat) in self.entries(path)? {
            budget.take_entry()?;
            let to = to.join(name);
            if stat.is_dir() && left > 0 {
                self.fetch_within(&path, &to, left - 1, budget)?;
            } else if stat.is_file() {
                let mut from = self.sftp.open(&path)?;
                let mut file = File::create(&to)?;
                let copied = budget.copy(&mut from, &mut file);
                if copied.as_ref().is_err_and(is_silence) {
                    self.session.set_timeout(NO_PATIENCE_MS);
                }
                copied?;
                file.sync_all()?;
            } else {
                return Err(io::Error::other(format!(
                    "{} is neither a file nor a directory within {MAX_DEPTH} levels",
                    path.display()
                )));
            }
        }
        File::open(to)?.sync_all()
    }

    /// Removes a directory with everything in it. A directory that does not exist is not an error.
    ///
    /// # Errors
    /// Returns the server's error.
    pub fn remove(&self, path: &str) -> io::Result<()> {
        self.remove_within(Path::new(path), MAX_DEPTH)
    }

    fn remove_within(&self, path: &Path, left: usize) -> io::Result<()> {
        match self.sftp.lstat(path) {
            Err(error) if error.code() == ErrorCode::SFTP(NO_SUCH_FILE) => return Ok(()),
            stat => stat?,
        };
        for (_, path, stat) in self.entries(path)? {
            if stat.is_dir() && left > 0 {
                self.remove_within(&path, left - 1)?;
            } else {
                self.sftp.unlink(&path)?;
            }
        }
        Ok(self.sftp.rmdir(path)?)
    }

    /// Returns the entries of a directory: name, path and type. Names come from outside, so each must be one component.
    fn entries(&self, path: &Path) -> io::Result<Vec<(PathBuf, PathBuf, FileStat)>> {
        let mut entries = Vec::new();
        let mut directory = self.sftp.opendir(path)?;
        loop {
            let (name, stat) = match directory.readdir() {
                Ok((name, _)) if name == Path::new(".") || name == Path::new("..") => continue,
                Ok(entry) => entry,
                Err(error) if error.code() == ErrorCode::Session(END_OF_DIRECTORY) => break,
                Err(error) => return Err(error.into()),
            };
            if entries.len() == MAX_ENTRIES {
                return Err(io::Error::other(format!(
                    "the directory has more than {MAX_ENTRIES} entries"
                )));
            }
            let mut parts = name.components();
            if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) {
                return Err(io::Error::other(format!(
                    "invalid file name `{}` in {}",
                    name.display(),
                    path.display()
                )));
            }
            entries.push((name.clone(), path.join(name), stat));
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(max_bytes: u64, expect_space: &dyn Fn() -> io::Result<()>) -> FetchLimits<'_> {
        FetchLimits {
            max_bytes,
            max_entries: 2,
            expect_space,
        }
    }

    fn copied(limits: &FetchLimits<'_>, length: u64) -> (io::Result<()>, u64) {
        let mut budget = Budget {
            limits,
            bytes: limits.max_bytes,
            entries: limits.max_entries,
        };
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let result = budget.copy(&mut io::repeat(0).take(length), &mut File::create(&path).unwrap());
        (result, fs::metadata(path).unwrap().len())
    }

    #[test]
    fn a_transfer_ends_at_its_limit_and_when_the_disk_is_nearly_full() {
        let enough = || Ok(());
        let limits_of = limits(3 << 20, &enough);
        assert!(copied(&limits_of, 3 << 20).0.is_ok());
        let (refused, written) = copied(&limits_of, 1 << 40);
        let text = refused.unwrap_err().to_string();
        assert!(
            text.contains("larger than 3 MiB in all") && written <= 4 << 20,
            "{text}: {written}"
        );
        let full = || Err(io::Error::other("the disk is nearly full"));
        let (refused, written) = copied(&limits(1 << 40, &full), 1 << 40);
        assert!(refused.unwrap_err().to_string().contains("nearly full") && written <= 1 << 20);
    }

    #[test]
    fn a_transfer_has_a_limited_number_of_entries() {
        let enough = || Ok(());
        let limits = limits(1, &enough);
        let mut budget = Budget {
            limits: &limits,
            bytes: 1,
            entries: limits.max_entries,
        };
        assert!(budget.take_entry().is_ok() && budget.take_entry().is_ok());
        assert!(
            budget
                .take_entry()
                .unwrap_err()
                .to_string()
                .contains("more than 2 files")
        );
    }
}
