//! What a JSON parser says is wrong, without its own idea of the place.
//!
//! The parser sees a piece of a file (a line, an entry) and counts from that piece's beginning; a reader of the error
//! has the file before them. So the place is told by the reader's error, in the file's own lines and bytes.

use std::{error::Error, fmt};

/// Why a piece of a log is not the JSON it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonFault {
    message: String,
    column: Option<usize>,
}

impl JsonFault {
    /// Takes the parser's message alone.
    pub(super) fn new(error: &serde_json::Error) -> Self {
        let text = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let message = text.strip_suffix(&place).unwrap_or(&text).to_owned();
        Self {
            message,
            column: None,
        }
    }

    /// A fault that this crate found itself.
    pub(super) fn from_message(message: String) -> Self {
        Self {
            message,
            column: None,
        }
    }

    /// Adds the column in a line of which the parser saw what follows its first `before` bytes.
    pub(super) fn in_line(error: &serde_json::Error, before: usize) -> Self {
        Self {
            column: Some(before + error.column()),
            ..Self::new(error)
        }
    }
}

impl fmt::Display for JsonFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.column
            .map_or(Ok(()), |column| write!(f, " (column {column})"))
    }
}

impl Error for JsonFault {}
