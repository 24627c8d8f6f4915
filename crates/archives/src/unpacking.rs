//! Unpacks the files of an archive into a directory, within limits. Skips files that exist already.

use std::path::Path;

use crate::{archive::Archive, entry::Entry, error::ArchiveError, file_writer::FileWriter};

/// The limits on the content of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of files.
    pub files: u64,
    /// The maximum total size of all files in bytes.
    pub bytes: u64,
}

/// A request to unpack an archive.
pub struct Unpacking<'a> {
    pub archive: &'a Archive,
    /// The directory into which the files are unpacked.
    pub directory: &'a Path,
    pub limits: Limits,
    /// Selects the files to unpack. The others count towards the limits, too.
    pub is_selected: &'a dyn Fn(&str) -> bool,
}

/// The result of unpacking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnpackReport {
    /// The number of selected files.
    pub files: u64,
    /// The total size of the selected files in bytes.
    pub bytes: u64,
    /// The number of selected files that already existed with the right size.
    pub unchanged: u64,
}

impl Unpacking<'_> {
    /// Unpacks the selected files, and calls `progress` after each of them. All of them are on disk at the end.
    ///
    /// # Errors
    /// Returns an [`ArchiveError`]. The files that were unpacked before it are kept, and each of them is complete.
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
        if report.unchanged < report.files {
            writer.sync()?;
        }
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
