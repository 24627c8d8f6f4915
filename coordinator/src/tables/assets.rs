//! Tables of assets.

use regatta_text::escape;

use super::{table, words};
use crate::store::AssetRow;

/// Formats assets, one line each.
pub(crate) fn assets(rows: &[AssetRow]) -> String {
    if rows.is_empty() {
        return "no assets: devices find everything in their own scratch directories".to_owned();
    }
    let mut table = table(["path", "kind", "files", "size", "SHA-256", "added"]);
    for row in rows {
        table.add_row([
            escape(&row.asset.path).into_owned(),
            row.asset.kind.as_str().to_owned(),
            row.files.to_string(),
            words::bytes(row.asset.bytes),
            row.asset.sha256.chars().take(16).collect(),
            words::time(&row.added),
        ]);
    }
    table.trim_fmt()
}
