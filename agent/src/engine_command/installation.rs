//! This machine's TensorRT, which builds and inspects engines.

use std::path::{Path, PathBuf};

use regatta_tensorrt::{InstalledTensorRt, ShimDirectories, TensorRt};

use crate::exit::Failure;

/// Opens the machine's TensorRT and loads libraries with plug-ins.
///
/// # Errors
/// [`Failure`] when it is not installed, no shim supports it, or a library cannot be loaded.
pub(super) fn open(directory: Option<&Path>, plugins: &[PathBuf]) -> Result<TensorRt, Failure> {
    let installed = InstalledTensorRt::find(directory)?;
    let tensorrt = TensorRt::open(&installed, &ShimDirectories::from_environment())?;
    for library in plugins {
        tensorrt.load_plugins(library).map_err(Failure::usage)?;
    }
    Ok(tensorrt)
}
