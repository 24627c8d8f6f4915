//! Assets by the place below the scratch directory at which runs look for them. Their bytes lie beside the store
//! (`crate::assets`).

use regatta_types::assets::{Asset, AssetKind};
use rusqlite::params;

use super::{Result, Store, now, values};

/// An asset, as it was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AssetRow {
    /// What specs name.
    pub(crate) asset: Asset,
    /// Number of files.
    pub(crate) files: u64,
    /// When it was added.
    pub(crate) added: String,
}

impl Store {
    /// Keeps an asset; another one at the same place is replaced.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn keep_asset(&self, asset: &Asset, files: u64) -> Result<()> {
        self.connection.execute(
            "INSERT OR REPLACE INTO assets (path, kind, sha256, bytes, files, added) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                asset.path,
                asset.kind.as_str(),
                asset.sha256,
                values::signed(asset.bytes),
                values::signed(files),
                now()
            ],
        )?;
        Ok(())
    }

    /// Keeps an asset no longer; `false` when there is none at that place.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn drop_asset(&self, path: &str) -> Result<bool> {
        let dropped = self
            .connection
            .execute("DELETE FROM assets WHERE path = ?1", [path])?;
        Ok(dropped > 0)
    }

    /// Every asset, by place.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn assets(&self) -> Result<Vec<AssetRow>> {
        let mut statement = self.connection.prepare("SELECT * FROM assets ORDER BY path")?;
        let rows = statement.query_map([], |row| {
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
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}
