//! A tree's content as one run of bytes: its files one after the other, in the order of its manifest, from any byte on. The
//! manifest is read line by line: trees have tens of thousands of files.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader},
    path::PathBuf,
};

use regatta_types::assets::ManifestLine;

use super::asset_store::AssetStore;

/// A piece of what is sent: a file, from a byte on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// The file.
    pub(super) path: PathBuf,
    /// Where to begin.
    pub(super) from: u64,
    /// Its length.
    pub(super) bytes: u64,
}

/// Bytes of a tree.
///
/// # Errors
/// When the manifest is not here, cannot be read or is none.
pub(super) fn bytes_of(asset_store: &AssetStore, manifest: &str) -> io::Result<u64> {
    let mut sum = 0_u64;
    for line in lines(asset_store, manifest)? {
        sum = sum.saturating_add(line?.bytes);
    }
    Ok(sum)
}

/// The parts of a tree from byte `from` on.
pub(super) fn parts(
    asset_store: &AssetStore,
    manifest: &str,
    mut from: u64,
) -> io::Result<impl Iterator<Item = io::Result<Part>> + use<>> {
    let files = asset_store.clone();
    Ok(lines(asset_store, manifest)?.filter_map(move |line| {
        let line = match line {
            Ok(line) => line,
            Err(error) => return Some(Err(error)),
        };
        if line.bytes <= from {
            from -= line.bytes;
            return None;
        }
        let part = Part {
            path: files.place(&line.sha256).unwrap_or_default(),
            from: std::mem::take(&mut from),
            bytes: line.bytes,
        };
        Some(Ok(part))
    }))
}

fn lines(
    asset_store: &AssetStore,
    manifest: &str,
) -> io::Result<impl Iterator<Item = io::Result<ManifestLine>> + use<>> {
    let place = asset_store
        .place(manifest)
        .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let lines = BufReader::new(File::open(place)?).lines();
    let not_one = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    Ok(lines.map(move |line| line?.parse().map_err(not_one)))
}
