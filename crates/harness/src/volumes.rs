//! The sizes of samples that differ in size: volumes for a model with sliding windows. Reads the headers of the sample files only.

use std::{
    io::BufReader,
    path::{Path, PathBuf},
    sync::Arc,
};

use regatta_fsutil::regular_file;
use regatta_types::{
    benchmark::{Model, SlidingWindows},
    npy::NpyHeader,
};

use super::npy::SampleError;

/// Returns the voxels along each dimension of each sample. Windows must cover every sample.
///
/// # Errors
/// [`SampleError`] for the first file that is no such sample.
pub(crate) fn read_volumes(
    files: &[PathBuf],
    model: &Model,
    windows: &SlidingWindows,
) -> Result<Arc<[[usize; 3]]>, SampleError> {
    files.iter().map(|file| volume(file, model, windows)).collect()
}

fn volume(path: &Path, model: &Model, windows: &SlidingWindows) -> Result<[usize; 3], SampleError> {
    let file = regular_file::open(path).map_err(|source| SampleError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    let found = NpyHeader::read(&mut BufReader::new(file)).map_err(|source| SampleError::Header {
        path: path.to_owned(),
        source,
    })?;
    let shape: Vec<usize> = found
        .shape
        .iter()
        .filter_map(|&side| usize::try_from(side).ok())
        .collect();
    let volume = match shape[..] {
        [channels, depth, height, width] if channels == model.input_shape[0] => [depth, height, width],
        _ => [0; 3],
    };
    let window = &model.input_shape[1..];
    let is_covered = |axis: usize| {
        let rest = volume[axis].checked_sub(window[axis]);
        rest.is_some_and(|rest| rest % windows.stride[axis] == 0)
    };
    let expected = NpyHeader::in_c_order(model.input_dtype.numpy(), shape.iter().copied());
    if found == expected && (0..3).all(is_covered) {
        return Ok(volume);
    }
    Err(SampleError::Other {
        path: path.to_owned(),
        found: found.to_string(),
        expected: format!(
            "'{}' ({}, ...) that windows of {window:?} cover at every {:?} voxels",
            model.input_dtype.numpy(),
            model.input_shape[0],
            windows.stride
        ),
    })
}
