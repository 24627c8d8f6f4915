//! Files at the other end of a connection, by SFTP.

use std::{
    fs::{self, File},
    io::{self, Read, Seek as _, SeekFrom, Write as _},
    path::{Component, Path, PathBuf},
};

use ssh2::{ErrorCode, FileStat, Sftp};

/// The largest file that is fetched; the official programs' logs of a day are smaller.
const LARGEST: u64 = 1 << 30;
/// The deepest directory that is fetched or removed.
const DEEPEST: usize = 8;
/// SFTP's code of a path that does not exist.
const NO_SUCH_FILE: i32 = 2;

/// The wait for the end of a file on a connection that has failed. Each end would take as long as the failure.
const NO_PATIENCE_MS: u32 = 50;

/// The files of a login.
pub struct RemoteFiles {
    sftp: Sftp,
    session: ssh2::Session,
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
        let entries = self.sftp.readdir(Path::new(path))?.into_iter();
        Ok(entries
            .filter(|(_, stat)| stat.is_dir())
            .map(|(path, _)| path)
            .collect())
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

    /// Reads a file from an offset to its present end.
    ///
    /// # Errors
    /// Returns the server's error.
    pub fn read_from(&self, path: &Path, offset: u64) -> io::Result<Vec<u8>> {
        let mut file = self.sftp.open(path)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.take(LARGEST).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Fetches a directory of files and directories.
    ///
    /// # Errors
    /// Returns the error of either side. Names with path separators, links and other special files are refused.
    pub fn fetch(&self, path: &str, to: &Path) -> io::Result<()> {
        self.fetch_within(Path::new(path), to, DEEPEST)
    }

    fn fetch_within(&self, path: &Path, to: &Path, left: usize) -> io::Result<()> {
        fs::create_dir_all(to)?;
        for (name, path, stat) in self.entries(path)? {
            let to = to.join(name);
            if stat.is_dir() && left > 0 {
                self.fetch_within(&path, &to, left - 1)?;
            } else if stat.is_file() {
                let mut from = self.sftp.open(&path)?.take(LARGEST + 1);
                let mut file = File::create(&to)?;
                let copied = io::copy(&mut from, &mut file);
                if copied.as_ref().is_err_and(is_silence) {
                    self.session.set_timeout(NO_PATIENCE_MS);
                }
                if copied? > LARGEST {
                    return Err(io::Error::other(format!(
                        "{} is larger than 1 GiB",
                        path.display()
                    )));
                }
                file.sync_all()?;
            } else {
                return Err(io::Error::other(format!(
                    "{} is neither a file nor a directory within {DEEPEST} levels",
                    path.display()
                )));
            }
        }
        File::open(to)?.sync_all()
    }

    /// Removes a directory with everything in it. A directory that does not exist is no error.
    ///
    /// # Errors
    /// Returns the server's error.
    pub fn remove(&self, path: &str) -> io::Result<()> {
        self.remove_within(Path::new(path), DEEPEST)
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
        for (path, stat) in self.sftp.readdir(path)? {
            let name = path.file_name().map(PathBuf::from).unwrap_or_default();
            let mut parts = name.components();
            if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) {
                return Err(io::Error::other(format!(
                    "{} is no name of a file",
                    path.display()
                )));
            }
            entries.push((name, path, stat));
        }
        Ok(entries)
    }
}
