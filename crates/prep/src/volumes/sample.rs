//! Makes the sample and the classes of one case, with the values of the reference's `preprocess.py`. Writes no file.

use std::path::Path;

use regatta_datasets::volumes::{MAX_VOXELS, NiftiFile, NiftiHeader, VolumeError, VolumeFault};
use regatta_types::{
    benchmark::{Benchmark, Dtype, SlidingWindows, Volumes},
    layout::Layout,
    samples::{Form, Quantised},
};

use super::{
    geometry::Volume,
    memory::memory_of,
    zoom::{zoom_linear, zoom_nearest, zoomed_size},
};
use crate::{conversion::push_element, error::PrepError};

/// Makes the samples of a benchmark in one form.
#[derive(Debug)]
pub(crate) struct VolumeSampleMaker<'a> {
    kind: &'a Volumes,
    windows: &'a SlidingWindows,
    window: [usize; 3],
    form: Form,
    quantised: Option<&'a Quantised>,
}

#[derive(Debug)]
pub(crate) struct VolumeSample {
    /// The elements in the requested type.
    pub(crate) data: Vec<u8>,
    /// The voxels along each dimension.
    pub(crate) size: [usize; 3],
    /// The number of values beyond the range of their type.
    pub(crate) clipped: u64,
}

/// The classes of a sample's voxels, with what the reference's accuracy script needs.
#[derive(Debug)]
pub(crate) struct Segmentation {
    pub(crate) classes: Volume<u8>,
    /// The map from voxels to millimetres at the common spacing.
    pub(crate) affine: [[f64; 4]; 3],
}

impl<'a> VolumeSampleMaker<'a> {
    /// Prepares to make samples of `form`; `quantised` is for `int8` only.
    pub(crate) fn new(
        benchmark: &'a Benchmark,
        kind: &'a Volumes,
        form: Form,
        quantised: Option<&'a Quantised>,
    ) -> Result<Self, PrepError> {
        let unsupported = |reason: &str| PrepError::UnsupportedSettings {
            benchmark: benchmark.name.clone(),
            reason: reason.to_owned(),
        };
        let (Some(windows), &[1, depth, height, width]) =
            (&benchmark.model.windows, &benchmark.model.input_shape[..])
        else {
            return Err(unsupported(
                "volumes are for a model with [model.windows] and an input of one channel and three dimensions",
            ));
        };
        let window = [depth, height, width];
        let has_windows = (0..3).all(|axis| (1..=window[axis]).contains(&windows.stride[axis]));
        if !has_windows
            || kind
                .spacing
                .iter()
                .any(|&spacing| spacing <= 0.0 || !spacing.is_finite())
        {
            return Err(unsupported(
                "a stride is from 1 to the window's size, and a spacing is a positive number of millimetres",
            ));
        }
        if form.layout != Layout::Linear {
            return Err(unsupported(
                "samples of different sizes are made in linear layout only",
            ));
        }
        if (form.dtype == Dtype::Int8) != quantised.is_some() {
            return Err(PrepError::Scale { form });
        }
        Ok(Self {
            kind,
            windows,
            window,
            form,
            quantised,
        })
    }

    /// Returns the common spacing.
    pub(crate) const fn spacing(&self) -> [f64; 3] {
        self.kind.spacing
    }

    /// Reads the values of the case in `directory` and makes its sample.
    pub(crate) fn sample(&self, directory: &Path) -> Result<VolumeSample, VolumeError> {
        let path = directory.join(&self.kind.image);
        let file = NiftiFile::open(&path)?;
        let (from, to) = (file.header.size, self.zoomed(&file.header, &path)?);
        let is_zoomed = file.header.spacing != self.kind.spacing;
        let mut values = file.voxels(&path, finite)?;
        if is_zoomed {
            let lowest = values.iter().copied().fold(f32::INFINITY, f32::min);
            values = zoom_linear(&values, from, to, lowest);
        }
        let Volumes {
            lowest,
            highest,
            mean,
            deviation,
            padding,
            ..
        } = *self.kind;
        for value in &mut values {
            *value = (value.clamp(lowest, highest) - mean) / deviation;
        }
        let volume = Volume {
            size: to,
            voxels: values,
        };
        let volume = volume
            .at_least(self.window)
            .fitted(self.window, self.windows.stride, padding);
        let mut data = Vec::with_capacity(volume.voxels.len() * self.form.dtype.size());
        let mut clipped = 0;
        for &value in &volume.voxels {
            clipped += u64::from(push_element(value, self.form.dtype, self.quantised, &mut data));
        }
        Ok(VolumeSample {
            data,
            size: volume.size,
            clipped,
        })
    }

    /// Reads the classes of the case in `directory`, for its sample.
    pub(crate) fn segmentation(&self, directory: &Path) -> Result<Segmentation, VolumeError> {
        // The reference takes spacing and orientation from the values, not from the classes.
        let image = directory.join(&self.kind.image);
        let header = NiftiFile::open(&image)?.header;
        let affine = self.affine(&header, &image)?;
        let path = directory.join(&self.kind.labels);
        let file = NiftiFile::open(&path)?;
        if file.header.size != header.size {
            return Err(VolumeError::Sizes {
                path,
                found: file.header.size,
                expected: header.size,
            });
        }
        let classes = self.windows.classes;
        let mut voxels = file.voxels(&path, |value| class(value, classes))?;
        let to = self.zoomed(&header, &image)?;
        if header.spacing != self.kind.spacing {
            let lowest = voxels.iter().copied().min().unwrap_or(0);
            voxels = zoom_nearest(&voxels, header.size, to, lowest);
        }
        let volume = Volume { size: to, voxels };
        Ok(Segmentation {
            classes: volume
                .at_least(self.window)
                .fitted(self.window, self.windows.stride, 0),
            affine,
        })
    }

    /// Returns the bytes of memory that the case in `directory` takes.
    pub(crate) fn memory(&self, directory: &Path) -> Result<u64, VolumeError> {
        let path = directory.join(&self.kind.image);
        let header = NiftiFile::open(&path)?.header;
        let zoomed = self.zoomed(&header, &path)?;
        Ok(memory_of(header.size, self.padded(zoomed)))
    }

    /// Returns an upper bound of the size of a sample.
    fn padded(&self, size: [usize; 3]) -> [usize; 3] {
        [0, 1, 2].map(|axis: usize| {
            let side = size[axis].max(self.window[axis]);
            side.saturating_add(self.windows.stride[axis])
        })
    }

    /// Returns the size at the common spacing.
    fn zoomed(&self, header: &NiftiHeader, path: &Path) -> Result<[usize; 3], VolumeError> {
        let factors = [0, 1, 2].map(|axis: usize| header.spacing[axis] / self.kind.spacing[axis]);
        let size = if header.spacing == self.kind.spacing {
            header.size
        } else {
            zoomed_size(header.size, factors)
        };
        // A thin volume is padded to a window.
        let padded = self.padded(size).into_iter();
        let voxels = padded.fold(1_usize, usize::saturating_mul);
        if voxels <= MAX_VOXELS && !size.contains(&0) {
            return Ok(size);
        }
        Err(VolumeError::Form {
            path: path.to_owned(),
            reason: VolumeFault::Zoomed {
                size: header.size,
                spacing: header.spacing,
                zoomed: size,
                max: MAX_VOXELS,
            },
        })
    }

    /// Returns the map to millimetres at the common spacing: each axis keeps its direction.
    fn affine(&self, header: &NiftiHeader, path: &Path) -> Result<[[f64; 4]; 3], VolumeError> {
        let mut affine = header.affine;
        for row in &mut affine {
            let axes: Vec<usize> = (0..3).filter(|&axis| row[axis] != 0.0).collect();
            match axes[..] {
                [] => {}
                [axis] => row[axis] = self.kind.spacing[axis].copysign(row[axis]),
                _ => {
                    return Err(VolumeError::Form {
                        path: path.to_owned(),
                        reason: VolumeFault::Rotated,
                    });
                }
            }
        }
        Ok(affine)
    }
}

/// Returns a value as a 32-bit float.
fn finite(value: f64) -> Result<f32, VolumeFault> {
    let value = value as f32;
    if value.is_finite() {
        return Ok(value);
    }
    Err(VolumeFault::NotFinite)
}

/// Returns a class as an integer.
fn class(value: f64, classes: usize) -> Result<u8, VolumeFault> {
    let class = value as u8;
    if f64::from(class) == value && usize::from(class) < classes {
        return Ok(class);
    }
    Err(VolumeFault::Class {
        class: value,
        classes,
    })
}
