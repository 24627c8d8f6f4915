//! Calls the decoder in C, and returns its pixels as `imread` does.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    slice,
};

// Links libjpeg-turbo.
use turbojpeg_sys as _;

use crate::{
    exif,
    image::{Image, Pixel},
};

/// The largest number of pixels. They take 1 GiB, on every core at once. OpenCV reads four times as many.
const MAX_PIXELS: u64 = 1 << 28;
/// libjpeg's `JMSG_LENGTH_MAX`.
const MESSAGE_LEN: usize = 200;
const ENDED_EARLY: u32 = 1;
const DAMAGED: u32 = 2;
const INCOMPLETE: u32 = 4;

/// An image that libjpeg-turbo decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// The pixels, which are the same as `imread`'s even if the image is damaged.
    pub image: Image,
    /// What libjpeg-turbo found wrong with the data.
    pub damage: Option<Damage>,
}

/// Damage of an image that libjpeg-turbo decodes nevertheless. Pixels that it does not find are grey, or those of an earlier scan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The end marker is missing; all pixels are there.
    #[error("the image has no end marker")]
    NoEndMarker,
    /// The data ends before the image does.
    #[error("the image is truncated")]
    Truncated,
    /// The compressed data is damaged.
    #[error("the image is damaged (libjpeg-turbo: {0})")]
    Corrupt(String),
}

impl Damage {
    /// Returns whether the data ends before its end marker. OpenCV's `imdecode` refuses such images, `imread` does not.
    #[must_use]
    pub const fn ends_early(&self) -> bool {
        matches!(self, Self::NoEndMarker | Self::Truncated)
    }
}

/// The error for an image that cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JpegError {
    /// The data does not begin like a JPEG.
    #[error("it is not a JPEG: it begins with {0}")]
    NotJpeg(String),
    /// libjpeg-turbo cannot decode the image.
    #[error("libjpeg-turbo: {0}")]
    Refused(String),
    /// The image has too many pixels for the limit or the memory.
    #[error("it has {width} x {height} pixels; at most 2^28 are read, if memory allows")]
    TooLarge {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
}

/// The header as `decoder/decode.c` gives it.
#[repr(C)]
struct Header {
    width: u32,
    height: u32,
    components: u32,
    app1: *const u8,
    app1_length: usize,
}

type Allocate = unsafe extern "C" fn(context: *mut c_void, header: *const Header) -> *mut u8;

unsafe extern "C" {
    fn regatta_jpeg_decode(
        data: *const u8,
        length: usize,
        allocate: Allocate,
        context: *mut c_void,
        findings: *mut u32,
        message: *mut c_char,
    ) -> c_int;
}

/// The image while it is decoded.
#[derive(Default)]
struct Target {
    width: u32,
    height: u32,
    is_cmyk: bool,
    orientation: u16,
    pixels: Vec<Pixel>,
}

/// Decodes a JPEG to the pixels that `cv2.imread(path, cv2.IMREAD_COLOR)` returns, in the order red, green, blue.
///
/// # Errors
/// [`JpegError`] for data that `imread` does not decode either, and for images with too many pixels.
pub fn decode(data: &[u8]) -> Result<Decoded, JpegError> {
    if !data.starts_with(&[0xff, 0xd8, 0xff]) {
        let bytes: Vec<String> = data.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        let begin = if bytes.is_empty() {
            "nothing, its size is 0".to_owned()
        } else {
            bytes.join(" ")
        };
        return Err(JpegError::NotJpeg(begin));
    }
    let mut target = Target::default();
    let (mut findings, mut message) = (0, [0 as c_char; MESSAGE_LEN]);
    // SAFETY: the pointers are valid for the call. `allocate` gets `target`, does not unwind, and returns room for all pixels, which
    // `target` keeps. The message has libjpeg's largest length.
    let code = unsafe {
        regatta_jpeg_decode(
            data.as_ptr(),
            data.len(),
            allocate,
            (&raw mut target).cast(),
            &raw mut findings,
            message.as_mut_ptr(),
        )
    };
    let message = || {
        // SAFETY: the array is zeroed, and libjpeg ends its messages with a zero.
        let text = unsafe { CStr::from_ptr(message.as_ptr()) };
        text.to_string_lossy().into_owned()
    };
    let Target { width, height, .. } = target;
    match code {
        0 => Ok(Decoded {
            damage: damage(findings, message),
            image: finish(target),
        }),
        2 => Err(JpegError::TooLarge { width, height }),
        _ => Err(JpegError::Refused(message())),
    }
}

/// Returns the damage that the findings are. A progressive image may leave out bits on purpose.
fn damage(findings: u32, message: impl Fn() -> String) -> Option<Damage> {
    let is_found = |finding: u32| findings & finding != 0;
    if is_found(ENDED_EARLY) {
        let is_cut = is_found(DAMAGED) || is_found(INCOMPLETE);
        return Some(if is_cut {
            Damage::Truncated
        } else {
            Damage::NoEndMarker
        });
    }
    is_found(DAMAGED).then(|| Damage::Corrupt(message()))
}

/// Notes the header and returns the place of the pixels; null for an image that is too large.
unsafe extern "C" fn allocate(context: *mut c_void, header: *const Header) -> *mut u8 {
    // SAFETY: `decode` passes its target, and `decode.c` a header that is valid during this call.
    let (target, header) = unsafe { (&mut *context.cast::<Target>(), &*header) };
    (target.width, target.height) = (header.width, header.height);
    target.is_cmyk = header.components == 4;
    if u64::from(header.width) * u64::from(header.height) > MAX_PIXELS {
        return std::ptr::null_mut();
    }
    if !header.app1.is_null() {
        // SAFETY: `decode.c` takes both from one marker of libjpeg's list, which lives during this call.
        let app1 = unsafe { slice::from_raw_parts(header.app1, header.app1_length) };
        target.orientation = exif::orientation(app1);
    }
    let count = header.width as usize * header.height as usize;
    if target.pixels.try_reserve_exact(count).is_err() {
        return std::ptr::null_mut();
    }
    target.pixels.resize(count, [0; 4]);
    target.pixels.as_mut_ptr().cast()
}

fn finish(target: Target) -> Image {
    let mut pixels = target.pixels;
    if target.is_cmyk {
        pixels.iter_mut().for_each(|pixel| *pixel = from_cmyk(*pixel));
    }
    let image = Image {
        width: target.width as usize,
        height: target.height as usize,
        pixels,
    };
    image.oriented(target.orientation)
}

/// Converts CMYK to RGB as OpenCV's `icvCvt_CMYK2BGR_8u_C4C3R`, which takes all CMYK as Adobe's inverted form.
fn from_cmyk([c, m, y, k]: Pixel) -> Pixel {
    let k = u32::from(k);
    let channel = |ink: u8| (k - (((255 - u32::from(ink)) * k) >> 8)) as u8;
    [channel(c), channel(m), channel(y), 0]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn data_that_is_no_jpeg_is_refused() {
        assert_eq!(
            decode(b"\x89PNG\r\n").unwrap_err().to_string(),
            "it is not a JPEG: it begins with 89 50 4e 47"
        );
        assert_eq!(
            decode(b"").unwrap_err().to_string(),
            "it is not a JPEG: it begins with nothing, its size is 0"
        );
        assert!(matches!(decode(b"\xff\xd8\xff\xd9"), Err(JpegError::Refused(_))));
    }

    #[test]
    fn cmyk_is_converted_as_in_opencv() {
        assert_eq!(from_cmyk([255, 0, 128, 255]), [255, 1, 129, 0]);
        assert_eq!(from_cmyk([10, 20, 30, 0]), [0, 0, 0, 0]);
    }

    proptest! {
        /// Arbitrary data never panics.
        #[test]
        fn arbitrary_data_is_an_error(tail in prop::collection::vec(any::<u8>(), 0..400)) {
            let mut data = vec![0xff, 0xd8, 0xff];
            data.extend(tail);
            let _ = decode(&data);
        }
    }
}
