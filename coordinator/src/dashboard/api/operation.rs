//! An operation of the API: its path, its description and what reads its document.

use serde_json::Value;

use crate::dashboard::{page_error::PageError, view::Reader};

/// Something that a program can read.
pub(super) struct Operation {
    /// The path, with the name of its parameter in braces.
    pub(super) path: &'static str,
    /// What it returns, in a sentence.
    pub(super) summary: &'static str,
    /// The parameters of its query: name and meaning.
    pub(super) query: &'static [(&'static str, &'static str)],
    /// The schema of the document.
    pub(super) schema: &'static str,
    /// Reads the document.
    pub(super) read: fn(&mut Reader, &ApiRequest) -> Result<Value, PageError>,
}

/// The parts of a request.
pub(super) struct ApiRequest {
    /// The parameter in the path.
    pub(super) name: String,
    /// The query.
    pub(super) query: String,
}
