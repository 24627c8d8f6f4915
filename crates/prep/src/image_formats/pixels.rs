//! The size and the pixels of an image, which all formats have. Decodes nothing.

use regatta_jpeg::Pixel;

/// The largest number of pixels, as for a JPEG.
const MAX_PIXELS: u64 = 1 << 28;

/// Checks the size of an image before memory is reserved for it.
pub(super) fn checked_size(width: u32, height: u32) -> Result<[usize; 2], String> {
    if width == 0 || height == 0 || u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(format!(
            "it has {width} x {height} pixels; 1 to 2^28 are read, if memory allows"
        ));
    }
    let side = |side: u32| usize::try_from(side).map_err(|error| error.to_string());
    Ok([side(width)?, side(height)?])
}

/// Returns the pixels of samples with `channels` values each, of which the first or the first three are colours.
pub(super) fn pixels(samples: &[u8], channels: usize) -> Vec<Pixel> {
    let pixel = |values: &[u8]| match values {
        [grey] | [grey, _] => [*grey, *grey, *grey, 0],
        [red, green, blue, ..] => [*red, *green, *blue, 0],
        [] => [0; 4],
    };
    samples.chunks_exact(channels.max(1)).map(pixel).collect()
}
