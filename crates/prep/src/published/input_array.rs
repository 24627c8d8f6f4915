//! An array of a model's input, as `.npy` file.

use regatta_types::benchmark::Dtype;

use crate::npy;

/// One array.
#[derive(Debug)]
pub(super) struct InputArray {
    /// The name of its file.
    pub(super) file: String,
    pub(super) header: Vec<u8>,
    pub(super) data: Vec<u8>,
}

impl InputArray {
    /// Returns the array of `int32` for an input.
    pub(super) fn of_tokens(input: &str, shape: &[usize], data: Vec<u8>) -> Self {
        Self {
            file: format!("{input}.npy"),
            header: npy::header(Dtype::Int32.numpy(), shape),
            data,
        }
    }
}
