//! Atomic replacement of files: a reader always finds the old or the new content, also after a power cut. A lock lasts no longer than a
//! write.

use std::{
    ffi::OsStr,
    fs::{self, File, OpenOptions, Permissions},
    io::{self, BufWriter, Write as _},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};

/// A file to be replaced atomically.
///
/// The new content is written to `.NAME.new` in the same directory and renamed over `NAME`. Writers of one path wait for each other, also
/// in other processes; the last one wins. A failed write leaves the old content and no temporary file.
#[derive(Debug, Clone)]
pub struct AtomicFile {
    path: PathBuf,
    mode: Option<u32>,
    flushed: bool,
}

impl AtomicFile {
    /// Creates a replacement of the file at `path`. Without [`mode`](Self::mode) an existing file keeps its permissions, and a new one
    /// gets those of the umask.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            mode: None,
            flushed: true,
        }
    }

    /// Sets the file's permissions, also those of an existing file.
    #[must_use]
    pub const fn mode(mut self, mode: u32) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Disables the flushes: a power cut may then truncate the file. Use it for content that is verified before use.
    #[must_use]
    pub const fn unflushed(mut self) -> Self {
        self.flushed = false;
        self
    }

    /// Replaces the content with `bytes`.
    ///
    /// # Errors
    /// The system's error; the old content is then unchanged.
    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        self.write_with(|out| out.write_all(bytes))
    }

    /// Replaces the content with what `fill` writes.
    ///
    /// # Errors
    /// The error of `fill` or of the system; the old content is then unchanged.
    pub fn write_with(&self, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
        let (Some(directory), Some(name)) = (self.path.parent(), self.path.file_name()) else {
            let reason = "the path has no file name";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        };
        let new = directory.join(format!(".{}.new", name.to_string_lossy()));
        let file = self.open_locked(&new)?;
        // The lock lasts until the temporary file has its final name, or is removed.
        let lock = file.try_clone()?;
        if let Err(error) = self.fill(file, fill).and_then(|()| fs::rename(&new, &self.path)) {
            // A partial file would only fill a full disk further.
            let _ = fs::remove_file(&new);
            return Err(error);
        }
        drop(lock);
        if self.flushed {
            sync_directory(directory)
        } else {
            Ok(())
        }
    }

    /// Opens the temporary file, empty, with its permissions, as the only writer.
    fn open_locked(&self, new: &Path) -> io::Result<File> {
        loop {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(false);
            if let Some(mode) = self.mode {
                // The mode applies from the creation on, because the content may be secret.
                options.mode(mode);
            }
            let file = options.open(new)?;
            flock(&file, FlockOperation::LockExclusive)?;
            // The previous writer may have renamed or removed the file in the meantime; the path then names another file.
            let is_current = fs::metadata(new).is_ok_and(|found| {
                file.metadata()
                    .is_ok_and(|ours| (ours.dev(), ours.ino()) == (found.dev(), found.ino()))
            });
            if is_current {
                // A writer that was killed may have left a partial file.
                if file.metadata()?.len() > 0 {
                    file.set_len(0)?;
                }
                return Ok(file);
            }
        }
    }

    fn fill(&self, file: File, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
        match self.mode {
            Some(mode) => file.set_permissions(Permissions::from_mode(mode))?,
            None => {
                if let Ok(former) = fs::metadata(&self.path) {
                    file.set_permissions(former.permissions())?;
                }
            }
        }
        let mut out = BufWriter::with_capacity(64 * 1024, file);
        fill(&mut out)?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        if self.flushed { file.sync_all() } else { Ok(()) }
    }
}

/// Flushes a directory, so that created, renamed and removed names in it survive a power cut.
///
/// # Errors
/// The system's error.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    // The parent of a relative file name is the empty path.
    let directory = if directory.as_os_str().is_empty() {
        Path::new(".")
    } else {
        directory
    };
    File::open(directory)?.sync_all()
}

/// Flushes everything on the file system of a directory. Flushing tens of thousands of files one by one takes minutes.
///
/// # Errors
/// The system's error.
pub fn sync_file_system(directory: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(directory)?)?)
}

/// Gives a complete file its name. The name never has other content, also after a power cut.
///
/// # Errors
/// The system's error. The file then has its former name, unless the directory cannot be flushed.
pub fn rename_flushed(from: &Path, to: &Path) -> io::Result<()> {
    File::open(from)?.sync_all()?;
    fs::rename(from, to)?;
    sync_directory(to.parent().unwrap_or_else(|| Path::new(".")))
}

/// Returns whether a name is that of a temporary file, which is never part of a set of files: it begins with a dot.
#[must_use]
pub fn is_temporary(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b".")
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn content_and_permissions_are_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        AtomicFile::new(&path)
            .mode(0o600)
            .write(b"long first content")
            .unwrap();
        assert_eq!(mode(), 0o600);
        AtomicFile::new(&path).unflushed().write(b"short").unwrap();
        assert_eq!(
            (fs::read(&path).unwrap().as_slice(), mode()),
            (&b"short"[..], 0o600)
        );
        AtomicFile::new(&path).mode(0o644).write(b"").unwrap();
        assert_eq!((fs::read(&path).unwrap().len(), mode()), (0, 0o644));
        assert_eq!(names(directory.path()), ["key"]);
    }

    #[test]
    fn a_failed_write_leaves_the_old_content_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        fs::write(&path, "old").unwrap();
        let failed = AtomicFile::new(&path).write_with(|out| {
            out.write_all(b"half")?;
            Err(io::Error::other("no more"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "no more");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(directory.path()), ["state"]);
    }

    #[test]
    fn atomic_write_replaces_leftovers_of_a_killed_writer() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        fs::write(directory.path().join(".state.new"), "a longer leftover").unwrap();
        AtomicFile::new(&path).write(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(directory.path()), ["state"]);
    }

    #[test]
    fn renamed_files_replace_others_and_temporary_names_begin_with_a_dot() {
        let directory = tempfile::tempdir().unwrap();
        let [part, path] = [".data.part", "data"].map(|name| directory.path().join(name));
        fs::write(&part, "new").unwrap();
        fs::write(&path, "old").unwrap();
        rename_flushed(&part, &path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(directory.path()), ["data"]);
        assert!(rename_flushed(&part, &path).is_err());
        sync_file_system(directory.path()).unwrap();
        let is_temporary = |path: &Path| is_temporary(path.file_name().unwrap());
        assert!(is_temporary(&part) && !is_temporary(&path));
    }

    #[test]
    fn concurrent_writers_never_mix_their_content() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("shared");
        thread::scope(|scope| {
            for byte in [b'a', b'b', b'c', b'd'] {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..50 {
                        AtomicFile::new(path).unflushed().write(&[byte; 200_000]).unwrap();
                        let read = fs::read(path).unwrap();
                        assert_eq!(read.len(), 200_000);
                        assert!(read.iter().all(|byte| *byte == read[0]));
                    }
                });
            }
        });
        assert_eq!(names(directory.path()), ["shared"]);
    }
}
