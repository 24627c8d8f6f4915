//! Tables of assets.

use super::plain;
use regatta_lab_store::AssetRow;
use regatta_lab_views::wording;

/// Formats assets, one line each.
pub(crate) fn assets(rows: &[AssetRow]) -> String {
    if rows.is_empty() {
        return "no assets yet: `regatta asset add --benchmark NAME` adds those of a benchmark".to_owned();
    }
    let lines = rows.iter().map(|row| {
        [
            row.asset.path.clone(),
            row.asset.kind.as_str().to_owned(),
            row.files.to_string(),
            wording::bytes(row.asset.bytes),
            row.asset.sha256.chars().take(16).collect(),
            wording::time(&row.added),
        ]
    });
    plain(["path", "kind", "files", "size", "SHA-256", "added"], lines)
}
