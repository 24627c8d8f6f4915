//! Opens a package, by whichever side it was made, into a directory that did not exist before.

use std::{
    fs,
    io::{self, Read},
    path::{Component, Path, PathBuf},
};

use flate2::read::GzDecoder;
use tar::{Archive, EntryType};

use super::{DIVISIONS, PackError, Password, checksum, openssl, package_files};
use crate::files::At;

/// Unpacks the submitter's package in `directory` into `output`; gives the number of files. The checksum is held against
/// the package first, and `output` appears when everything is there.
///
/// # Errors
/// When the package is not the one that its checksum names, does not open, or holds what no submission has.
pub fn unpack(
    directory: &Path,
    submitter: &str,
    output: &Path,
    password: &Password,
) -> Result<u64, PackError> {
    let (tarball, sha1_file) = package_files(directory, submitter)?;
    if fs::symlink_metadata(output).is_ok() {
        return Err(PackError::Exists {
            path: output.to_owned(),
        });
    }
    let stated = checksum::stated(&sha1_file)?;
    let (found, _) = checksum::sha1(&tarball)?;
    if found != stated {
        return Err(PackError::Checksum {
            path: tarball,
            found,
            stated,
        });
    }
    let part = beside(output);
    if part.exists() {
        fs::remove_dir_all(&part).at("remove", &part)?;
    }
    fs::create_dir_all(&part).at("create", &part)?;
    let unpacked = openssl::decrypt(&tarball, password, |archive| extract(archive, &part, &tarball));
    let files = unpacked.inspect_err(|_| {
        // Half a submission is of no use.
        let _ = fs::remove_dir_all(&part);
    })?;
    fs::rename(&part, output).at("create", output)?;
    Ok(files)
}

fn beside(output: &Path) -> PathBuf {
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    output.with_file_name(format!(".{name}.regatta-unpacking"))
}

fn extract(archive: &mut dyn Read, part: &Path, tarball: &Path) -> Result<u64, PackError> {
    let broken = |source: io::Error| PackError::NotAnArchive {
        path: tarball.to_owned(),
        source,
    };
    let mut archive = Archive::new(GzDecoder::new(archive));
    archive.set_preserve_permissions(false);
    let mut files = 0;
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let path = entry.path().map_err(broken)?.into_owned();
        let kind = entry.header().entry_type();
        if !is_of_submission(&path, kind) || !entry.unpack_in(part).map_err(broken)? {
            return Err(PackError::Hostile { path });
        }
        files += u64::from(kind == EntryType::Regular);
    }
    // Past the tar's end to the end of the gzip member, whose checksum stands there.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(broken)?;
    Ok(files)
}

/// Files and directories below a division, nothing else: no links, no devices, no way out.
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
