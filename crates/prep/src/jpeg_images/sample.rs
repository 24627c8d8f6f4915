//! Makes one sample from one image: decoded as OpenCV does, fitted into the sample, and normalised. With the settings of ResNet50 it has the
//! values of the reference's `pre_process_vgg`. Writes no file.

use std::path::Path;

use regatta_jpeg::{Damage, Decoded};
use regatta_types::{
    benchmark::{Benchmark, ChannelOrder, Dtype, JpegImages},
    layout::Layout,
    samples::{Form, Quantised},
};

use super::{
    elements::{CHANNELS, PixelElements},
    image_file::{OpenCvReader, read_image},
    placement::Placement,
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
    /// Channels, height and width.
    shape: [usize; 3],
    placement: Placement,
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
        let (height, width) = size(benchmark, kind, form).map_err(unsupported)?;
        let placement = Placement::new(kind, [height, width]).map_err(unsupported)?;
        if (form.dtype == Dtype::Int8) != quantised.is_some() {
            return Err(PrepError::Scale { form });
        }
        let elements = PixelElements::new(form, quantised, |channel, value| {
            (f32::from(value) / kind.divisor - kind.means[channel]) / kind.deviations[channel]
        });
        let order = match kind.channels {
            ChannelOrder::Rgb => [0, 1, 2],
            ChannelOrder::Bgr => [2, 1, 0],
        };
        Ok(Self {
            shape: [CHANNELS, height, width],
            placement,
            elements: elements.arranged(order, kind.channels_last),
        })
    }

    /// Reads an image and makes its sample.
    pub(crate) fn read(&self, path: &Path) -> Result<Sample, PrepError> {
        let Decoded { image, damage } = read_image(path, OpenCvReader::Imread)?;
        let size = [image.width, image.height];
        let (pixels, frame) = self
            .placement
            .pixels(&image)
            .ok_or_else(|| PrepError::ThinImage {
                path: path.to_owned(),
                size,
            })?;
        let (data, clipped) = self.elements.framed_data(&pixels, &frame, &self.shape);
        Ok(Sample {
            data,
            clipped,
            size,
            damage,
        })
    }
}

/// Returns height and width of the samples.
///
/// # Errors
/// Returns why the benchmark's input is none for images.
fn size(benchmark: &Benchmark, kind: &JpegImages, form: Form) -> Result<(usize, usize), String> {
    let shape = &benchmark.model.input_shape[..];
    if !benchmark.model.further_inputs.is_empty() {
        return Err("jpeg-images makes samples of one input".to_owned());
    }
    if kind.channels_last && form.layout != Layout::Linear {
        return Err(format!(
            "samples with channels last have no layout {}",
            form.layout
        ));
    }
    if matches!(form.dtype, Dtype::Int32 | Dtype::Int64 | Dtype::Bool) {
        return Err(format!("images do not become {}", form.dtype.word()));
    }
    if kind.divisor == 0.0 || kind.deviations.contains(&0.0) {
        return Err("`divisor` and `deviations` cannot be 0".to_owned());
    }
    match (shape, kind.channels_last) {
        (&[CHANNELS, height, width], false) | (&[height, width, CHANNELS], true) if height * width > 0 => {
            Ok((height, width))
        }
        (_, false) => Err(format!(
            "jpeg-images makes samples of 3 channels, not of {shape:?}; hint: with channels_last = true, the channels are the last dimension"
        )),
        (_, true) => Err(format!(
            "with channels_last, jpeg-images makes samples of height, width and 3 channels, not of {shape:?}"
        )),
    }
}
