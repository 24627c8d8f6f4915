//! Volumes in NIfTI's form, as KiTS19 publishes them.

mod error;
mod gzip_members;
mod header;
mod header_fields;
mod nifti;

pub use self::{
    error::{VolumeError, VolumeFault},
    header::{MAX_VOXELS, NiftiHeader, VoxelType},
    nifti::{NiftiFile, PLANES, segmentation_file},
};
