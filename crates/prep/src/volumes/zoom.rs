//! `scipy.ndimage.zoom` of a volume with order 1 or 0, mode `constant` and `grid_mode=False`, with the bytes of SciPy's wheel for x86-64:
//! the same grid, weights, and order of operations in 64-bit floats, without fused multiply-add.

/// One dimension of a volume and of its zoomed volume.
struct Axis {
    /// For each position in the zoomed volume, the place in the original; `None` outside of it.
    places: Vec<Option<Place>>,
}

/// Two neighbouring voxels with their weights.
#[derive(Clone, Copy)]
struct Place {
    voxels: [usize; 2],
    weights: [f64; 2],
    /// The nearer voxel.
    nearest: usize,
}

impl Axis {
    fn new(from: usize, to: usize) -> Self {
        // A single voxel has no distance to another.
        let step = if to > 1 {
            (from as f64 - 1.0) / (to as f64 - 1.0)
        } else {
            1.0
        };
        let places = (0..to).map(|position| {
            let at = position as f64 * step;
            // The product can be larger than the last voxel by a rounding. SciPy then takes the constant.
            if at > from as f64 - 1.0 {
                return None;
            }
            let begin = at.floor();
            let lower = 1.0 - (at - begin);
            let first = begin as usize;
            // Beyond the end, the volume is mirrored. The weight is zero there.
            let second = match first + 1 {
                next if next < from => next,
                _ => from.saturating_sub(2),
            };
            Some(Place {
                voxels: [first, second],
                weights: [lower, 1.0 - lower],
                nearest: ((at + 0.5).floor() as usize).min(from - 1),
            })
        });
        Self {
            places: places.collect(),
        }
    }
}

/// Returns the size after a zoom by these factors: rounded to the nearest number, ties to even.
pub(crate) fn zoomed_size(size: [usize; 3], factors: [f64; 3]) -> [usize; 3] {
    [0, 1, 2].map(|axis| (size[axis] as f64 * factors[axis]).round_ties_even() as usize)
}

/// Returns a volume of 32-bit floats at another size, linearly interpolated. Positions outside are `outside`.
pub(crate) fn zoom_linear(values: &[f32], from: [usize; 3], to: [usize; 3], outside: f32) -> Vec<f32> {
    let [depths, rows, columns] = [0, 1, 2].map(|axis| Axis::new(from[axis], to[axis]).places);
    let mut zoomed = Vec::with_capacity(to.iter().product());
    let line = |depth: usize, row: usize| &values[(depth * from[1] + row) * from[2]..][..from[2]];
    for depth in &depths {
        for row in &rows {
            let (Some(depth), Some(row)) = (depth, row) else {
                zoomed.extend(std::iter::repeat_n(outside, to[2]));
                continue;
            };
            let [[a, b], [c, d]] = depth.voxels.map(|z| row.voxels.map(|y| line(z, y)));
            let lines = [
                (a, depth.weights[0], row.weights[0]),
                (b, depth.weights[0], row.weights[1]),
                (c, depth.weights[1], row.weights[0]),
                (d, depth.weights[1], row.weights[1]),
            ];
            zoomed.extend(columns.iter().map(|column| {
                column.as_ref().map_or(outside, |column| {
                    let mut sum = 0.0;
                    for (line, z, y) in lines {
                        for (voxel, x) in column.voxels.into_iter().zip(column.weights) {
                            sum += f64::from(line[voxel]) * z * y * x;
                        }
                    }
                    sum as f32
                })
            }));
        }
    }
    zoomed
}

/// Returns a volume of classes at another size, each the class of the nearest voxel. Positions outside are `outside`.
pub(crate) fn zoom_nearest(classes: &[u8], from: [usize; 3], to: [usize; 3], outside: u8) -> Vec<u8> {
    let [depths, rows, columns] = [0, 1, 2].map(|axis| Axis::new(from[axis], to[axis]).places);
    let mut zoomed = Vec::with_capacity(to.iter().product());
    for depth in &depths {
        for row in &rows {
            let (Some(depth), Some(row)) = (depth, row) else {
                zoomed.extend(std::iter::repeat_n(outside, to[2]));
                continue;
            };
            let line = &classes[(depth.nearest * from[1] + row.nearest) * from[2]..][..from[2]];
            let class = |column: &Option<Place>| column.map_or(outside, |column| line[column.nearest]);
            zoomed.extend(columns.iter().map(class));
        }
    }
    zoomed
}
