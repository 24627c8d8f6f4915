//! The elements of a sample for pixels of 8 bits per channel. Each value of a channel becomes one of 256 elements, which are computed once.
//! A frame of padding may surround the pixels. Channels may be in another order, or last. Resizes nothing.

use regatta_jpeg::Pixel;
use regatta_types::{
    layout::Layout,
    samples::{Form, Quantised},
};

use crate::{conversion::push_element, packing::pack};

/// Channels of an image.
pub(crate) const CHANNELS: usize = 3;

/// Where pixels are in a sample that is larger.
#[derive(Debug)]
pub(crate) struct Frame {
    /// The pixels of a row.
    pub(crate) width: usize,
    /// The padding before the first pixel.
    pub(crate) before: usize,
    /// The padding between two rows: that on the right of one and on the left of the next.
    pub(crate) between: usize,
    /// The value of each channel in the padding.
    pub(crate) padding: u8,
}

/// For each channel and value, the bytes of the element, and whether it was clipped.
#[derive(Debug)]
pub(crate) struct PixelElements {
    form: Form,
    elements: [Vec<([u8; LARGEST], bool)>; CHANNELS],
    /// The channels of pixels in the order in which a sample has them.
    order: [usize; CHANNELS],
    are_last: bool,
}

/// The bytes of the largest element.
const LARGEST: usize = 8;

impl PixelElements {
    /// Computes the elements of `form`: `normalised` returns the value of a channel's byte. `quantised` is for `int8` only.
    pub(crate) fn new(
        form: Form,
        quantised: Option<&Quantised>,
        normalised: impl Fn(usize, u8) -> f32,
    ) -> Self {
        let elements = std::array::from_fn(|channel| {
            let element = |value: u8| {
                let mut bytes = Vec::with_capacity(LARGEST);
                let is_clipped = push_element(normalised(channel, value), form.dtype, quantised, &mut bytes);
                bytes.resize(LARGEST, 0);
                (bytes.try_into().unwrap_or_default(), is_clipped)
            };
            (0..=u8::MAX).map(element).collect()
        });
        Self {
            form,
            elements,
            order: [0, 1, 2],
            are_last: false,
        }
    }

    /// Returns the same elements for samples with the channels in another order, or with a pixel's channels one after the other.
    pub(crate) const fn arranged(mut self, order: [usize; CHANNELS], are_last: bool) -> Self {
        (self.order, self.are_last) = (order, are_last);
        self
    }

    /// Returns the data of a sample of `shape`, channels first, with padding around `pixels`, and the number of clipped elements.
    pub(crate) fn framed_data(&self, pixels: &[Pixel], frame: &Frame, shape: &[usize]) -> (Vec<u8>, u64) {
        let plane = shape[1] * shape[2];
        let size = self.form.dtype.size();
        let mut data = match size {
            1 => self.planes::<1>(pixels, frame, plane),
            2 => self.planes::<2>(pixels, frame, plane),
            4 => self.planes::<4>(pixels, frame, plane),
            _ => self.planes::<LARGEST>(pixels, frame, plane),
        };
        if self.form.layout != Layout::Linear {
            // `in_form` has checked that the shape can have the layout.
            data = pack(&data, size, shape, self.form.layout).unwrap_or_default();
        }
        (data, self.clipped(pixels, frame, plane))
    }

    /// Returns the elements of `SIZE` bytes, the channels one after another, each of `plane` elements.
    fn planes<const SIZE: usize>(&self, pixels: &[Pixel], frame: &Frame, plane: usize) -> Vec<u8> {
        let mut planes: Vec<[u8; SIZE]> = Vec::with_capacity(plane * CHANNELS);
        for (number, &channel) in self.order.iter().enumerate() {
            let elements = &self.elements[channel];
            let values: [[u8; SIZE]; 256] =
                std::array::from_fn(|value| elements[value].0.first_chunk().copied().unwrap_or([0; SIZE]));
            let padding = values[usize::from(frame.padding)];
            let mut padded = frame.before;
            for row in pixels.chunks(frame.width) {
                planes.resize(planes.len() + padded, padding);
                planes.extend(row.iter().map(|pixel| values[usize::from(pixel[channel])]));
                padded = frame.between;
            }
            let end = (number + 1) * plane;
            assert!(planes.len() <= end, "the frame is larger than the sample");
            planes.resize(end, padding);
        }
        if self.are_last {
            let pixel = |at: usize| (0..CHANNELS).map(move |number| number * plane + at);
            planes = (0..plane).flat_map(pixel).map(|at| planes[at]).collect();
        }
        planes.into_flattened()
    }

    /// Returns the number of elements that were out of range.
    fn clipped(&self, pixels: &[Pixel], frame: &Frame, plane: usize) -> u64 {
        let of_channel = |(channel, elements): (usize, &Vec<([u8; LARGEST], bool)>)| {
            if !elements.iter().any(|(_, is_clipped)| *is_clipped) {
                return 0;
            }
            let is_clipped = |pixel: &&Pixel| elements[usize::from(pixel[channel])].1;
            let around = if elements[usize::from(frame.padding)].1 {
                plane - pixels.len()
            } else {
                0
            };
            pixels.iter().filter(is_clipped).count() + around
        };
        self.elements.iter().enumerate().map(of_channel).sum::<usize>() as u64
    }
}
