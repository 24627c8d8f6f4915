//! Unpacks the files of an archive below a directory, within limits. Files that are there already are not written again.

use std::path::Path;

use crate::{archive::Archive, entry::Entry, error::ArchiveError, file_writer::FileWriter};

/// What an archive may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most files.
    pub files: u64,
    /// The most bytes of all files.
    pub bytes: u64,
}

/// A request to unpack an archive.
pub struct Unpacking<'a> {
    /// The archive.
    pub archive: &'a Archive,
    /// The directory.
    pub directory: &'a Path,
    /// What the archive may contain.
    pub limits: Limits,
    /// Whether a file is unpacked. The others count for the limits.
    pub is_selected: &'a dyn Fn(&str) -> bool,
}

/// The result of unpacking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnpackReport {
    /// The selected files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How many of them were there already with their size.
    pub unchanged: u64,
}

impl Unpacking<'_> {
    /// Unpacks the selected files. `progress` is called after each one.
    ///
    /// # Errors
    /// [`ArchiveError`]; files that were unpacked before stay, and each has its complete content.
    pub fn run(&self, progress: &mut dyn FnMut(&UnpackReport)) -> Result<UnpackReport, ArchiveError> {
        let writer = FileWriter::new(self.directory)?;
        let path = self.archive.path();
        let mut report = UnpackReport::default();
        let mut met = UnpackReport::default();
        self.archive.visit(&mut |entry: &Entry, content| {
            met.files += 1;
            met.bytes = met.bytes.saturating_add(entry.bytes);
            self.check(&met)?;
            if !(self.is_selected)(&entry.name) {
                return Ok(());
            }
            report.files += 1;
            report.bytes += entry.bytes;
            if writer.has(&entry.name, entry.bytes) {
                report.unchanged += 1;
            } else {
                writer.write(&entry.name, entry.bytes, content, path)?;
            }
            progress(&report);
            Ok(())
        })?;
        Ok(report)
    }

    fn check(&self, met: &UnpackReport) -> Result<(), ArchiveError> {
        let path = || self.archive.path().to_owned();
        let Limits { files, bytes } = self.limits;
        if met.files > files {
            return Err(ArchiveError::TooMany {
                path: path(),
                most: files,
            });
        }
        if met.bytes > bytes {
            return Err(ArchiveError::TooLarge {
                path: path(),
                most: bytes,
            });
        }
        Ok(())
    }
}
