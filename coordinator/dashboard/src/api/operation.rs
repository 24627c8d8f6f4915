//! An operation of the API: its path, its description and the reader of its document.

use serde_json::Value;

use crate::{page_error::PageError, view::Reader};
use regatta_lab_store::workspace::Workspace;

/// Something that a program can read.
#[derive(Clone, Copy)]
pub(super) struct Operation {
    /// The path, with the name of its parameter in braces.
    pub(super) path: &'static str,
    /// The result, in a sentence.
    pub(super) summary: &'static str,
    pub(super) query: &'static [Parameter],
    /// The schema of the document.
    pub(super) schema: &'static str,
    pub(super) read: DocumentReader,
}

/// A parameter of a query.
#[derive(Clone, Copy)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) meaning: &'static str,
    /// Whether the operation fails without it.
    pub(super) is_required: bool,
}

impl Parameter {
    /// Creates a parameter that may be left out.
    pub(super) const fn optional(name: &'static str, meaning: &'static str) -> Self {
        Self {
            name,
            meaning,
            is_required: false,
        }
    }

    /// Creates a parameter that must be there.
    pub(super) const fn required(name: &'static str, meaning: &'static str) -> Self {
        Self {
            name,
            meaning,
            is_required: true,
        }
    }
}

#[derive(Clone, Copy)]
pub(super) enum DocumentReader {
    /// Reads the store at once, with the connection that live pages share.
    Stored(fn(&mut Reader, &ApiRequest) -> Result<Value, PageError>),
    /// Takes long to compute, so it uses a separate connection.
    Computed(fn(&Workspace, &ApiRequest) -> Result<Value, PageError>),
}

/// The parts of a request.
pub(super) struct ApiRequest {
    /// The parameter in the path.
    pub(super) name: String,
    pub(super) query: String,
}

/// Turns a document into JSON.
///
/// # Errors
/// Returns an error when JSON cannot represent it, for example a map with numbers as keys.
pub(super) fn value(document: impl serde::Serialize) -> Result<Value, PageError> {
    serde_json::to_value(document).map_err(|error| anyhow::Error::from(error).into())
}
