//! Makes one sample from one JPEG, with the values of the reference's `pre_process_vgg`: decoded as OpenCV does, the short side
//! resized with `INTER_AREA`, the centre cropped, means subtracted, channels first. Writes no file.

use std::path::Path;

use regatta_jpeg::{Damage, Decoded, Image};
use regatta_types::{
    benchmark::{Benchmark, Dtype, JpegImages},
    samples::{Form, Quantised},
};

use super::{
    area,
    elements::{CHANNELS, PixelElements},
    image_file::{OpenCvReader, read_image},
    region::Region,
};
use crate::error::PrepError;

/// A sample's data in its form, without a header.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) data: Vec<u8>,
    /// The number of values beyond the range of their type.
    pub(crate) clipped: u64,
    /// Width and height of the image in pixels.
    pub(crate) size: [usize; 2],
    /// Why pixels of the image are not those that it should have.
    pub(crate) damage: Option<Damage>,
}

/// Makes the samples of a benchmark in one form.
#[derive(Debug)]
pub(crate) struct SampleMaker {
    shape: Vec<usize>,
    short_side: usize,
    elements: PixelElements,
}

impl SampleMaker {
    /// Prepares to make samples of `form`; `quantised` is for `int8` only.
    ///
    /// # Errors
    /// [`PrepError`] when the benchmark's settings are unsuitable for images, or `quantised` does not suit the form.
    pub(crate) fn new(
        benchmark: &Benchmark,
        kind: &JpegImages,
        form: Form,
        quantised: Option<&Quantised>,
    ) -> Result<Self, PrepError> {
        let unsupported = |reason: String| PrepError::UnsupportedSettings {
            benchmark: benchmark.name.clone(),
            reason,
        };
        let shape = benchmark.model.input_shape.clone();
        let [CHANNELS, height, width] = shape[..] else {
            return Err(unsupported(format!(
                "jpeg-images makes samples of 3 channels, not of {shape:?}"
            )));
        };
        if !benchmark.model.further_inputs.is_empty()
            || height.max(width) > kind.short_side
            || height * width == 0
        {
            return Err(unsupported(format!(
                "{height} x {width} pixels of one input cannot be cropped from a short side of {}",
                kind.short_side
            )));
        }
        if (form.dtype == Dtype::Int8) != quantised.is_some() {
            return Err(PrepError::Scale { form });
        }
        let elements = PixelElements::new(form, quantised, |channel, value| {
            f32::from(value) - kind.means[channel]
        });
        Ok(Self {
            shape,
            short_side: kind.short_side,
            elements,
        })
    }

    /// Reads an image and makes its sample.
    pub(crate) fn read(&self, path: &Path) -> Result<Sample, PrepError> {
        Ok(self.sample(read_image(path, OpenCvReader::Imread)?))
    }

    fn sample(&self, decoded: Decoded) -> Sample {
        let image = &decoded.image;
        let (width, height) = self.resized(image);
        let (crop_height, crop_width) = (self.shape[1], self.shape[2]);
        let region = Region {
            left: (width - crop_width) / 2,
            top: (height - crop_height) / 2,
            width: crop_width,
            height: crop_height,
        };
        let pixels = area::resize(image, width, height, region);
        let (data, clipped) = self.elements.data(&pixels, &self.shape);
        let size = [image.width, image.height];
        Sample {
            data,
            clipped,
            size,
            damage: decoded.damage,
        }
    }

    /// Returns width and height after resizing, computed as the reference does: a quotient of doubles, cut off.
    fn resized(&self, image: &Image) -> (usize, usize) {
        let short = self.short_side;
        let long = |long: usize, short_now: usize| ((short * long) as f64 / short_now as f64) as usize;
        if image.height > image.width {
            (short, long(image.height, image.width))
        } else {
            (long(image.width, image.height), short)
        }
    }
}
