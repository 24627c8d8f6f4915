//! Tables of assets.

use super::{plain, words};
use crate::store::AssetRow;

/// Formats assets, one line each.
pub(crate) fn assets(rows: &[AssetRow]) -> String {
    if rows.is_empty() {
        return "no assets: devices find everything in their own scratch directories".to_owned();
    }
    let lines = rows.iter().map(|row| {
        [
            row.asset.path.clone(),
            row.asset.kind.as_str().to_owned(),
            row.files.to_string(),
            words::bytes(row.asset.bytes),
            row.asset.sha256.chars().take(16).collect(),
            words::time(&row.added),
        ]
    });
    plain(["path", "kind", "files", "size", "SHA-256", "added"], lines)
}
