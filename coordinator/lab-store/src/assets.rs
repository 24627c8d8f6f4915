//! Assets, by their path below the scratch directory of runs. `assets` stores their bytes beside the database.

use regatta_types::assets::{Asset, AssetKind};

use super::{Result, Store, values};
use crate::database::params;

/// An added asset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssetRow {
    /// The asset as specs name it.
    pub asset: Asset,
    pub files: u64,
    /// The time before it was copied. A file with a later modification is not the one that was copied.
    pub added: String,
}

#[derive(Debug)]
pub struct Assets<'a> {
    pub(super) store: &'a Store,
}

impl Assets<'_> {
    /// Stores an asset, and replaces another one with the same path. `added` is the time before it was copied.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn put(&self, asset: &Asset, files: u64, added: &str) -> Result<()> {
        self.store.execute(
            "INSERT INTO assets (path, kind, sha256, bytes, files, added)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (path) DO UPDATE
                 SET kind = ?2, sha256 = ?3, bytes = ?4, files = ?5, added = ?6",
            params![
                asset.path,
                asset.kind.as_str(),
                asset.sha256,
                values::signed(asset.bytes),
                values::signed(files),
                added
            ],
        )?;
        Ok(())
    }

    /// Removes an asset. Returns `false` when there is none with that path.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn remove(&self, path: &str) -> Result<bool> {
        let dropped = self
            .store
            .execute("DELETE FROM assets WHERE path = ?1", params![path])?;
        Ok(dropped > 0)
    }

    /// Returns every asset, by path.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn all(&self) -> Result<Vec<AssetRow>> {
        self.store
            .rows("SELECT * FROM assets ORDER BY path", params![], |row| {
                Ok(AssetRow {
                    asset: Asset {
                        path: row.get("path")?,
                        kind: values::parsed::<AssetKind>(row, "kind")?,
                        bytes: values::unsigned(row, "bytes")?,
                        sha256: row.get("sha256")?,
                    },
                    files: values::unsigned(row, "files")?,
                    added: row.get("added")?,
                })
            })
    }
}
