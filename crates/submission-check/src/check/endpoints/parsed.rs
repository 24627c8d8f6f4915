//! The contents of a parsed document.

use serde_json::Value;

/// A document's value, and the message about a key that it gives twice.
pub(super) struct Parsed {
    pub(super) value: Value,
    pub(super) repeated: Option<String>,
}
