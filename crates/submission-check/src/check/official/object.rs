//! Reads JSON objects of a tree like Python's `json.load`.

use serde_json::{Map, Value};

use super::{Context, python::Raised};

/// The largest file that is read, in bytes. Descriptions in a submission are shorter.
const MAX: u64 = 16 << 20;

/// Reads a JSON object.
pub(super) fn read(context: &Context<'_>, path: &str) -> Result<Map<String, Value>, Raised> {
    let bytes = context
        .tree
        .read(path, MAX)
        .map_err(|error| Raised::new(format!("{path}: {error}")))?;
    serde_json::from_slice(&bytes).map_err(|error| Raised::new(format!("{path}: {error}")))
}
