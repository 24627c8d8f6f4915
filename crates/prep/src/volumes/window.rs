//! Windows of a volume, as a network with sliding windows sees it. TensorRT calibrates with them, because it takes samples of one size only.

use regatta_types::benchmark::{Benchmark, SlidingWindows};

/// The windows of a benchmark's network.
#[derive(Debug)]
pub(super) struct CalibrationWindows<'a> {
    windows: &'a SlidingWindows,
    /// The voxels of a window along each dimension.
    window: [usize; 3],
    /// The bytes of a voxel.
    element: usize,
}

impl<'a> CalibrationWindows<'a> {
    /// Returns the windows of a benchmark in its form. `None` for a network that takes complete volumes.
    pub(super) fn of(benchmark: &'a Benchmark) -> Option<Self> {
        let model = &benchmark.model;
        match (&model.windows, &model.input_shape[..]) {
            (Some(windows), &[1, depth, height, width]) => Some(Self {
                windows,
                window: [depth, height, width],
                element: model.input_dtype.size(),
            }),
            _ => None,
        }
    }

    /// Calls `take` with each window of a volume. The last dimension is the fastest.
    pub(super) fn each<E>(
        &self,
        volume: &[u8],
        size: [usize; 3],
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut window = Vec::with_capacity(self.window.iter().product::<usize>() * self.element);
        let starts = |axis: usize| {
            let last = size[axis].saturating_sub(self.window[axis]);
            (0..=last).step_by(self.windows.stride[axis].max(1))
        };
        for depth in starts(0) {
            for row in starts(1) {
                for column in starts(2) {
                    window.clear();
                    self.cut(volume, size, [depth, row, column], &mut window);
                    take(&window)?;
                }
            }
        }
        Ok(())
    }

    fn cut(&self, volume: &[u8], [_, height, width]: [usize; 3], start: [usize; 3], window: &mut Vec<u8>) {
        let line = self.window[2] * self.element;
        for depth in start[0]..start[0] + self.window[0] {
            for row in start[1]..start[1] + self.window[1] {
                let begin = ((depth * height + row) * width + start[2]) * self.element;
                window.extend_from_slice(volume.get(begin..begin + line).unwrap_or_default());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_overlap_by_their_stride_and_the_last_dimension_is_the_fastest() {
        let windows = SlidingWindows {
            stride: [1, 2, 2],
            deviation: 0.125,
            classes: 3,
        };
        let cut = CalibrationWindows {
            windows: &windows,
            window: [2, 2, 2],
            element: 1,
        };
        let size = [2, 4, 6];
        let volume: Vec<u8> = (0..48).collect();
        let mut found = Vec::new();
        let taken: Result<(), ()> = cut.each(&volume, size, |window| {
            found.push(window.to_vec());
            Ok(())
        });
        assert_eq!((taken, found.len()), (Ok(()), 6));
        assert_eq!(found[0], [0, 1, 6, 7, 24, 25, 30, 31]);
        assert_eq!(found[1], [2, 3, 8, 9, 26, 27, 32, 33]);
        assert_eq!(found[3], [12, 13, 18, 19, 36, 37, 42, 43]);
        assert_eq!(cut.each(&volume, size, |_| Err(7)), Err(7));
    }
}
