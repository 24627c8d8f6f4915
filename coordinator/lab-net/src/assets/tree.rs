//! Serves a tree's content as one byte sequence: its files in the order of its manifest, from any offset. The manifest is read line by
//! line, because trees have tens of thousands of files.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader},
    path::PathBuf,
};

use regatta_types::assets::ManifestLine;

use super::asset_store::AssetStore;

/// A file of the content, from an offset to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileRange {
    /// The file's path.
    pub(super) path: PathBuf,
    /// The offset of the first byte to send.
    pub(super) from: u64,
    /// The file's length in bytes.
    pub(super) bytes: u64,
}

/// Returns the length of a tree in bytes.
///
/// # Errors
/// Returns an error when the manifest is missing, cannot be read or cannot be parsed.
pub(super) fn bytes_of(asset_store: &AssetStore, manifest: &str) -> io::Result<u64> {
    let mut sum = 0_u64;
    for line in lines(asset_store, manifest)? {
        sum = sum.saturating_add(line?.bytes);
    }
    Ok(sum)
}

/// Returns the parts of a tree from byte `from` on.
pub(super) fn parts(
    asset_store: &AssetStore,
    manifest: &str,
    mut from: u64,
) -> io::Result<impl Iterator<Item = io::Result<FileRange>> + use<>> {
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
        let part = FileRange {
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
