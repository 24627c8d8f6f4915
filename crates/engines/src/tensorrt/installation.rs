//! The location of NVIDIA's libraries.

use std::path::PathBuf;

use regatta_cuda::Driver;
use regatta_tensorrt::{InstalledTensorRt, ShimDirectories, TensorRt};

use crate::EngineError;

/// The location of NVIDIA's libraries. `None` is the system's default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// The file of the CUDA driver.
    pub cuda: Option<PathBuf>,
    /// TensorRT's directory.
    pub tensorrt: Option<PathBuf>,
    pub shims: ShimDirectories,
}

impl Installation {
    /// Returns the locations from the environment.
    pub fn of_this_machine() -> Self {
        Self {
            cuda: None,
            tensorrt: None,
            shims: ShimDirectories::from_environment(),
        }
    }

    /// Opens CUDA.
    ///
    /// # Errors
    /// [`EngineError::Unavailable`] with what is missing.
    pub(super) fn driver(&self) -> Result<Driver, EngineError> {
        let driver = match &self.cuda {
            None => Driver::open(),
            Some(file) => Driver::open_file(file),
        };
        driver.map_err(EngineError::tensorrt_unavailable)
    }

    /// Opens TensorRT.
    ///
    /// # Errors
    /// [`EngineError::Unavailable`] with what is missing.
    pub(super) fn tensorrt(&self) -> Result<TensorRt, EngineError> {
        let installed =
            InstalledTensorRt::find(self.tensorrt.as_deref()).map_err(EngineError::tensorrt_unavailable)?;
        TensorRt::open(&installed, &self.shims).map_err(EngineError::tensorrt_unavailable)
    }
}
