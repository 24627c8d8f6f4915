//! Volumes in NIfTI's form, as KiTS19 publishes them.

mod error;
mod header;
mod nifti;

pub use self::{
    error::VolumeError,
    header::{NiftiHeader, VoxelType},
    nifti::{NiftiFile, segmentation_file},
};
