//! Makes single samples of a benchmark from JPEG images, in memory, by the benchmark's own kind of preparation. It writes no files.

use std::path::Path;

use regatta_types::{
    benchmark::{Benchmark, Prep},
    samples::{Form, Quantised},
};

use crate::{
    damaged_images::ImageFault,
    detection_images::ResizedSampleMaker,
    error::PrepError,
    jpeg_images::{Sample, SampleMaker},
    letterbox_images::LetterboxSampleMaker,
};

/// Makes samples of one form.
#[derive(Debug)]
pub struct ImageSampleMaker(Kind);

#[derive(Debug)]
enum Kind {
    Cropped(SampleMaker),
    Resized(ResizedSampleMaker),
    Letterboxed(LetterboxSampleMaker),
}

impl ImageSampleMaker {
    /// Prepares to make samples of `form`; `quantised` is for `int8` only.
    ///
    /// # Errors
    /// [`PrepError`] when the benchmark has no JPEG images, or its samples cannot have the form.
    pub fn new(benchmark: &Benchmark, form: Form, quantised: Option<&Quantised>) -> Result<Self, PrepError> {
        let kind = match &benchmark.prep {
            Some(Prep::JpegImages(kind)) => {
                Kind::Cropped(SampleMaker::new(benchmark, kind, form, quantised)?)
            }
            Some(Prep::DetectionImages(kind)) => {
                Kind::Resized(ResizedSampleMaker::new(benchmark, kind, form, quantised)?)
            }
            Some(Prep::LetterboxImages(kind)) => {
                Kind::Letterboxed(LetterboxSampleMaker::new(benchmark, kind, form, quantised)?)
            }
            _ => {
                return Err(PrepError::NoPrepSection {
                    benchmark: benchmark.name.clone(),
                });
            }
        };
        Ok(Self(kind))
    }

    /// Reads an image and returns the sample's elements, as the `.npy` has them behind its header.
    ///
    /// # Errors
    /// [`PrepError`] when the image cannot be read, or is damaged.
    pub fn read_data(&self, path: &Path) -> Result<Vec<u8>, PrepError> {
        let sample = self.read(path)?;
        match sample.damage {
            None => Ok(sample.data),
            Some(damage) => Err(PrepError::Image {
                path: path.to_owned(),
                source: ImageFault::Damaged(damage),
            }),
        }
    }

    /// Reads an image, which may be damaged, and makes its sample.
    pub(crate) fn read(&self, path: &Path) -> Result<Sample, PrepError> {
        match &self.0 {
            Kind::Cropped(maker) => maker.read(path),
            Kind::Resized(maker) => maker.read(path),
            Kind::Letterboxed(maker) => maker.read(path),
        }
    }
}
