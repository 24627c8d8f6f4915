//! WebP, with the crate `image-webp`.

use std::io::Cursor;

use image_webp::WebPDecoder;
use regatta_jpeg::Image;

use super::pixels::{checked_size, pixels};

pub(super) fn decode(bytes: &[u8]) -> Result<Image, String> {
    let mut decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(|error| error.to_string())?;
    if decoder.is_animated() {
        return Err("it is animated".to_owned());
    }
    let (width, height) = decoder.dimensions();
    let [width, height] = checked_size(width, height)?;
    let channels = if decoder.has_alpha() { 4 } else { 3 };
    let mut samples = vec![0; width * height * channels];
    decoder
        .read_image(&mut samples)
        .map_err(|error| error.to_string())?;
    Ok(Image {
        width,
        height,
        pixels: pixels(&samples, channels),
    })
}
