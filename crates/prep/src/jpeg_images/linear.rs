//! OpenCV's bilinear interpolation of bytes, with 11 bits per weight: as `resize` with `INTER_AREA` uses it when a side grows, with the
//! positions of areas, and as `INTER_LINEAR` does, with those of pixel centres.

use multiversion::multiversion;
use regatta_jpeg::{Image, Pixel};

use super::region::Region;

const WEIGHT_BITS: u32 = 11;

/// Two neighbouring pixels of the source with their weights, in one direction.
struct Neighbours {
    positions: [usize; 2],
    weights: [i32; 2],
}

/// Returns `region` of the image whose sides are multiplied by `factors`, row by row.
pub(super) fn resize(image: &Image, factors: (f64, f64), region: Region) -> Vec<Pixel> {
    let columns = (region.left..region.left + region.width).map(|at| of_area(at, factors.0, image.width));
    let rows = (region.top..region.top + region.height).map(|at| of_area(at, factors.1, image.height));
    blend(image, &columns.collect::<Vec<_>>(), &rows.collect::<Vec<_>>())
}

/// Returns the image resized to `width` x `height`, row by row, with the bytes of `INTER_LINEAR`. Where both sides are halved, OpenCV
/// averages areas instead, and so must the caller.
pub(crate) fn resize_centred(image: &Image, width: usize, height: usize) -> Vec<Pixel> {
    let scale = |source: usize, target: usize| 1.0 / (target as f64 / source as f64);
    let (x_scale, y_scale) = (scale(image.width, width), scale(image.height, height));
    let columns = (0..width).map(|at| of_centre(at, x_scale, image.width, true));
    let rows = (0..height).map(|at| of_centre(at, y_scale, image.height, false));
    blend(image, &columns.collect::<Vec<_>>(), &rows.collect::<Vec<_>>())
}

#[multiversion(targets("x86_64+avx2+fma"))]
fn blend(image: &Image, columns: &[Neighbours], rows: &[Neighbours]) -> Vec<Pixel> {
    let mut result = Vec::with_capacity(columns.len() * rows.len());
    // Two lines of the source: a row often needs one of the row before.
    let mut cached: [(usize, Vec<[i32; 4]>); 2] = [(usize::MAX, Vec::new()), (usize::MAX, Vec::new())];
    for Neighbours { positions, weights } in rows {
        if cached[1].0 == positions[0] || cached[0].0 == positions[1] {
            cached.swap(0, 1);
        }
        for ((number, line), needed) in cached.iter_mut().zip(*positions) {
            if *number != needed {
                *number = needed;
                blend_line(image.row(needed), columns, line);
            }
        }
        let [(_, upper), (_, lower)] = &cached;
        result.extend(upper.iter().zip(lower).map(|(upper, lower)| -> Pixel {
            std::array::from_fn(|channel| {
                // As OpenCV: each product loses its low bits before the sum.
                let part = |value: i32, weight: i32| (weight * (value >> 4)) >> 16;
                ((part(upper[channel], weights[0]) + part(lower[channel], weights[1]) + 2) >> 2) as u8
            })
        }));
    }
    result
}

#[inline(always)]
fn blend_line(row: &[Pixel], columns: &[Neighbours], line: &mut Vec<[i32; 4]>) {
    line.clear();
    line.extend(columns.iter().map(|column| -> [i32; 4] {
        let [left, right] = column.positions.map(|position| row[position]);
        std::array::from_fn(|channel| {
            i32::from(left[channel]) * column.weights[0] + i32::from(right[channel]) * column.weights[1]
        })
    }));
}

/// Returns the neighbours of a position in the result, by areas.
fn of_area(position: usize, factor: f64, source_len: usize) -> Neighbours {
    let scale = 1.0 / factor;
    let source = (position as f64 * scale).floor();
    let mut fraction = ((position + 1) as f64 - (source + 1.0) * factor) as f32;
    fraction = if fraction <= 0.0 {
        0.0
    } else {
        fraction - fraction.floor()
    };
    let mut source = source as usize;
    let last = source_len - 1;
    if source >= last {
        (source, fraction) = (last, 0.0);
    }
    Neighbours {
        positions: [source, (source + 1).min(last)],
        weights: weights(fraction),
    }
}

/// Returns the neighbours of a position in the result, by centres of pixels. Rows keep their weights beyond the edges, where both
/// neighbours are the same.
fn of_centre(position: usize, scale: f64, source_len: usize, is_column: bool) -> Neighbours {
    let source = ((position as f64 + 0.5) * scale - 0.5) as f32;
    let (first, last) = (source.floor(), source_len - 1);
    let is_beyond = first < 0.0 || first >= last as f32;
    let fraction = if is_column && is_beyond {
        0.0
    } else {
        source - first
    };
    let clipped = |at: f32| (at.max(0.0) as usize).min(last);
    Neighbours {
        positions: [clipped(first), clipped(first + 1.0)],
        weights: weights(fraction),
    }
}

/// Returns the weights of two neighbours as integers.
fn weights(fraction: f32) -> [i32; 2] {
    let unit = (1 << WEIGHT_BITS) as f32;
    [1.0 - fraction, fraction].map(|weight| (weight * unit).round_ties_even() as i32)
}
