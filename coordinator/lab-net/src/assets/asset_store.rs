//! Stores assets: each file once, under its SHA-256, and never changed. Files are added, looked up and swept.
//!
//! ```text
//! assets/ab/abcdef...   a file, or a tree's manifest
//! assets/.new-...       one that is being put in
//! assets/.lock          held while files are added or swept
//! ```

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
};

use regatta_fsutil::{
    atomic_file::{AtomicFile, sync_directory},
    hash::{hex, sha256_hex, sha256_of_file},
    regular_file,
};
use regatta_types::assets::{Asset, AssetKind, ManifestLine, is_sha256};
use sha2::{Digest as _, Sha256};

use super::{
    error::{AssetStoreError, at},
    source_tree::{SourceTree, entries},
};
use regatta_lab_store::{now, workspace::Workspace};

/// The prefix of files that are being added.
const UNFINISHED: &str = ".new-";
/// The name of the lock file.
const LOCK: &str = ".lock";

/// An asset that was added.
#[derive(Debug)]
pub struct Added {
    /// The asset as specs name it.
    pub asset: Asset,
    pub files: u64,
    /// The time before the copy, RFC 3339 UTC. A file with a later modification is not the one that was copied.
    pub added: String,
}

/// The result of a sweep.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SweepResult {
    /// The number of removed files.
    pub files: u64,
    /// The number of removed bytes.
    pub bytes: u64,
}

/// The asset store of a workspace.
#[derive(Debug, Clone)]
pub struct AssetStore(PathBuf);

/// The asset store, locked for the one process that may add and sweep. A sweep removes every file that the store's rows do not name. A
/// new file is named only after it is added, so the lock must be held until then.
#[derive(Debug)]
pub struct LockedAssetStore {
    asset_store: AssetStore,
    _lock: File,
}

impl AssetStore {
    /// Returns the asset store of a workspace.
    pub fn of(workspace: &Workspace) -> Self {
        Self(workspace.root().join("assets"))
    }

    /// Returns the path of the file with this SHA-256. `None` when the text is not a SHA-256.
    pub(super) fn place(&self, sha256: &str) -> Option<PathBuf> {
        is_sha256(sha256).then(|| self.0.join(sha256.get(..2).unwrap_or_default()).join(sha256))
    }

    /// Returns the length in bytes of the file with this SHA-256.
    ///
    /// # Errors
    /// Returns an error when the file is missing or its metadata cannot be read.
    pub(super) fn bytes_of(&self, sha256: &str) -> io::Result<u64> {
        let place = self.place(sha256).ok_or(io::ErrorKind::NotFound)?;
        Ok(fs::metadata(place)?.len())
    }

    /// Locks the asset store for changes. Calls `waiting` if another process has the lock.
    ///
    /// # Errors
    /// Returns [`AssetStoreError::Io`] when the lock file cannot be created or locked.
    pub fn hold(self, waiting: impl FnOnce()) -> Result<LockedAssetStore, AssetStoreError> {
        fs::create_dir_all(&self.0).map_err(at(&self.0))?;
        let path = self.0.join(LOCK);
        let mut options = OpenOptions::new();
        let opened = options.write(true).create(true).truncate(false).open(&path);
        let lock = opened.map_err(at(&path))?;
        let locked = match lock.try_lock() {
            Ok(()) => Ok(()),
            Err(TryLockError::WouldBlock) => {
                waiting();
                lock.lock()
            }
            Err(TryLockError::Error(error)) => Err(error),
        };
        locked.map_err(at(&path))?;
        Ok(LockedAssetStore {
            asset_store: self,
            _lock: lock,
        })
    }
}

impl LockedAssetStore {
    /// Adds a copy of a file, or of a directory with everything below it, as [`SourceTree::read`] finds it.
    ///
    /// # Errors
    /// Returns [`AssetStoreError`], also if a file of the source changes during the copy.
    pub fn put(&self, source: &Path, path: &str) -> Result<Added, AssetStoreError> {
        let added = now();
        let before = SourceTree::read(source)?;
        let asset = match before.kind {
            AssetKind::File => {
                let (bytes, sha256) = self.put_file(source)?;
                Asset {
                    path: path.to_owned(),
                    kind: AssetKind::File,
                    bytes,
                    sha256,
                }
            }
            AssetKind::Tree => self.put_tree(source, path, &before)?,
        };
        let after = SourceTree::read(source)?;
        if let Some(name) = before.first_change(&after) {
            // The name of a single file is empty.
            let path = if name.is_empty() {
                source.to_owned()
            } else {
                source.join(name)
            };
            return Err(AssetStoreError::Changed(path));
        }
        Ok(Added {
            asset,
            files: before.files(),
            added,
        })
    }

    /// Copies the files of a directory, and stores their manifest.
    fn put_tree(&self, source: &Path, path: &str, tree: &SourceTree) -> Result<Asset, AssetStoreError> {
        let (mut manifest, mut bytes) = (String::new(), 0);
        for file in &tree.files {
            let (length, sha256) = self.put_file(&source.join(&file.name))?;
            let line = ManifestLine {
                sha256,
                bytes: length,
                path: file.name.clone(),
            };
            manifest.push_str(&format!("{line}\n"));
            bytes += length;
        }
        let name = sha256_hex(manifest.as_bytes());
        if let Some(place) = self.asset_store.place(&name) {
            make_parent(&place)?;
            AtomicFile::new(&place)
                .write(manifest.as_bytes())
                .map_err(at(&place))?;
        }
        Ok(Asset {
            path: path.to_owned(),
            kind: AssetKind::Tree,
            bytes,
            sha256: name,
        })
    }

    /// Copies a file and hashes the copy. Returns its length and SHA-256.
    fn put_file(&self, source: &Path) -> Result<(u64, String), AssetStoreError> {
        let beside = self
            .asset_store
            .0
            .join(format!("{UNFINISHED}{}", std::process::id()));
        let mut from = regular_file::open(source).map_err(at(source))?;
        let mut to = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&beside)
            .map_err(at(&beside))?;
        let (mut hasher, mut bytes) = (Sha256::new(), 0);
        let mut piece = vec![0; 256 * 1024];
        loop {
            let read = from.read(&mut piece).map_err(at(source))?;
            if read == 0 {
                break;
            }
            hasher.update(&piece[..read]);
            to.write_all(&piece[..read]).map_err(at(&beside))?;
            bytes += read as u64;
        }
        let name = hex(&hasher.finalize());
        let place = self.asset_store.place(&name).unwrap_or_default();
        // A stored copy that is damaged is replaced.
        if sha256_of_file(&place).is_ok_and(|found| found.hex() == name) {
            fs::remove_file(&beside).map_err(at(&beside))?;
        } else {
            make_parent(&place)?;
            to.sync_all().map_err(at(&beside))?;
            fs::rename(&beside, &place).map_err(at(&place))?;
            let directory = place.parent().unwrap_or(&self.asset_store.0);
            sync_directory(directory).map_err(at(directory))?;
        }
        Ok((bytes, name))
    }

    /// Removes every file that no asset of `kept` needs.
    ///
    /// # Errors
    /// Returns [`AssetStoreError`]. Nothing is removed before every needed file is known.
    pub fn sweep(&self, kept: &[Asset]) -> Result<SweepResult, AssetStoreError> {
        let mut needed = BTreeSet::new();
        for asset in kept {
            needed.insert(asset.sha256.clone());
            if asset.kind == AssetKind::Tree {
                self.add_files_of(&asset.sha256, &mut needed)?;
            }
        }
        let mut swept = SweepResult::default();
        for directory in entries(&self.asset_store.0)? {
            let inside = if directory.is_dir() {
                entries(&directory)?
            } else {
                vec![directory]
            };
            for file in inside {
                let name = file
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                if name == LOCK || needed.contains(&name) {
                    continue;
                }
                swept.bytes += fs::metadata(&file).map_err(at(&file))?.len();
                swept.files += 1;
                fs::remove_file(&file).map_err(at(&file))?;
            }
        }
        Ok(swept)
    }

    fn add_files_of(&self, manifest: &str, needed: &mut BTreeSet<String>) -> Result<(), AssetStoreError> {
        let Some(place) = self.asset_store.place(manifest) else {
            return Ok(());
        };
        let file = match File::open(&place) {
            // The tree's manifest is missing, so none of its files can be served.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened.map_err(at(&place))?,
        };
        for line in BufReader::new(file).lines() {
            let line: ManifestLine =
                line.map_err(at(&place))?
                    .parse()
                    .map_err(|source| AssetStoreError::Manifest {
                        path: place.clone(),
                        source,
                    })?;
            needed.insert(line.sha256);
        }
        Ok(())
    }
}

fn make_parent(place: &Path) -> Result<(), AssetStoreError> {
    let directory = place.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(directory).map_err(at(directory))
}

#[cfg(test)]
mod tests;
