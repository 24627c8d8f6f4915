//! The elements of a sample for pixels of 8 bits per channel. Each value of a channel becomes one of 256 elements, which are computed once.

use regatta_jpeg::Pixel;
use regatta_types::{
    layout::Layout,
    samples::{Form, Quantised},
};

use crate::{conversion::push_element, packing::pack};

/// Channels of an image.
pub(crate) const CHANNELS: usize = 3;

/// For each channel and value, the bytes of the element, and whether it was clipped.
#[derive(Debug)]
pub(crate) struct PixelElements {
    form: Form,
    elements: [Vec<([u8; 4], bool)>; CHANNELS],
}

impl PixelElements {
    /// Computes the elements of `form`: `normalised` returns the value of a channel's byte. `quantised` is for `int8` only.
    pub(crate) fn new(
        form: Form,
        quantised: Option<&Quantised>,
        normalised: impl Fn(usize, u8) -> f32,
    ) -> Self {
        let elements = std::array::from_fn(|channel| {
            let element = |value: u8| {
                let mut bytes = Vec::with_capacity(4);
                let is_clipped = push_element(normalised(channel, value), form.dtype, quantised, &mut bytes);
                bytes.resize(4, 0);
                (bytes.try_into().unwrap_or_default(), is_clipped)
            };
            (0..=u8::MAX).map(element).collect()
        });
        Self { form, elements }
    }

    /// Returns the data of a sample of `shape`, channels first, and the number of clipped elements.
    pub(crate) fn data(&self, pixels: &[Pixel], shape: &[usize]) -> (Vec<u8>, u64) {
        let size = self.form.dtype.size();
        let mut data = Vec::with_capacity(pixels.len() * CHANNELS * size);
        let mut clipped = 0;
        for (channel, elements) in self.elements.iter().enumerate() {
            for pixel in pixels {
                let (bytes, is_clipped) = &elements[usize::from(pixel[channel])];
                data.extend_from_slice(&bytes[..size]);
                clipped += u64::from(*is_clipped);
            }
        }
        if self.form.layout != Layout::Linear {
            // `in_form` has checked that the shape can have the layout.
            data = pack(&data, size, shape, self.form.layout).unwrap_or_default();
        }
        (data, clipped)
    }
}
