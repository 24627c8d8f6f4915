//! Writes the gzipped tar: every file in the divisions, in name order, with its modification time and execute permission.
//!
//! The archive contains no user names.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use flate2::{Compression, write::GzEncoder};
use tar::{Builder, EntryType, Header};

use super::PackError;
use regatta_submission_check::files::{At, open_no_link};

/// Writes the divisions of `input`, and returns the number of files.
pub(super) fn write(input: &Path, divisions: &[&str], out: impl Write) -> Result<u64, PackError> {
    let mut tar = Builder::new(GzEncoder::new(out, Compression::default()));
    let mut files = 0;
    let mut ahead: Vec<_> = divisions.iter().rev().map(PathBuf::from).collect();
    while let Some(below) = ahead.pop() {
        let path = input.join(&below);
        let metadata = fs::symlink_metadata(&path).at("look at", &path)?;
        let mut header = Header::new_gnu();
        let modified = metadata
            .modified()
            .ok()
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        header.set_mtime(modified.map_or(0, |since| since.as_secs()));
        let appended = if metadata.is_dir() {
            let mut names = Vec::new();
            for entry in fs::read_dir(&path).at("list", &path)? {
                names.push(entry.at("list", &path)?.file_name());
            }
            names.sort();
            ahead.extend(names.iter().rev().map(|name| below.join(name)));
            header.set_entry_type(EntryType::Directory);
            header.set_mode(0o755);
            header.set_size(0);
            tar.append_data(&mut header, below.join(""), io::empty())
        } else {
            files += 1;
            header.set_entry_type(EntryType::Regular);
            header.set_mode(if is_program(&metadata) { 0o755 } else { 0o644 });
            header.set_size(metadata.len());
            let mut file = Counted {
                input: open_no_link(&path).at("open", &path)?,
                left: metadata.len(),
                other: false,
            };
            let appended = tar.append_data(&mut header, &below, &mut file);
            if file.changed() {
                return Err(PackError::Changed { path });
            }
            appended
        };
        appended.map_err(|source| PackError::Archive { path, source })?;
    }
    let finished = tar
        .into_inner()
        .and_then(GzEncoder::finish)
        .and_then(|mut out| out.flush());
    finished.map_err(|source| PackError::Archive {
        path: input.to_owned(),
        source,
    })?;
    Ok(files)
}

fn is_program(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o100 != 0
}

/// A reader that returns exactly the number of bytes in the header, and detects that the file's size has changed.
struct Counted {
    input: File,
    left: u64,
    other: bool,
}

impl Counted {
    fn changed(&mut self) -> bool {
        self.other || (self.left == 0 && self.input.read(&mut [0]).is_ok_and(|count| count > 0))
    }
}

impl Read for Counted {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let count = (&mut self.input).take(self.left).read(target)?;
        if count == 0 && self.left > 0 && !target.is_empty() {
            self.other = true;
        }
        self.left -= count as u64;
        Ok(count)
    }
}
