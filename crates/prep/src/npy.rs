//! Arrays in `.npy` files: checks the headers of arrays from other programs, and encodes our own. Opens no file.

use std::io;

use regatta_types::npy::{NpyHeader, NpyHeaderError};

/// The error for a `.npy` file that is damaged, or not the array that the benchmark needs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NpyError {
    /// The file cannot be read, or ends early.
    #[error("it cannot be read")]
    Unreadable(#[from] io::Error),
    /// It is not a `.npy` file, or its header is damaged.
    #[error(transparent)]
    Header(#[from] NpyHeaderError),
    /// The array has another type, shape or order.
    #[error("it contains {found}, expected {expected}")]
    Other {
        /// The type, shape and order in the file.
        found: String,
        /// The type, shape and order that the benchmark needs.
        expected: String,
    },
    /// The file continues after the last element.
    #[error("it continues after its last element")]
    TooLong,
    /// A number does not fit into 32 bits.
    #[error("its element {position} is {value}, which does not fit into 32 bits")]
    TooLarge {
        /// The element's position, from 0.
        position: u64,
        /// The element's value.
        value: i64,
    },
    /// A number is infinite or not a number, which cannot be converted.
    #[error("its element {0} is not finite")]
    NotFinite(usize),
}

/// Checks that an array has `shape` in row order, and NumPy's type `descr` or `another`. Returns whether it has `another`.
pub(crate) fn expect(
    found: &NpyHeader,
    descr: &str,
    another: Option<&str>,
    shape: &[usize],
) -> Result<bool, NpyError> {
    let expected = |descr: &str| NpyHeader::in_c_order(descr, shape.iter().copied());
    if *found == expected(descr) {
        return Ok(false);
    }
    if another.is_some_and(|another| *found == expected(another)) {
        return Ok(true);
    }
    Err(NpyError::Other {
        found: found.to_string(),
        expected: expected(descr).to_string(),
    })
}

/// Encodes an array in row order with this shape and NumPy's type `descr`. `data` contains the bytes of its elements.
pub(crate) fn array(descr: &str, shape: &[usize], data: &[u8]) -> Vec<u8> {
    let mut bytes = header(descr, shape);
    bytes.reserve_exact(data.len());
    bytes.extend(data);
    bytes
}

/// Encodes the header before the data.
pub(crate) fn header(descr: &str, shape: &[usize]) -> Vec<u8> {
    NpyHeader::in_c_order(descr, shape.iter().copied()).to_bytes()
}
