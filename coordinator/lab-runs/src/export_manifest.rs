//! `SHA256SUMS` of an exported run, in the format of `sha256sum`. It lists every file of the copy. Nobody signs it: it shows damage and careless
//! changes of the files that the device did not sign, such as `record.json`.

use std::{collections::BTreeSet, fs, io, path::Path};

use regatta_fsutil::{
    hash::sha256_of_file,
    regular_file::{self, MAX_DOCUMENT},
};
use regatta_types::{assets::is_inner_path, documents::document_name::DEVICE_KEY};

/// The manifest's file name.
pub const MANIFEST: &str = "SHA256SUMS";

/// The directory of the files that the evidence lists.
const FILES: &str = "files/";

/// Compares an exported run with its manifest, if it has one, and calls `find` with each file that differs and how. The files in `files/` are
/// compared with the evidence instead.
pub(super) fn check(directory: &Path, find: &mut dyn FnMut(&str, String)) -> io::Result<()> {
    let manifest = match regular_file::read(&directory.join(MANIFEST), MAX_DOCUMENT) {
        Ok(manifest) => manifest,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let manifest = String::from_utf8_lossy(&manifest);
    let mut listed = BTreeSet::new();
    for (index, line) in manifest.lines().enumerate() {
        let entry = line.split_once("  ").filter(|(_, name)| is_inner_path(name));
        let Some((stated, name)) = entry else {
            find(
                MANIFEST,
                format!("line {} is not a SHA-256 and a file of the run", index + 1),
            );
            continue;
        };
        listed.insert(name);
        if name.starts_with(FILES) {
            continue;
        }
        match sha256_of_file(&directory.join(name)) {
            Ok(hash) if hash.hex() != stated => {
                find(name, format!("changed: its SHA-256 is not the one in {MANIFEST}"));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => find(name, "missing".to_owned()),
            Err(error) => return Err(error),
        }
    }
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // The device's id is the fingerprint of the key, which is checked with the signature.
        let is_listed = listed.contains(name.as_str()) || name == MANIFEST || name == DEVICE_KEY;
        if !is_listed && !entry.file_type()?.is_dir() {
            find(&name, format!("added: {MANIFEST} does not list it"));
        }
    }
    Ok(())
}
