//! The `.npy` format, version 1.0, with the exact bytes of `numpy.save`, so that `cmp` compares samples with those of the
//! reference implementations. The `npyz` crate reads the files, but writes a shape as `(1, 8, 8, )`. This file also checks
//! the headers of arrays from other programs; it opens no file.

use std::io;

use npyz::{NpyHeader, Order};

/// The alignment of the data in the file.
const ALIGNMENT: usize = 64;
/// The digits for which NumPy reserves space in the first axis.
const GROWTH_DIGITS: usize = 21;

/// The error for a `.npy` file that is damaged, or not the array that the benchmark needs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NpyError {
    /// The file cannot be read, or ends early.
    #[error("it cannot be read")]
    Unreadable(#[from] io::Error),
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
    header: &NpyHeader,
    descr: &str,
    another: Option<&str>,
    shape: &[usize],
) -> Result<bool, NpyError> {
    let dtype = header.dtype().descr();
    let is = |descr: &str| dtype == format!("'{descr}'");
    let is_another = another.is_some_and(is);
    let same_shape = header
        .shape()
        .iter()
        .map(|&dim| usize::try_from(dim).ok())
        .eq(shape.iter().map(|&dim| Some(dim)));
    if (is_another || is(descr)) && same_shape && header.order() == Order::C {
        return Ok(is_another);
    }
    Err(NpyError::Other {
        found: format!("{dtype} {:?} in {:?} order", header.shape(), header.order()),
        expected: format!("'{descr}' {shape:?} in C order"),
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
    let axes: Vec<String> = shape.iter().map(usize::to_string).collect();
    let last = if axes.len() == 1 { "," } else { "" };
    let shape = axes.join(", ");
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}{last}), }}");
    if let Some(first) = axes.first() {
        text.push_str(&" ".repeat(GROWTH_DIGITS.saturating_sub(first.len())));
    }
    let before = b"\x93NUMPY\x01\x00".len() + size_of::<u16>();
    let padding = ALIGNMENT - (before + text.len() + 1) % ALIGNMENT;
    text.push_str(&" ".repeat(padding % ALIGNMENT));
    text.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    // A header only exceeds 64 KiB with thousands of axes.
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::{array, header};

    #[test]
    fn headers_are_those_of_numpy_2() {
        // The length and text of the header of numpy.save for numpy.zeros(shape, "<f4").
        let expected = [
            (vec![1, 8, 8], 128, "(1, 8, 8), }"),
            (vec![5], 128, "(5,), }"),
            (vec![3, 224, 224], 128, "(3, 224, 224), }"),
            (vec![], 128, "(), }"),
            (
                vec![1; 20],
                192,
                "(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1), }",
            ),
        ];
        for (shape, length, text) in expected {
            let bytes = header("<f4", &shape);
            assert_eq!(bytes.len(), length, "{shape:?}");
            let written = String::from_utf8_lossy(&bytes[10..]).into_owned();
            assert_eq!(
                written.trim_end(),
                format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {text}")
            );
            assert!(
                written.ends_with(" \n") && usize::from(bytes[8]) == length - 10,
                "{shape:?}"
            );
        }
    }

    #[test]
    fn the_library_reads_what_is_written() {
        let data: Vec<u8> = [0.0_f32, 0.5, -1.0, 2.5]
            .into_iter()
            .flat_map(f32::to_le_bytes)
            .collect();
        let bytes = array("<f4", &[1, 2, 2], &data);
        let npy = npyz::NpyFile::new(&bytes[..]).unwrap();
        assert_eq!((npy.shape(), npy.order()), (&[1, 2, 2][..], npyz::Order::C));
        assert_eq!(npy.into_vec::<f32>().unwrap(), [0.0, 0.5, -1.0, 2.5]);
    }
}
