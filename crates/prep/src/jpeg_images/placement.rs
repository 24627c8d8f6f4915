//! How an image of another size gets the width and height of a sample: cut out, padded, or stretched. Normalises nothing.

use regatta_jpeg::{Image, Pixel};
use regatta_types::benchmark::{ImageFit, ImageResize, JpegImages};

use super::{area, elements::Frame, linear, pil_bilinear, region::Region};
use crate::letterbox::Letterbox;

/// The most pixels of a resized image, as for one that is read.
const MAX_PIXELS: usize = 1 << 28;

/// Width and height of samples, and how images get them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placement {
    width: usize,
    height: usize,
    /// The shorter side after resizing; for `crop` only.
    short_side: usize,
    fit: ImageFit,
    resize: ImageResize,
    padding: u8,
}

impl Placement {
    /// # Errors
    /// Returns why samples of the size cannot be made.
    pub(super) fn new(kind: &JpegImages, [height, width]: [usize; 2]) -> Result<Self, String> {
        let short_side = match (kind.fit, kind.short_side) {
            (ImageFit::Crop, Some(side)) if height.max(width) <= side => side,
            (ImageFit::Crop, Some(side)) => {
                return Err(format!(
                    "{height} x {width} pixels of one input cannot be cropped from a short side of {side}"
                ));
            }
            (ImageFit::Crop, None) => {
                return Err("the fit `crop` needs `short_side`, the shorter side after resizing".to_owned());
            }
            (_, Some(_)) => return Err("`short_side` is for the fit `crop` only".to_owned()),
            (_, None) => 0,
        };
        if kind.padding != 0 && kind.fit != ImageFit::Letterbox {
            return Err("`padding` is for the fit `letterbox` only".to_owned());
        }
        Ok(Self {
            width,
            height,
            short_side,
            fit: kind.fit,
            resize: kind.resize,
            padding: kind.padding,
        })
    }

    /// Returns the pixels of a sample and the frame around them. `None` for an image so thin that a side would vanish, or the other one become
    /// too long.
    pub(super) fn pixels(&self, image: &Image) -> Option<(Vec<Pixel>, Frame)> {
        let mut frame = Frame {
            width: self.width,
            before: 0,
            between: 0,
            padding: self.padding,
        };
        let pixels = match self.fit {
            ImageFit::Crop => self.cropped(image)?,
            ImageFit::Stretch => self.resized(image, self.width, self.height),
            ImageFit::Letterbox => {
                let place = Letterbox::fit([image.width, image.height], [self.width, self.height])?;
                frame.width = place.width;
                frame.before = place.top * self.width + place.left;
                frame.between = self.width - place.width;
                self.resized(image, place.width, place.height)
            }
        };
        Some((pixels, frame))
    }

    fn cropped(&self, image: &Image) -> Option<Vec<Pixel>> {
        let (width, height) = self.short_sized(image);
        // Only areas are computed for the part that is cut out.
        if self.resize != ImageResize::Area
            && width.checked_mul(height).is_none_or(|pixels| pixels > MAX_PIXELS)
        {
            return None;
        }
        let (wide, high) = (width - self.width, height - self.height);
        let [left, top] = match self.resize {
            // torchvision rounds halves to even, as Python does.
            ImageResize::PilBilinear => {
                [wide, high].map(|rest| (rest as f64 / 2.0).round_ties_even() as usize)
            }
            ImageResize::Area | ImageResize::OpencvLinear => [wide / 2, high / 2],
        };
        if self.resize == ImageResize::Area {
            let region = Region {
                left,
                top,
                width: self.width,
                height: self.height,
            };
            return Some(area::resize(image, width, height, region));
        }
        let resized = self.resized(image, width, height);
        let rows = resized.chunks_exact(width).skip(top).take(self.height);
        let cut = rows.flat_map(|row| &row[left..left + self.width]).copied();
        Some(cut.collect())
    }

    /// Returns width and height after resizing, computed as the reference and torchvision do: a quotient of doubles, cut off.
    fn short_sized(&self, image: &Image) -> (usize, usize) {
        let short = self.short_side;
        let long = |long: usize, short_now: usize| ((short * long) as f64 / short_now as f64) as usize;
        if image.height > image.width {
            (short, long(image.height, image.width))
        } else {
            (long(image.width, image.height), short)
        }
    }

    fn resized(&self, image: &Image, width: usize, height: usize) -> Vec<Pixel> {
        match self.resize {
            _ if (image.width, image.height) == (width, height) => image.pixels.clone(),
            ImageResize::Area => {
                let (left, top) = (0, 0);
                area::resize(
                    image,
                    width,
                    height,
                    Region {
                        left,
                        top,
                        width,
                        height,
                    },
                )
            }
            ImageResize::OpencvLinear if (image.width, image.height) == (2 * width, 2 * height) => {
                area::halved(image)
            }
            ImageResize::OpencvLinear => linear::resize_centred(image, width, height),
            ImageResize::PilBilinear => pil_bilinear::resize(image, width, height),
        }
    }
}
