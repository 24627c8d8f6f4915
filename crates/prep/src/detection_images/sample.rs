//! Makes one sample from one JPEG, with the values of the reference's `pre_process_openimages_retinanet` or `pre_process_coco_resnet34`:
//! decoded as OpenCV does, resized, divided, normalised, channels first. RetinaNet's reference normalises in its model. Writes no file.

use std::path::Path;

use regatta_jpeg::Decoded;
use regatta_types::{
    benchmark::{Benchmark, DetectionImages, Dtype},
    layout::Layout,
    samples::{Form, Quantised},
};

use super::bilinear::{self, Normalisation};
use crate::{
    conversion::elements,
    error::PrepError,
    jpeg_images::{CHANNELS, OpenCvReader, Sample, read_image},
    packing::pack,
};

/// Returns the shape of a benchmark's samples, if `kind` can make such samples in this form.
pub(crate) fn image_shape(
    kind: &str,
    benchmark: &Benchmark,
    form: Form,
    quantised: Option<&Quantised>,
) -> Result<Vec<usize>, PrepError> {
    let shape = benchmark.model.input_shape.clone();
    let is_image = matches!(shape[..], [CHANNELS, height, width] if height * width > 0);
    if !is_image || !benchmark.model.further_inputs.is_empty() {
        return Err(PrepError::UnsupportedSettings {
            benchmark: benchmark.name.clone(),
            reason: format!("{kind} makes samples of one input with 3 channels, not of {shape:?}"),
        });
    }
    if (form.dtype == Dtype::Int8) != quantised.is_some() {
        return Err(PrepError::Scale { form });
    }
    Ok(shape)
}

/// Makes the samples of a benchmark in one form.
#[derive(Debug)]
pub(crate) struct ResizedSampleMaker {
    shape: Vec<usize>,
    form: Form,
    quantised: Option<Quantised>,
    normalisation: Normalisation,
}

impl ResizedSampleMaker {
    /// Prepares to make samples of `form`; `quantised` is for `int8` only.
    pub(crate) fn new(
        benchmark: &Benchmark,
        kind: &DetectionImages,
        form: Form,
        quantised: Option<&Quantised>,
    ) -> Result<Self, PrepError> {
        let shape = image_shape("detection-images", benchmark, form, quantised)?;
        let channel = |channel: usize| (kind.means[channel], kind.deviations[channel]);
        Ok(Self {
            shape,
            form,
            quantised: quantised.cloned(),
            normalisation: Normalisation {
                divisor: kind.divisor,
                channels: std::array::from_fn(channel),
            },
        })
    }

    /// Reads an image and makes its sample.
    pub(crate) fn read(&self, path: &Path) -> Result<Sample, PrepError> {
        Ok(self.sample(read_image(path, OpenCvReader::Imread)?))
    }

    fn sample(&self, decoded: Decoded) -> Sample {
        let image = &decoded.image;
        let size_of_image = [image.width, image.height];
        let floats = bilinear::resize(image, self.shape[2], self.shape[1], &self.normalisation);
        let size = self.form.dtype.size();
        let (mut data, clipped) = elements(floats, self.form.dtype, self.quantised.as_ref());
        if self.form.layout != Layout::Linear {
            // `in_form` has checked that the shape can have the layout.
            data = pack(&data, size, &self.shape, self.form.layout).unwrap_or_default();
        }
        Sample {
            data,
            clipped,
            size: size_of_image,
            damage: decoded.damage,
        }
    }
}
