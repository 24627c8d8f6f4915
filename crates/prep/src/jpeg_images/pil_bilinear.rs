//! PIL's `resize` with `BILINEAR`, bit for bit: a triangle as wide as the pixels that make one of the result, first along rows, then along
//! columns, with 22 bits per weight and bytes in between.

use regatta_jpeg::{Image, Pixel};

const WEIGHT_BITS: u32 = 22;

/// The pixels of the source that make a pixel of the result, in one direction.
struct Weights {
    first: usize,
    weights: Vec<i32>,
}

/// Returns the image resized to `width` x `height`, row by row.
pub(super) fn resize(image: &Image, width: usize, height: usize) -> Vec<Pixel> {
    let narrowed: Vec<Pixel> = if width == image.width {
        image.pixels.clone()
    } else {
        let weights = weights(image.width, width);
        let rows = image.pixels.chunks_exact(image.width);
        rows.flat_map(|row| weights.iter().map(|part| blend(part, |at| row[at])))
            .collect()
    };
    if height == image.height {
        return narrowed;
    }
    let mut result = Vec::with_capacity(width * height);
    for part in weights(image.height, height) {
        result.extend((0..width).map(|column| blend(&part, |at| narrowed[at * width + column])));
    }
    result
}

fn blend(part: &Weights, pixel: impl Fn(usize) -> Pixel) -> Pixel {
    let mut sums = [1 << (WEIGHT_BITS - 1); 4];
    for (offset, weight) in part.weights.iter().enumerate() {
        for (sum, value) in sums.iter_mut().zip(pixel(part.first + offset)) {
            *sum += i32::from(value) * weight;
        }
    }
    sums.map(|sum: i32| (sum >> WEIGHT_BITS).clamp(0, 255) as u8)
}

/// Returns the weights for each position of a side, as `precompute_coeffs` and `normalize_coeffs_8bpc` of PIL.
fn weights(source: usize, target: usize) -> Vec<Weights> {
    let scale = source as f64 / target as f64;
    let support = scale.max(1.0);
    let of_position = |position: usize| {
        let centre = (position as f64 + 0.5) * scale;
        // Casts cut off, and numbers below zero become zero.
        let first = (centre - support + 0.5) as usize;
        let end = ((centre + support + 0.5) as usize).min(source);
        let weight = |at: usize| (1.0 - ((at as f64 - centre + 0.5) * (1.0 / support)).abs()).max(0.0);
        let weights: Vec<f64> = (first..end).map(weight).collect();
        let sum: f64 = weights.iter().sum();
        let whole = |weight: f64| (0.5 + weight / sum * f64::from(1 << WEIGHT_BITS)) as i32;
        Weights {
            first,
            weights: weights.into_iter().map(whole).collect(),
        }
    };
    (0..target).map(of_position).collect()
}
