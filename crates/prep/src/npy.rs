//! Arrays in the bytes that `numpy.save` gives them (NumPy's format 1.0), so that ours and the references' samples
//! compare with `cmp`. The `npyz` crate reads them all, but writes the shape as `(1, 8, 8, )`. What others' arrays may be is
//! told here, too; where they lie is not.

use std::io;

use npyz::{NpyHeader, Order};

/// Everything before the data is a multiple of this.
const ALIGNMENT: usize = 64;
/// NumPy leaves room for its first axis to grow to this many digits.
const GROWTH_DIGITS: usize = 21;

/// A `.npy` file that is not what the benchmark's file says.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NpyFault {
    /// It cannot be read, or ends early.
    #[error("it cannot be read")]
    Unreadable(#[from] io::Error),
    /// It holds something else.
    #[error("it holds {found}, expected {expected}")]
    Other {
        /// Type, shape and order in the file.
        found: String,
        /// Those that the benchmark needs.
        expected: String,
    },
    /// It goes on behind its last element.
    #[error("it goes on behind its last element")]
    TooLong,
    /// A number that 32 bits do not hold.
    #[error("its element {position} is {value}, which 32 bits do not hold")]
    TooLarge {
        /// Which, from 0.
        position: u64,
        /// Its value.
        value: i64,
    },
    /// A number without end, or none, which has no place among whole ones.
    #[error("its element {0} is not finite")]
    NotFinite(usize),
}

/// An array of `shape` in row order, of numpy's type `descr` or of `another`: whether it is the other.
pub(crate) fn expect(
    header: &NpyHeader,
    descr: &str,
    another: Option<&str>,
    shape: &[usize],
) -> Result<bool, NpyFault> {
    let given = header.dtype().descr();
    let is = |descr: &str| given == format!("'{descr}'");
    let is_another = another.is_some_and(is);
    let same_shape = header
        .shape()
        .iter()
        .map(|&dim| usize::try_from(dim).ok())
        .eq(shape.iter().map(|&dim| Some(dim)));
    if (is_another || is(descr)) && same_shape && header.order() == Order::C {
        return Ok(is_another);
    }
    Err(NpyFault::Other {
        found: format!("{given} {:?} in {:?} order", header.shape(), header.order()),
        expected: format!("'{descr}' {shape:?} in C order"),
    })
}

/// An array of this shape and of numpy's type `descr`, in row order; `data` are its elements' bytes.
pub(crate) fn array(descr: &str, shape: &[usize], data: &[u8]) -> Vec<u8> {
    let mut bytes = header(descr, shape);
    bytes.reserve_exact(data.len());
    bytes.extend(data);
    bytes
}

/// What stands before the data.
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
    // A shape would need thousands of axes to pass 64 KiB.
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::{array, header};

    #[test]
    fn headers_are_those_of_numpy_2() {
        // numpy.save of numpy.zeros(shape, "<f4"): the length of the header and its text.
        let numpys = [
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
        for (shape, length, text) in numpys {
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
