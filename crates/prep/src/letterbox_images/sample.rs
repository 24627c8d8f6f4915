//! Makes one sample from one JPEG, with the values of the reference's YOLO for a network with a fixed input: decoded as OpenCV does, resized
//! with `INTER_LINEAR` to fit, padded, divided by 255, channels first. Writes no file.

use std::path::Path;

use regatta_jpeg::{Decoded, Image, Pixel};
use regatta_types::{
    benchmark::{Benchmark, LetterboxImages},
    samples::{Form, Quantised},
};

use crate::{
    detection_images::image_shape,
    error::PrepError,
    jpeg_images::{Frame, OpenCvReader, PixelElements, Sample, halved, read_image, resize_centred},
    letterbox::Letterbox,
};

/// Makes the samples of a benchmark in one form.
#[derive(Debug)]
pub(crate) struct LetterboxSampleMaker {
    shape: Vec<usize>,
    padding: u8,
    elements: PixelElements,
}

impl LetterboxSampleMaker {
    /// Prepares to make samples of `form`; `quantised` is for `int8` only.
    pub(crate) fn new(
        benchmark: &Benchmark,
        kind: &LetterboxImages,
        form: Form,
        quantised: Option<&Quantised>,
    ) -> Result<Self, PrepError> {
        let shape = image_shape("letterbox-images", benchmark, form, quantised)?;
        Ok(Self {
            shape,
            padding: kind.padding,
            elements: PixelElements::new(form, quantised, |_, value| f32::from(value) / 255.0),
        })
    }

    /// Reads an image and makes its sample.
    pub(crate) fn read(&self, path: &Path) -> Result<Sample, PrepError> {
        let Decoded { image, damage } = read_image(path, OpenCvReader::Imdecode)?;
        let size = [image.width, image.height];
        let sample_size = [self.shape[2], self.shape[1]];
        let place = Letterbox::fit(size, sample_size).ok_or_else(|| PrepError::ThinImage {
            path: path.to_owned(),
            size,
        })?;
        let frame = Frame {
            width: place.width,
            before: place.top * sample_size[0] + place.left,
            between: sample_size[0] - place.width,
            padding: self.padding,
        };
        let (data, clipped) = self
            .elements
            .framed_data(&resized(image, place), &frame, &self.shape);
        Ok(Sample {
            data,
            clipped,
            size,
            damage,
        })
    }
}

fn resized(image: Image, place: Letterbox) -> Vec<Pixel> {
    if (image.width, image.height) == (place.width, place.height) {
        return image.pixels;
    }
    if (image.width, image.height) == (2 * place.width, 2 * place.height) {
        return halved(&image);
    }
    resize_centred(&image, place.width, place.height)
}
