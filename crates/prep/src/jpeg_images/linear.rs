//! OpenCV's bilinear interpolation of bytes, as `resize` with `INTER_AREA` uses it when a side grows: 11 bits per weight, and the
//! positions of areas instead of pixel centres.

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
    let columns: Vec<Neighbours> = (region.left..region.left + region.width)
        .map(|column| neighbours(column, factors.0, image.width))
        .collect();
    let line = |row: usize| -> Vec<[i32; 4]> {
        let row = image.row(row);
        let blend = |column: &Neighbours| {
            let [left, right] = column.positions.map(|position| row[position]);
            std::array::from_fn(|channel| {
                i32::from(left[channel]) * column.weights[0] + i32::from(right[channel]) * column.weights[1]
            })
        };
        columns.iter().map(blend).collect()
    };
    let mut result = Vec::with_capacity(region.width * region.height);
    let (mut lines, mut lines_of) = ([Vec::new(), Vec::new()], None);
    for row in region.top..region.top + region.height {
        let Neighbours { positions, weights } = neighbours(row, factors.1, image.height);
        if lines_of != Some(positions) {
            lines = positions.map(line);
            lines_of = Some(positions);
        }
        result.extend(lines[0].iter().zip(&lines[1]).map(|(upper, lower)| -> Pixel {
            std::array::from_fn(|channel| {
                // As OpenCV: each product loses its low bits before the sum.
                let part = |value: i32, weight: i32| (weight * (value >> 4)) >> 16;
                ((part(upper[channel], weights[0]) + part(lower[channel], weights[1]) + 2) >> 2) as u8
            })
        }));
    }
    result
}

/// Returns the neighbours of a position in the result.
fn neighbours(position: usize, factor: f64, source_len: usize) -> Neighbours {
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
    let unit = (1 << WEIGHT_BITS) as f32;
    Neighbours {
        positions: [source, (source + 1).min(last)],
        weights: [1.0 - fraction, fraction].map(|weight| (weight * unit).round_ties_even() as i32),
    }
}
