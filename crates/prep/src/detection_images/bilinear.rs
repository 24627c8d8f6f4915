//! Bilinear resizing in 32-bit floats, with the values of OpenCV's `resize(INTER_LINEAR)` in its wheel for x86-64 processors with FMA.
//! There, images are resized by Intel's IPP, but those of one pixel's width or height by OpenCV's own code.

use multiversion::multiversion;
use regatta_jpeg::{Image, Pixel};

const CHANNELS: usize = 3;

/// For a resized position: the two source positions and the weight of the second.
#[derive(Debug, Clone, Copy)]
struct Tap {
    first: usize,
    second: usize,
    weight: f32,
}

/// Normalises resized values, which are between 0 and 255: `(value / divisor - mean) / deviation`.
#[derive(Debug)]
pub(super) struct Normalisation {
    /// The number by which values are divided first.
    pub(super) divisor: f32,
    /// Mean and standard deviation of each channel.
    pub(super) channels: [(f32, f32); CHANNELS],
}

/// Resizes an image to `width` x `height` pixels and normalises the values. Returns the channels one after another, as little-endian 32-bit
/// floats.
pub(super) fn resize(image: &Image, width: usize, height: usize, normalisation: &Normalisation) -> Vec<u8> {
    if image.width > 1 && image.height > 1 {
        let columns = double_taps(image.width, width);
        let rows = double_taps(image.height, height);
        return interpolate_fused(image, &columns, &rows, normalisation);
    }
    let columns = single_taps(image.width, width, true);
    let rows = single_taps(image.height, height, false);
    interpolate(image, &columns, &rows, normalisation, |a, b, weight| {
        a * (1.0 - weight) + b * weight
    })
}

/// Returns the taps of IPP: positions in 64 bits, and no weight beyond the edges.
fn double_taps(source: usize, target: usize) -> Vec<Tap> {
    let scale = source as f64 / target as f64;
    let tap = |place: usize| {
        let position = (place as f64 + 0.5) * scale - 0.5;
        let first = position.floor();
        within(first, (position - first) as f32, source)
    };
    (0..target).map(tap).collect()
}

/// Returns the taps of OpenCV's own code: positions in 32 bits. Rows keep their weights beyond the edges, where both are the same row.
fn single_taps(source: usize, target: usize, are_columns: bool) -> Vec<Tap> {
    let scale = 1.0 / (target as f64 / source as f64);
    let tap = |place: usize| {
        let position = ((place as f64 + 0.5) * scale - 0.5) as f32;
        let first = position.floor();
        let weight = position - first;
        let inside = within(f64::from(first), weight, source);
        if are_columns {
            return inside;
        }
        let clip = |row: f32| (row.max(0.0) as usize).min(source - 1);
        Tap {
            first: clip(first),
            second: clip(first + 1.0),
            weight,
        }
    };
    (0..target).map(tap).collect()
}

fn within(first: f64, weight: f32, source: usize) -> Tap {
    let last = source - 1;
    let edge = |at: usize| Tap {
        first: at,
        second: at,
        weight: 0.0,
    };
    if first < 0.0 {
        return edge(0);
    }
    let first = first as usize;
    if first >= last {
        return edge(last);
    }
    Tap {
        first,
        second: first + 1,
        weight,
    }
}

/// Interpolates with fused multiplications. Without the processor's instruction, each would be a call.
#[multiversion(targets("x86_64+avx2+fma"))]
fn interpolate_fused(image: &Image, columns: &[Tap], rows: &[Tap], normalisation: &Normalisation) -> Vec<u8> {
    // One rounding, as the instruction for both operations has.
    interpolate(image, columns, rows, normalisation, |a, b, weight| {
        (b - a).mul_add(weight, a)
    })
}

#[inline(always)]
fn interpolate(
    image: &Image,
    columns: &[Tap],
    rows: &[Tap],
    normalisation: &Normalisation,
    mix: impl Fn(f32, f32, f32) -> f32,
) -> Vec<u8> {
    let (width, plane) = (columns.len(), columns.len() * rows.len());
    let mut target = vec![0; CHANNELS * plane * size_of::<f32>()];
    let (places, _) = target.as_chunks_mut();
    // Two source rows, resized to the width: a resized row often needs those of the row before.
    let mut mixed = vec![[0.0; 4]; width];
    let mut cached = [(); 2].map(|()| (usize::MAX, vec![0.0; CHANNELS * width]));
    for (place, row) in rows.iter().enumerate() {
        if cached[1].0 == row.first || cached[0].0 == row.second {
            cached.swap(0, 1);
        }
        for ((number, values), needed) in cached.iter_mut().zip([row.first, row.second]) {
            if *number != needed {
                *number = needed;
                resize_row(image.row(needed), columns, &mix, &mut mixed, values);
            }
        }
        let [(_, first), (_, second)] = &cached;
        for (channel, (mean, deviation)) in normalisation.channels.into_iter().enumerate() {
            let own = channel * width..(channel + 1) * width;
            let into = &mut places[channel * plane + place * width..][..width];
            for ((value, a), b) in into.iter_mut().zip(&first[own.clone()]).zip(&second[own]) {
                let resized = mix(*a, *b, row.weight);
                *value = ((resized / normalisation.divisor - mean) / deviation).to_le_bytes();
            }
        }
    }
    target
}

/// Resizes a row to the width of `columns`, the channels one after another. `mixed` has space for the pixels of the resized row.
#[inline(always)]
fn resize_row(
    pixels: &[Pixel],
    columns: &[Tap],
    mix: impl Fn(f32, f32, f32) -> f32,
    mixed: &mut [[f32; 4]],
    values: &mut [f32],
) {
    // The fourth byte of a pixel is computed as well: all four fit one register.
    for (tap, mixed) in columns.iter().zip(&mut *mixed) {
        let (first, second) = (pixels[tap.first], pixels[tap.second]);
        *mixed = std::array::from_fn(|at| mix(f32::from(first[at]), f32::from(second[at]), tap.weight));
    }
    let (red, others) = values.split_at_mut(columns.len());
    let (green, blue) = others.split_at_mut(columns.len());
    for (((pixel, red), green), blue) in mixed.iter().zip(red).zip(green).zip(blue) {
        [*red, *green, *blue, _] = *pixel;
    }
}
