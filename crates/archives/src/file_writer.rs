//! Writes files that only get their names once they are complete.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use regatta_fsutil::atomic_file::sync_file_system;

use crate::error::ArchiveError;

/// The temporary name of the file that is being written, in the directory into which an archive is unpacked.
const UNFINISHED: &str = ".unpacking";

/// Writes files in a directory.
#[derive(Debug)]
pub(crate) struct FileWriter {
    directory: PathBuf,
    unfinished: PathBuf,
}

impl FileWriter {
    pub(crate) fn new(directory: &Path) -> Result<Self, ArchiveError> {
        fs::create_dir_all(directory).map_err(ArchiveError::write(directory))?;
        Ok(Self {
            directory: directory.to_owned(),
            unfinished: directory.join(UNFINISHED),
        })
    }

    /// Returns whether a file of this size exists.
    pub(crate) fn has(&self, name: &str, bytes: u64) -> bool {
        let found = fs::symlink_metadata(self.directory.join(name));
        found.is_ok_and(|found| found.is_file() && found.len() == bytes)
    }

    /// Writes a file with the content of an archive's entry.
    pub(crate) fn write(
        &self,
        name: &str,
        bytes: u64,
        content: &mut dyn Read,
        archive: &Path,
    ) -> Result<(), ArchiveError> {
        let path = self.directory.join(name);
        let parent = path.parent().unwrap_or(&self.directory);
        fs::create_dir_all(parent).map_err(ArchiveError::write(parent))?;
        let mut file = File::create(&self.unfinished).map_err(ArchiveError::write(&self.unfinished))?;
        // Read one byte more than stated: this detects longer content, and reaches the end, where the checksum is compared.
        let written = copy(&mut content.take(bytes.saturating_add(1)), &mut file);
        let written = written.map_err(|error| match error {
            CopyError::Read(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                ArchiveError::Truncated(archive.to_owned())
            }
            CopyError::Read(error) => ArchiveError::Damaged {
                path: archive.to_owned(),
                reason: format!("`{name}`: {error}"),
            },
            CopyError::Write(error) => ArchiveError::write(&path)(error),
        })?;
        if written != bytes {
            return Err(match written < bytes {
                true => ArchiveError::Truncated(archive.to_owned()),
                false => ArchiveError::Damaged {
                    path: archive.to_owned(),
                    reason: format!("`{name}` is larger than its header says"),
                },
            });
        }
        fs::rename(&self.unfinished, &path).map_err(ArchiveError::write(&path))
    }

    /// Flushes all written files to disk together.
    pub(crate) fn sync(&self) -> Result<(), ArchiveError> {
        sync_file_system(&self.directory).map_err(ArchiveError::write(&self.directory))
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        // The file only exists after an error, and the next call would replace it.
        let _ = fs::remove_file(&self.unfinished);
    }
}

/// The side on which a copy failed.
enum CopyError {
    Read(io::Error),
    Write(io::Error),
}

fn copy(from: &mut dyn Read, to: &mut File) -> Result<u64, CopyError> {
    let (mut piece, mut copied) = (vec![0; 1 << 17], 0);
    loop {
        let count = match from.read(&mut piece) {
            Ok(0) => return Ok(copied),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(CopyError::Read(error)),
        };
        let filled = piece.get(..count).unwrap_or_default();
        io::Write::write_all(to, filled).map_err(CopyError::Write)?;
        copied += count as u64;
    }
}
