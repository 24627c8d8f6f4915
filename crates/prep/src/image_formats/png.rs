//! PNG, with the crate `png`.

use std::io::Cursor;

use png::{Decoder, Limits, Transformations};
use regatta_jpeg::Image;

use super::pixels::{checked_size, pixels};

/// More than the pixels of the largest image take, in bytes.
const MAX_BYTES: usize = 1 << 31;

pub(super) fn decode(bytes: &[u8]) -> Result<Image, String> {
    let limits = Limits { bytes: MAX_BYTES };
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), limits);
    decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
    let mut reader = decoder.read_info().map_err(|error| error.to_string())?;
    let [width, height] = checked_size(reader.info().width, reader.info().height)?;
    let size = reader
        .output_buffer_size()
        .ok_or("its pixels do not fit into memory")?;
    let mut samples = vec![0; size];
    let frame = reader
        .next_frame(&mut samples)
        .map_err(|error| error.to_string())?;
    samples.truncate(frame.buffer_size());
    Ok(Image {
        width,
        height,
        pixels: pixels(&samples, frame.color_type.samples()),
    })
}
