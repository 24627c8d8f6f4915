//! Image formats besides JPEG, for benchmarks of one's own: the pixels that OpenCV's `imread` returns for a colour image. Transparency is
//! dropped, 16-bit values are cut to their upper byte, and grey becomes three equal channels.

mod bmp;
mod pixels;
mod png;
mod webp;

use regatta_jpeg::Image;

/// The error for an image that cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it is not a readable {format} image: {reason}")]
pub struct FormatError {
    format: &'static str,
    reason: String,
}

type Decoder = fn(&[u8]) -> Result<Image, String>;

/// Decodes an image by its first bytes. `None` if they are those of no format here.
pub(crate) fn decode(bytes: &[u8]) -> Option<Result<Image, FormatError>> {
    let (format, decoder): (&str, Decoder) = match bytes {
        [0x89, b'P', b'N', b'G', ..] => ("PNG", png::decode),
        [b'B', b'M', ..] => ("BMP", bmp::decode),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => ("WebP", webp::decode),
        [b'G', b'I', b'F', b'8', ..] => ("GIF", |_| {
            Err("GIF is not supported; hint: convert it to PNG".to_owned())
        }),
        _ => return None,
    };
    Some(decoder(bytes).map_err(|reason| FormatError { format, reason }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A BMP of 1 x 2 pixels, bottom-up: blue, then red.
    fn small_bmp() -> Vec<u8> {
        let mut bytes = b"BM".to_vec();
        bytes.extend(62_u32.to_le_bytes());
        bytes.extend([0; 4]);
        for number in [54_u32, 40, 1, 2] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend([1, 0, 24, 0]);
        bytes.extend([0; 24]);
        bytes.extend([255, 0, 0, 9, 0, 0, 255, 9]);
        bytes
    }

    #[test]
    fn images_are_recognised_by_their_first_bytes() {
        assert!(decode(b"\xff\xd8\xff").is_none());
        assert!(decode(b"").is_none());
        let found = decode(&small_bmp()).unwrap().unwrap();
        assert_eq!((found.width, found.height), (1, 2));
        assert_eq!(found.pixels, [[255, 0, 0, 0], [0, 0, 255, 0]]);
    }

    #[test]
    fn damaged_images_are_refused() {
        let whole = small_bmp();
        for end in 2..whole.len() - 1 {
            assert!(decode(&whole[..end]).unwrap().is_err(), "{end} bytes");
        }
        let mut large = whole.clone();
        large[18..22].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(decode(&large).unwrap().is_err());
        let mut compressed = whole;
        compressed[30] = 1;
        let error = decode(&compressed).unwrap().unwrap_err();
        assert_eq!(
            error.to_string(),
            "it is not a readable BMP image: 24 bits per pixel with compression 1 are not supported; hint: convert it to PNG"
        );
        for start in [&b"\x89PNG\r\n\x1a\n"[..], b"RIFF\x04\0\0\0WEBP"] {
            assert!(decode(start).unwrap().is_err());
        }
    }
}
