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
        let (mut data, clipped) = match size {
            1 => self.planes::<1>(pixels),
            2 => self.planes::<2>(pixels),
            _ => self.planes::<4>(pixels),
        };
        if self.form.layout != Layout::Linear {
            // `in_form` has checked that the shape can have the layout.
            data = pack(&data, size, shape, self.form.layout).unwrap_or_default();
        }
        (data, clipped)
    }

    /// Returns the elements of `SIZE` bytes, the channels one after another, and the number of clipped ones.
    fn planes<const SIZE: usize>(&self, pixels: &[Pixel]) -> (Vec<u8>, u64) {
        let mut planes: Vec<[u8; SIZE]> = Vec::with_capacity(pixels.len() * CHANNELS);
        let mut clipped = 0;
        for (channel, elements) in self.elements.iter().enumerate() {
            let values: [[u8; SIZE]; 256] =
                std::array::from_fn(|value| elements[value].0.first_chunk().copied().unwrap_or([0; SIZE]));
            planes.extend(pixels.iter().map(|pixel| values[usize::from(pixel[channel])]));
            if elements.iter().any(|(_, is_clipped)| *is_clipped) {
                let is_clipped = |pixel: &&Pixel| elements[usize::from(pixel[channel])].1;
                clipped += pixels.iter().filter(is_clipped).count() as u64;
            }
        }
        (planes.into_flattened(), clipped)
    }
}
