//! The latents with which all images begin, in a file beside the networks.

use std::{
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use regatta_fsutil::regular_file;
use regatta_types::{benchmark::Dtype, npy::NpyHeader};

use crate::{EngineError, LoadRequest, network::read_floats};

/// The error for a file that does not have the latents.
#[derive(Debug)]
pub(super) enum LatentsError {
    Unreadable(io::Error),
    Other { found: String, expected: String },
}

impl LatentsError {
    /// Returns the error of the engine whose file this is.
    pub(super) fn of(self, file: PathBuf, request: &LoadRequest<'_>) -> EngineError {
        match self {
            Self::Unreadable(source) => EngineError::ModelUnreadable { file, source },
            Self::Other { found, expected } => EngineError::ModelUnfit {
                file,
                benchmark: request.benchmark.name.clone(),
                reason: format!("it has {found}, but {expected} is needed").into(),
            },
        }
    }
}

/// Reads an array of float32 `[1, channels, height, width]`.
pub(super) fn read(path: &Path, shape: [usize; 3]) -> Result<Vec<f32>, LatentsError> {
    let mut file = regular_file::open(path).map_err(LatentsError::Unreadable)?;
    let found =
        NpyHeader::read(&mut file).map_err(|error| LatentsError::Unreadable(io::Error::other(error)))?;
    let expected = NpyHeader::in_c_order(Dtype::Float32.numpy(), std::iter::once(1).chain(shape));
    if found != expected {
        return Err(LatentsError::Other {
            found: found.to_string(),
            expected: expected.to_string(),
        });
    }
    let values = shape.iter().product::<usize>();
    let mut bytes = vec![0; values * size_of::<f32>()];
    file.read_exact(&mut bytes).map_err(LatentsError::Unreadable)?;
    Ok(read_floats(&bytes).collect())
}
