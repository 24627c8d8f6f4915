//! BMP without compression, as programs write it: 24 or 32 bits per pixel, or up to 8 with a palette.

use regatta_jpeg::{Image, Pixel};

use super::pixels::checked_size;

/// Bytes before the header that describes the pixels.
const FILE_HEADER: usize = 14;
/// `BI_RGB` and `BI_BITFIELDS`.
const PLAIN: u32 = 0;
const MASKS: u32 = 3;

pub(super) fn decode(bytes: &[u8]) -> Result<Image, String> {
    let header = Header::read(bytes).ok_or("its header is incomplete")?;
    let bits = usize::from(header.bits);
    let is_plain = header.compression == PLAIN && matches!(bits, 1 | 4 | 8 | 24 | 32);
    let has_usual_masks = header.compression == MASKS && bits == 32 && header.has_usual_masks(bytes);
    if !is_plain && !has_usual_masks {
        return Err(format!(
            "{bits} bits per pixel with compression {} are not supported; hint: convert it to PNG",
            header.compression
        ));
    }
    let [width, height] = checked_size(header.width, header.height.unsigned_abs())?;
    let palette = header.palette(bytes).ok_or("its palette is incomplete")?;
    // Lines begin at multiples of 4 bytes.
    let line = (width * bits).div_ceil(32) * 4;
    let used = (width * bits).div_ceil(8);
    let data = bytes
        .get(header.pixels..)
        .filter(|data| data.len() >= line * (height - 1) + used)
        .ok_or("it is truncated")?;
    let mut pixels = Vec::with_capacity(width * height);
    for row in 0..height {
        // Usually the last line comes first.
        let stored = if header.height < 0 { row } else { height - 1 - row };
        let line = &data[stored * line..][..used];
        match bits {
            24 | 32 => pixels.extend(line.chunks_exact(bits / 8).map(colour)),
            _ => {
                for at in 0..width {
                    let shift = 8 - bits - (at * bits) % 8;
                    let number = usize::from(line[at * bits / 8] >> shift) & ((1 << bits) - 1);
                    let colour = palette
                        .get(number)
                        .ok_or("a pixel has no colour in the palette")?;
                    pixels.push(*colour);
                }
            }
        }
    }
    Ok(Image {
        width,
        height,
        pixels,
    })
}

/// Returns the pixel of blue, green and red.
fn colour(values: &[u8]) -> Pixel {
    match values {
        [blue, green, red, ..] => [*red, *green, *blue, 0],
        _ => [0; 4],
    }
}

struct Header {
    /// The position of the pixels in the file.
    pixels: usize,
    size: usize,
    width: u32,
    /// Negative if the first line comes first.
    height: i32,
    bits: u16,
    compression: u32,
    colours: u32,
}

impl Header {
    fn read(bytes: &[u8]) -> Option<Self> {
        let size = usize::try_from(number(bytes, FILE_HEADER)?).ok()?;
        if size < 40 {
            return None;
        }
        let field = |at: usize| number(bytes, FILE_HEADER + at);
        Some(Self {
            pixels: usize::try_from(number(bytes, 10)?).ok()?,
            size,
            width: field(4)?,
            height: field(8)?.cast_signed(),
            bits: u16::try_from(field(12)? >> 16).ok()?,
            compression: field(16)?,
            colours: field(32)?,
        })
    }

    /// Returns whether the masks are those of pixels without masks.
    fn has_usual_masks(&self, bytes: &[u8]) -> bool {
        let masks = [0, 4, 8].map(|at| number(bytes, FILE_HEADER + 40 + at));
        masks == [Some(0x00ff_0000), Some(0x0000_ff00), Some(0x0000_00ff)]
    }

    fn palette(&self, bytes: &[u8]) -> Option<Vec<Pixel>> {
        if self.bits > 8 {
            return Some(Vec::new());
        }
        let most = 1 << self.bits;
        let count = match usize::try_from(self.colours).ok()? {
            0 => most,
            count => count.min(most),
        };
        let colours = bytes.get(FILE_HEADER + self.size..)?.get(..4 * count)?;
        Some(colours.chunks_exact(4).map(colour).collect())
    }
}

/// Returns the 32-bit number at a position.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}
