//! JPEG decoding with the pixels of OpenCV's `imread`: libjpeg-turbo with OpenCV's settings, OpenCV's conversion of CMYK, and the
//! EXIF orientation. For preprocessing on the workstation; the agent does not contain it.
//!
//! The crate opens no file and knows no other image format. Unlike `imread`, it says which images are damaged.

mod decode;
mod exif;
mod image;

pub use decode::{Damage, Decoded, JpegError, decode};
pub use image::{Image, Pixel};
