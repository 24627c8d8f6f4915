//! Makes one sample from one JPEG, with the values of the reference's `pre_process_openimages_retinanet` or `pre_process_coco_resnet34`:
//! decoded as OpenCV does, resized, divided, normalised, channels first. Writes no file.

use std::path::Path;

use regatta_jpeg::Image;
use regatta_types::{
    benchmark::{Benchmark, DetectionImages, Dtype},
    layout::Layout,
    samples::{Form, Quantised},
};

use super::bilinear;
use crate::{
    conversion::push_element,
    error::PrepError,
    jpeg_images::{CHANNELS, Sample, read_image},
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
    /// The number by which values are divided first.
    divisor: f32,
    /// Mean and standard deviation of each channel.
    normal: [(f32, f32); CHANNELS],
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
        let of_int8 = |own: Option<[f32; CHANNELS]>| own.filter(|_| form.dtype == Dtype::Int8);
        let means = of_int8(kind.int8_means).unwrap_or(kind.means);
        let deviations = of_int8(kind.int8_deviations).unwrap_or(kind.deviations);
        Ok(Self {
            shape,
            form,
            quantised: quantised.cloned(),
            divisor: kind.divisor,
            normal: std::array::from_fn(|channel| (means[channel], deviations[channel])),
        })
    }

    /// Reads an image and makes its sample.
    pub(crate) fn read(&self, path: &Path) -> Result<Sample, PrepError> {
        Ok(self.sample(&read_image(path)?))
    }

    fn sample(&self, image: &Image) -> Sample {
        let size_of_image = [image.width, image.height];
        let values = bilinear::resize(image, self.shape[2], self.shape[1]);
        let size = self.form.dtype.size();
        let mut data = Vec::with_capacity(values.len() * size);
        let mut clipped = 0;
        for (plane, (mean, deviation)) in values.chunks_exact(values.len() / CHANNELS).zip(self.normal) {
            for value in plane {
                let value = (value / self.divisor - mean) / deviation;
                let is_clipped = push_element(value, self.form.dtype, self.quantised.as_ref(), &mut data);
                clipped += u64::from(is_clipped);
            }
        }
        if self.form.layout != Layout::Linear {
            // `in_form` has checked that the shape can have the layout.
            data = pack(&data, size, &self.shape, self.form.layout).unwrap_or_default();
        }
        Sample {
            data,
            clipped,
            size: size_of_image,
        }
    }
}
