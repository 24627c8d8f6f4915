//! Size changes of a volume, as the reference makes them: padded to a window with its own edge, cropped or padded so that windows at
//! every stride cover it.

/// A volume with its last dimension fastest.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Volume<T> {
    /// The voxels along each dimension.
    pub(crate) size: [usize; 3],
    pub(crate) voxels: Vec<T>,
}

/// How voxels outside of a volume are filled.
#[derive(Clone, Copy)]
enum Fill<T> {
    /// With the nearest voxel.
    Edge,
    Constant(T),
}

impl<T: Copy> Volume<T> {
    /// Returns the volume at least as large as a window, continued at its edges.
    pub(crate) fn at_least(self, window: [usize; 3]) -> Self {
        let missing = each(|axis| window[axis].saturating_sub(self.size[axis]));
        let before = missing.map(|missing| (missing / 2).cast_signed());
        let size = each(|axis| self.size[axis] + missing[axis]);
        self.moved(size, before, Fill::Edge)
    }

    /// Returns the volume with a multiple of the stride along each dimension: less than half a stride too much is cut off, and otherwise
    /// the rest is filled with a constant.
    pub(crate) fn fitted(self, window: [usize; 3], stride: [usize; 3], constant: T) -> Self {
        let surplus = each(|axis| {
            let rest = self.size[axis] % stride[axis];
            if rest < stride[axis] / 2 { rest } else { 0 }
        });
        let cut = each(|axis| self.size[axis] - surplus[axis]);
        let cropped = self.moved(
            cut,
            surplus.map(|surplus| -(surplus / 2).cast_signed()),
            Fill::Constant(constant),
        );
        let missing = each(|axis| {
            let rest = (stride[axis] - cut[axis] % stride[axis]) % stride[axis];
            if cut[axis] + rest >= window[axis] {
                rest
            } else {
                rest + stride[axis]
            }
        });
        let size = each(|axis| cut[axis] + missing[axis]);
        let before = missing.map(|missing| (missing / 2).cast_signed());
        cropped.moved(size, before, Fill::Constant(constant))
    }

    /// Returns a volume of `size`, in which this one begins at `before`, which is negative where voxels are cut off.
    fn moved(self, size: [usize; 3], before: [isize; 3], fill: Fill<T>) -> Self {
        if size == self.size && before == [0; 3] {
            return self;
        }
        let from = |axis: usize, position: usize| {
            let place = position.cast_signed() - before[axis];
            let last = self.size[axis].cast_signed() - 1;
            match fill {
                Fill::Edge => Ok(place.clamp(0, last).cast_unsigned()),
                Fill::Constant(_) if (0..=last).contains(&place) => Ok(place.cast_unsigned()),
                Fill::Constant(constant) => Err(constant),
            }
        };
        let columns: Vec<Result<usize, T>> = (0..size[2]).map(|column| from(2, column)).collect();
        let mut voxels = Vec::with_capacity(size.iter().product());
        for depth in 0..size[0] {
            for row in 0..size[1] {
                match (from(0, depth), from(1, row)) {
                    (Ok(depth), Ok(row)) => {
                        let line =
                            &self.voxels[(depth * self.size[1] + row) * self.size[2]..][..self.size[2]];
                        voxels.extend(
                            columns
                                .iter()
                                .map(|column| column.map_or_else(|fill| fill, |at| line[at])),
                        );
                    }
                    (Err(constant), _) | (_, Err(constant)) => {
                        voxels.extend(std::iter::repeat_n(constant, size[2]));
                    }
                }
            }
        }
        Self { size, voxels }
    }
}

fn each(of: impl Fn(usize) -> usize) -> [usize; 3] {
    [0, 1, 2].map(of)
}
