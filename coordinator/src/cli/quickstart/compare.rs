//! Compares every file of a run on both disks and in the evidence. Both disks are on this machine, so delivery can be checked directly.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
};

use regatta_types::documents::{Document as _, Evidence, document_name};

use regatta_fsutil::hash::sha256_of_file;

use crate::tables::Comparison;

/// Compares a run's files at the coordinator with the device's own, and both with the evidence.
///
/// # Errors
/// Returns an error when a file cannot be read.
pub(super) fn compare(coordinator: &Path, device: &Path) -> io::Result<Comparison> {
    let here = hashes(coordinator)?;
    let there = hashes(device)?;
    let evidence = fs::read(coordinator.join(document_name::EVIDENCE)).ok();
    let proven = evidence
        .and_then(|bytes| Evidence::from_json(&bytes).ok())
        .is_some_and(|evidence| {
            let listed: BTreeSet<&str> = evidence.files.iter().map(|proof| proof.name.as_str()).collect();
            let unlisted = here.keys().filter(|name| !listed.contains(name.as_str()));
            // The evidence lists every file except itself and its signature.
            unlisted.count() == 2
                && evidence
                    .files
                    .iter()
                    .all(|proof| here.get(proof.name.as_str()) == Some(&proof.sha256))
        });
    Ok(Comparison {
        equal: proven && here == there,
    })
}

fn hashes(directory: &Path) -> io::Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let hash = sha256_of_file(&entry.path())?;
        found.insert(entry.file_name().to_string_lossy().into_owned(), hash.hex());
    }
    Ok(found)
}
