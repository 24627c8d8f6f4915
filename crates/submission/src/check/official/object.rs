//! JSON objects of a tree, as `json.load` and the look-ups after it take them.

use serde_json::{Map, Value};

use super::{Context, python::Raised};

/// Longer files are none of a submission's descriptions.
const LONGEST: u64 = 16 << 20;

/// Reads an object.
pub(super) fn read(context: &Context<'_>, path: &str) -> Result<Map<String, Value>, Raised> {
    let bytes = context
        .tree
        .read(path, LONGEST)
        .map_err(|error| Raised::new(format!("{path}: {error}")))?;
    serde_json::from_slice(&bytes).map_err(|error| Raised::new(format!("{path}: {error}")))
}
