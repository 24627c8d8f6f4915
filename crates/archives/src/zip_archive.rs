//! Zip archives, whose files are stored or deflated.

use std::{
    fs::File,
    io::{BufReader, Read, Seek},
    path::Path,
};

use zip::{CompressionMethod, ZipArchive, read::ZipFile, result::ZipError};

use crate::{
    entry::{Entry, Visit},
    error::{ArchiveError, RefusedEntry},
};

/// How the library's reasons begin for an archive that ends before its directory does. It has no variant for that.
const ENDS_EARLY: [&str; 2] = ["Could not find EOCD", "Unexpected end of"];

/// Lists the files by the directory at the archive's end.
pub(crate) fn list(file: File, path: &Path) -> Result<Vec<Entry>, ArchiveError> {
    let mut archive = open(file, path)?;
    let mut entries = Vec::new();
    for index in 0..archive.len() {
        let file = archive.by_index_raw(index).map_err(unreadable(path))?;
        entries.extend(entry(&file, path)?);
    }
    Ok(entries)
}

/// Visits the files in the order of the directory. Reading a file to its end compares its checksum.
pub(crate) fn visit(file: File, path: &Path, visit: &mut Visit<'_>) -> Result<(), ArchiveError> {
    let mut archive = open(file, path)?;
    for index in 0..archive.len() {
        let file = archive.by_index_raw(index).map_err(unreadable(path))?;
        let found = entry(&file, path)?;
        drop(file);
        if let Some(found) = found {
            let mut content = archive.by_index(index).map_err(unreadable(path))?;
            visit(&found, &mut content)?;
        }
    }
    Ok(())
}

fn open(file: File, path: &Path) -> Result<ZipArchive<BufReader<File>>, ArchiveError> {
    ZipArchive::new(BufReader::new(file)).map_err(unreadable(path))
}

/// Makes the entry of a file. `None` for a directory.
fn entry<R: Read + Seek>(file: &ZipFile<'_, R>, path: &Path) -> Result<Option<Entry>, ArchiveError> {
    let name = file.name().map_err(unreadable(path))?;
    let refused = |reason| ArchiveError::Entry {
        path: path.to_owned(),
        name: name.clone().into_owned(),
        reason,
    };
    if file.is_symlink() {
        return Err(refused(RefusedEntry::Link));
    }
    if let Some(directory) = name.strip_suffix('/') {
        return Entry::new(directory, 0).map(|_| None).map_err(refused);
    }
    let entry = Entry::new(&name, file.size()).map_err(refused)?;
    if file.encrypted() {
        return Err(refused(RefusedEntry::Encrypted));
    }
    if !matches!(
        file.compression(),
        CompressionMethod::Stored | CompressionMethod::Deflated
    ) {
        return Err(refused(RefusedEntry::Method));
    }
    Ok(Some(entry))
}

/// Returns a function that makes the error of an archive that cannot be understood.
fn unreadable(path: &Path) -> impl Fn(ZipError) -> ArchiveError + use<> {
    let path = path.to_owned();
    move |error| match error {
        ZipError::InvalidArchive(reason) if ENDS_EARLY.iter().any(|early| reason.starts_with(early)) => {
            ArchiveError::Truncated(path.clone())
        }
        ZipError::Io(error) => ArchiveError::read(&path)(error),
        error => ArchiveError::Damaged {
            path: path.clone(),
            reason: error.to_string(),
        },
    }
}
