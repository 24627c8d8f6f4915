//! This machine's TensorRT, which builds and inspects engines.

use std::path::Path;

use regatta_tensorrt::{InstalledTensorRt, ShimDirectories, TensorRt};

use crate::exit::Failure;

/// Opens the machine's TensorRT.
///
/// # Errors
/// [`Failure`] when it is not installed, or no shim supports it.
pub(super) fn open(directory: Option<&Path>) -> Result<TensorRt, Failure> {
    let installed = InstalledTensorRt::find(directory)?;
    Ok(TensorRt::open(&installed, &ShimDirectories::from_environment())?)
}
