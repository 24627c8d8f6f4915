//! The asset store on the device, its size, and its eviction. Assets that no run needs are removed first, the least
//! recently used first.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use regatta_fsutil::{atomic_file, free_space::free_bytes};
use regatta_types::assets::{Asset, AssetKind};

use super::AssetError;

/// Limits for disk space.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Bytes that must stay free.
    pub(crate) stays_free: u64,
    /// Largest total of all assets in bytes.
    pub(crate) most: u64,
}

/// The asset store on the device's disk.
#[derive(Debug)]
pub(crate) struct AssetStore(PathBuf);

/// A complete or partial asset on disk.
#[derive(Debug)]
struct StoredAsset {
    path: PathBuf,
    sha256: String,
    bytes: u64,
    used: SystemTime,
}

impl AssetStore {
    /// Opens the store in a state directory, and creates its directories.
    pub(crate) fn open(state_dir: &Path) -> Result<Self, AssetError> {
        let store = Self(state_dir.join("assets"));
        for kind in ["file", "tree", "manifest", "part"] {
            let path = store.0.join(kind);
            fs::create_dir_all(&path).map_err(|source| AssetError::Disk { path, source })?;
        }
        Ok(store)
    }

    /// Returns the path of a complete asset.
    pub(crate) fn place(&self, asset: &Asset) -> PathBuf {
        self.0.join(asset.kind.as_str()).join(&asset.sha256)
    }

    pub(super) fn part(&self, sha256: &str) -> PathBuf {
        self.0.join("part").join(sha256)
    }

    pub(super) fn manifest(&self, sha256: &str) -> PathBuf {
        self.0.join("manifest").join(sha256)
    }

    /// Returns whether an asset is complete, and records its use.
    pub(super) fn use_now(&self, asset: &Asset) -> bool {
        let Ok(file) = File::open(self.place(asset)) else {
            return false;
        };
        // If the use cannot be recorded, the asset is evicted a little earlier.
        let _ = file.set_modified(SystemTime::now());
        true
    }

    /// Flushes a complete download and renames it to its final path.
    pub(super) fn settle(&self, part: &Path, place: &Path) -> Result<(), AssetError> {
        let settle = || {
            // A tree has thousands of files, so one flush covers all of them.
            rustix::fs::syncfs(File::open(part)?)?;
            fs::rename(part, place)?;
            atomic_file::sync_directory(place.parent().unwrap_or(&self.0))
        };
        settle().map_err(|source| AssetError::Disk {
            path: place.to_owned(),
            source,
        })
    }

    /// Checks that there is space for the missing assets, and removes unneeded ones if necessary.
    pub(super) fn free_space(
        &self,
        missing: &[&Asset],
        pinned: &BTreeSet<String>,
        limits: Limits,
    ) -> Result<(), AssetError> {
        let disk = |source| AssetError::Disk {
            path: self.0.clone(),
            source,
        };
        let mut kept = self.kept().map_err(disk)?;
        let needed: u64 = missing.iter().map(|asset| asset.bytes).sum();
        let on_their_way = |kept: &&StoredAsset| missing.iter().any(|asset| asset.sha256 == kept.sha256);
        let here: u64 = kept.iter().filter(on_their_way).map(|kept| kept.bytes).sum();
        let needed = needed.saturating_sub(here);
        kept.sort_by_key(|kept| std::cmp::Reverse(kept.used));
        loop {
            let free = free_bytes(&self.0)
                .map_err(disk)?
                .saturating_sub(limits.stays_free);
            let used: u64 = kept.iter().map(|kept| kept.bytes).sum();
            let free = free.min(limits.most.saturating_sub(used));
            if needed <= free {
                return Ok(());
            }
            let Some(oldest) = kept.iter().rposition(|kept| !pinned.contains(&kept.sha256)) else {
                return Err(AssetError::NoSpace { needed, free });
            };
            let oldest = kept.remove(oldest);
            tracing::info!("assets: {} is removed for others", oldest.sha256);
            self.remove(&oldest).map_err(disk)?;
        }
    }

    /// Removes a partial download.
    pub(super) fn drop_part(&self, sha256: &str) {
        let part = self.part(sha256);
        // If the removal fails, the next eviction retries it.
        let _ = if part.is_dir() {
            fs::remove_dir_all(&part)
        } else {
            fs::remove_file(&part)
        };
    }

    fn remove(&self, kept: &StoredAsset) -> io::Result<()> {
        if kept.path.is_dir() {
            // Rename the tree first, because a partial tree must not appear complete.
            let part = self.part(&kept.sha256);
            if kept.path != part {
                let _ = fs::remove_dir_all(&part);
                fs::rename(&kept.path, &part)?;
            }
            fs::remove_dir_all(&part)?;
            // The manifest is downloaded again with the tree.
            let _ = fs::remove_file(self.manifest(&kept.sha256));
            return Ok(());
        }
        fs::remove_file(&kept.path)
    }

    fn kept(&self) -> io::Result<Vec<StoredAsset>> {
        let mut kept = Vec::new();
        for kind in [AssetKind::File.as_str(), AssetKind::Tree.as_str(), "part"] {
            for entry in fs::read_dir(self.0.join(kind))? {
                let entry = entry?;
                let metadata = entry.metadata()?;
                kept.push(StoredAsset {
                    path: entry.path(),
                    sha256: entry.file_name().to_string_lossy().into_owned(),
                    bytes: if metadata.is_dir() {
                        bytes_below(&entry.path())?
                    } else {
                        metadata.len()
                    },
                    used: metadata.modified()?,
                });
            }
        }
        Ok(kept)
    }
}

fn bytes_below(directory: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        sum += if metadata.is_dir() {
            bytes_below(&entry.path())?
        } else {
            metadata.len()
        };
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn asset(digit: char, bytes: u64) -> Asset {
        Asset {
            path: format!("models/{digit}"),
            kind: AssetKind::File,
            bytes,
            sha256: String::from(digit).repeat(64),
        }
    }

    #[test]
    fn eviction_prefers_unused_least_recently_used() {
        let state = tempfile::tempdir().unwrap();
        let store = AssetStore::open(state.path()).unwrap();
        for (age, digit) in ['a', 'b', 'c'].into_iter().enumerate() {
            let path = store.place(&asset(digit, 100));
            fs::write(&path, [0; 100]).unwrap();
            let used = SystemTime::now() - Duration::from_secs(1000 * (3 - age as u64));
            File::open(&path).unwrap().set_modified(used).unwrap();
        }
        let limits = Limits {
            stays_free: 0,
            most: 300,
        };
        let pinned = BTreeSet::from([asset('a', 0).sha256]);
        let (missing, there) = (asset('d', 90), |digit| store.place(&asset(digit, 0)).exists());
        store.free_space(&[&missing], &pinned, limits).unwrap();
        assert_eq!(
            ['a', 'b', 'c'].map(there),
            [true, false, true],
            "b: a is needed, c is newer"
        );
        // Partial downloads count as stored bytes.
        fs::write(store.part(&missing.sha256), [0; 60]).unwrap();
        let pinned = BTreeSet::from(['a', 'c', 'd'].map(|digit| asset(digit, 0).sha256));
        store.free_space(&[&missing], &pinned, limits).unwrap();
        let too_large = asset('e', 200);
        let none = store.free_space(&[&too_large], &pinned, limits).unwrap_err();
        assert!(
            matches!(
                none,
                AssetError::NoSpace {
                    needed: 200,
                    free: 40
                }
            ),
            "{none}"
        );
    }
}
