//! OpenCV's `resize` with `INTER_AREA`, bit for bit as its x86-64 wheels compute it, for a part of the result. It averages areas
//! where both sides shrink, and falls back to its bilinear interpolation otherwise.
//!
//! Sums of products are multiplied and added separately: OpenCV's build for x86-64 does not fuse them, and Rust never does.

use regatta_jpeg::{Image, Pixel};

use super::{linear, region::Region};

/// Twice the largest `f32` whose neighbours are one apart: adding it rounds to an integer, ties to even.
const ROUNDING: f32 = 12_582_912.0;

/// Weighted pixels of the source that make one pixel of the result, in one direction.
#[derive(Debug, Clone, Copy)]
struct Weight {
    source: usize,
    weight: f32,
}

/// Returns `region` of the image resized to `width` x `height`, row by row.
pub(super) fn resize(image: &Image, width: usize, height: usize, region: Region) -> Vec<Pixel> {
    let inverse = (
        width as f64 / image.width as f64,
        height as f64 / image.height as f64,
    );
    let (x_scale, y_scale) = (1.0 / inverse.0, 1.0 / inverse.1);
    if x_scale < 1.0 || y_scale < 1.0 {
        return linear::resize(image, inverse, region);
    }
    let is_whole = |scale: f64| (scale - scale.round_ties_even()).abs() < f64::EPSILON;
    if is_whole(x_scale) && is_whole(y_scale) {
        return whole(
            image,
            x_scale.round_ties_even() as usize,
            y_scale.round_ties_even() as usize,
            region,
        );
    }
    fractional(image, x_scale, y_scale, region)
}

/// Returns the image with both sides halved, which must be even.
pub(crate) fn halved(image: &Image) -> Vec<Pixel> {
    let (left, top, width, height) = (0, 0, image.width / 2, image.height / 2);
    let region = Region {
        left,
        top,
        width,
        height,
    };
    whole(image, 2, 2, region)
}

/// Averages blocks of `x_scale` x `y_scale` pixels (`ResizeAreaFast_Invoker`).
fn whole(image: &Image, x_scale: usize, y_scale: usize, region: Region) -> Vec<Pixel> {
    let factor = 1.0 / (x_scale * y_scale) as f32;
    let mut result = Vec::with_capacity(region.width * region.height);
    for y in region.top..region.top + region.height {
        for x in region.left..region.left + region.width {
            let mut sum = [0_u32; 4];
            for row in y * y_scale..(y + 1) * y_scale {
                for pixel in &image.row(row)[x * x_scale..(x + 1) * x_scale] {
                    for (sum, value) in sum.iter_mut().zip(pixel) {
                        *sum += u32::from(*value);
                    }
                }
            }
            result.push(if (x_scale, y_scale) == (2, 2) {
                sum.map(|sum| ((sum + 2) >> 2) as u8)
            } else {
                sum.map(|sum| rounded(sum as f32 * factor))
            });
        }
    }
    result
}

/// Averages areas whose edges are inside pixels (`ResizeArea_Invoker`).
fn fractional(image: &Image, x_scale: f64, y_scale: f64, region: Region) -> Vec<Pixel> {
    let columns = table(image.width, x_scale, region.left, region.width);
    let rows = table(image.height, y_scale, region.top, region.height);
    let (mut line, mut line_of) = (vec![[0.0_f32; 4]; region.width], None);
    let mut sums = line.clone();
    let mut result = Vec::with_capacity(region.width * region.height);
    for row in &rows {
        sums.fill([0.0; 4]);
        for &Weight { source, weight } in row {
            // Neighbouring rows of the result share a row of the source.
            if line_of != Some(source) {
                average_line(image.row(source), &columns, &mut line);
                line_of = Some(source);
            }
            for (sum, value) in sums.iter_mut().zip(&line) {
                for (sum, value) in sum.iter_mut().zip(value) {
                    *sum += weight * value;
                }
            }
        }
        result.extend(sums.iter().map(|sum| sum.map(rounded)));
    }
    result
}

fn average_line(row: &[Pixel], columns: &[Vec<Weight>], line: &mut [[f32; 4]]) {
    for (place, weights) in line.iter_mut().zip(columns) {
        let mut sum = [0.0_f32; 4];
        for &Weight { source, weight } in weights {
            for (sum, value) in sum.iter_mut().zip(row[source]) {
                *sum += f32::from(value) * weight;
            }
        }
        *place = sum;
    }
}

/// Returns the weights of `count` pixels of the result from `first` on (`computeResizeAreaTab`).
fn table(source_len: usize, scale: f64, first: usize, count: usize) -> Vec<Vec<Weight>> {
    (first..first + count)
        .map(|position| {
            let begin = position as f64 * scale;
            let end = begin + scale;
            let cell = scale.min(source_len as f64 - begin);
            let last_whole = (end.floor() as usize).min(source_len - 1);
            let first_whole = (begin.ceil() as usize).min(last_whole);
            let mut weights = Vec::new();
            let before = first_whole as f64 - begin;
            if before > 1e-3 {
                weights.push(Weight {
                    source: first_whole - 1,
                    weight: (before / cell) as f32,
                });
            }
            weights.extend((first_whole..last_whole).map(|source| Weight {
                source,
                weight: (1.0 / cell) as f32,
            }));
            let after = end - last_whole as f64;
            if after > 1e-3 {
                weights.push(Weight {
                    source: last_whole,
                    weight: (after.min(1.0).min(cell) / cell) as f32,
                });
            }
            weights
        })
        .collect()
}

/// Rounds a value between 0 and 255, ties to even.
fn rounded(value: f32) -> u8 {
    (value + ROUNDING).to_bits() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_rounded_ties_to_even() {
        assert_eq!(
            [0.0, 0.5, 1.5, 2.499_999_8, 254.5, 255.0].map(rounded),
            [0, 0, 2, 2, 254, 255]
        );
    }
}
