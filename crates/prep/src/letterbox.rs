//! Where a resized image is in its sample: as large as fits, and centred. Resizes nothing.

/// The place of a resized image in a sample, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Letterbox {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) left: usize,
    pub(crate) top: usize,
}

impl Letterbox {
    /// Fits an image of `width` x `height` pixels into a sample, with the rounding of Python's `round`. `None` when a side would vanish.
    pub(crate) fn fit(
        [width, height]: [usize; 2],
        [sample_width, sample_height]: [usize; 2],
    ) -> Option<Self> {
        let scale = (sample_height as f64 / height as f64).min(sample_width as f64 / width as f64);
        let resized = |side: usize| (side as f64 * scale).round_ties_even() as usize;
        let (width, height) = (resized(width), resized(height));
        // Of an odd number of pixels, the side before gets less.
        let before = |sample: usize, side: usize| (sample.saturating_sub(side)) / 2;
        (width > 0 && height > 0).then_some(Self {
            width,
            height,
            left: before(sample_width, width),
            top: before(sample_height, height),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_centred_and_as_large_as_fits() {
        let fit = |width, height| {
            let Letterbox {
                width,
                height,
                left,
                top,
            } = Letterbox::fit([width, height], [640, 640])?;
            Some([width, height, left, top])
        };
        assert_eq!(fit(640, 480), Some([640, 480, 0, 80]));
        assert_eq!(fit(333, 500), Some([426, 640, 107, 0]));
        assert_eq!(fit(640, 427), Some([640, 427, 0, 106]));
        assert_eq!(fit(8000, 300), Some([640, 24, 0, 308]));
        assert_eq!(fit(1, 1), Some([640, 640, 0, 0]));
        assert_eq!(fit(8000, 1), None);
    }
}
