//! The message of a JSON parser without its position.
//!
//! The parser sees a part of a file (a line or an entry) and counts from the beginning of that part. The readers' errors
//! therefore state the position in the file's own lines and bytes.

use std::{error::Error, fmt};

/// The reason why a part of a log is not valid JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonFault {
    message: String,
    column: Option<usize>,
}

impl JsonFault {
    /// Takes only the parser's message.
    pub(super) fn new(error: &serde_json::Error) -> Self {
        let text = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let message = text.strip_suffix(&place).unwrap_or(&text).to_owned();
        Self {
            message,
            column: None,
        }
    }

    /// Creates a fault that this crate detected itself.
    pub(super) fn from_message(message: String) -> Self {
        Self {
            message,
            column: None,
        }
    }

    /// Adds the column in a line. The parser saw the text after the line's first `before` bytes.
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
