//! Opens a package of either implementation into a new directory.

use std::{
    fs,
    io::{self, Read},
    path::{Component, Path},
};

use flate2::read::GzDecoder;
use tar::{Archive, EntryType};

use super::{
    DIVISIONS, PackError, Password, checksum,
    metered::{Allowance, MeteredReader},
    openssl, package_files,
};
use crate::draft_directory::DraftDirectory;

/// The number of bytes of an entry besides its content: its header, a long name and padding.
const ENTRY_OVERHEAD: u64 = 1 << 20;

/// The limits of unpacking. A package comes from outside, and a few MiB can expand to a full disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnpackLimits {
    /// The total number of bytes of all files.
    pub bytes: u64,
    /// The number of files and directories.
    pub entries: u64,
}

impl Default for UnpackLimits {
    /// Returns several times the largest round so far: 64 GiB in a million files.
    fn default() -> Self {
        Self {
            bytes: 64 << 30,
            entries: 1_000_000,
        }
    }
}

/// Unpacks the submitter's package in `directory` into `output`, and returns the number of files.
///
/// The checksum is verified first. `output` appears when it is complete.
///
/// # Errors
/// Returns an error if the checksum does not match or the package cannot be opened. Also fails if the package exceeds `limits` or
/// has an entry that a submission cannot have.
pub fn unpack(
    directory: &Path,
    submitter: &str,
    output: &Path,
    password: &Password,
    limits: UnpackLimits,
) -> Result<u64, PackError> {
    let (tarball, sha1_file) = package_files(directory, submitter)?;
    if fs::symlink_metadata(output).is_ok() {
        return Err(PackError::Exists {
            path: output.to_owned(),
        });
    }
    let stated = checksum::stated(&sha1_file)?;
    let found = checksum::sha1(&tarball)?;
    if found != stated {
        return Err(PackError::Checksum {
            path: tarball,
            found,
            stated,
        });
    }
    let draft = DraftDirectory::begin(output)?;
    draft.clear()?;
    let files = openssl::decrypt(&tarball, password, |archive| {
        extract(archive, draft.path(), &tarball, limits)
    })?;
    draft.flush()?;
    draft.place()?;
    Ok(files)
}

fn extract(
    archive: &mut dyn Read,
    part: &Path,
    tarball: &Path,
    limits: UnpackLimits,
) -> Result<u64, PackError> {
    let allowance = Allowance::default();
    let broken = |source: io::Error| {
        if allowance.is_exceeded() {
            return too_large(limits);
        }
        PackError::NotAnArchive {
            path: tarball.to_owned(),
            source,
        }
    };
    let mut archive = Archive::new(MeteredReader::new(GzDecoder::new(archive), allowance.clone()));
    archive.set_preserve_permissions(false);
    let (mut files, mut entries_seen, mut bytes) = (0, 0_u64, 0_u64);
    let mut entries = archive.entries().map_err(broken)?;
    loop {
        allowance.set(ENTRY_OVERHEAD);
        let Some(entry) = entries.next() else { break };
        let mut entry = entry.map_err(broken)?;
        let path = entry.path().map_err(broken)?.into_owned();
        let kind = entry.header().entry_type();
        entries_seen += 1;
        bytes = bytes.saturating_add(entry.size());
        if entries_seen > limits.entries || bytes > limits.bytes {
            return Err(too_large(limits));
        }
        allowance.set(entry.size().saturating_add(ENTRY_OVERHEAD));
        if !is_of_submission(&path, kind) || !entry.unpack_in(part).map_err(broken)? {
            return Err(PackError::Hostile { path });
        }
        files += u64::from(kind == EntryType::Regular);
    }
    // This reads past the tar's end to the end of the gzip member, whose checksum is there.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(broken)?;
    Ok(files)
}

const fn too_large(limits: UnpackLimits) -> PackError {
    PackError::TooLarge {
        bytes: limits.bytes,
        entries: limits.entries,
    }
}

/// Returns whether an entry is a file or directory in a division. Links, devices and paths outside the tree are not.
fn is_of_submission(path: &Path, kind: EntryType) -> bool {
    let mut parts = path.components().filter(|part| *part != Component::CurDir);
    let division = parts.next();
    let known = |part: Component<'_>| {
        DIVISIONS
            .iter()
            .any(|name| part == Component::Normal(name.as_ref()))
    };
    matches!(kind, EntryType::Regular | EntryType::Directory)
        && division.is_some_and(known)
        && parts.all(|part| matches!(part, Component::Normal(_)))
}
