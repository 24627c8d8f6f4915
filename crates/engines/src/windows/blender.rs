//! Adds the scores of overlapping windows with their weights, and divides by the sum of weights, in 32-bit floats and in the order of the
//! reference. Planes of a volume that no further window covers become classes at once, so that memory is that of the planes of a window.

use half::f16;
use regatta_types::benchmark::SlidingWindows;

use super::gaussian::weights;
use crate::ModelMismatch;

/// The scores of a window: for each class those of all voxels.
#[derive(Clone, Copy)]
pub(super) enum Scores<'a> {
    /// 32-bit floats.
    Single(&'a [[u8; 4]]),
    /// 16-bit floats.
    Half(&'a [[u8; 2]]),
}

impl<'a> Scores<'a> {
    /// Returns the scores in an output for windows with this number of voxels. The type follows from the length.
    pub(super) fn of(output: &'a [u8], classes: usize, voxels: usize) -> Self {
        if output.len() == classes * voxels * size_of::<f16>() {
            Self::Half(output.as_chunks().0)
        } else {
            Self::Single(output.as_chunks().0)
        }
    }
}

/// The sums of windows in a volume.
pub(super) struct Blender {
    window: [usize; 3],
    classes: usize,
    /// The weights of a window's voxels.
    weights: Vec<f32>,
    /// For each plane of a window and each class, the sums of the voxels in the plane. Plane `p` of the volume is at `p % window[0]`.
    sums: Vec<f32>,
    /// For each plane of a window, the sums of weights.
    totals: Vec<f32>,
    /// The current volume.
    volume: [usize; 3],
    /// The first plane that has no classes yet.
    first: usize,
}

impl Blender {
    /// Allocates the sums for volumes whose planes have up to `plane` voxels.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn new(
        window: [usize; 3],
        windows: &SlidingWindows,
        plane: usize,
    ) -> Result<Self, ModelMismatch> {
        let zeros = |count: usize| {
            let mut zeros = Vec::new();
            zeros.try_reserve_exact(count).map_err(|_| {
                format!(
                    "its windows need {} MiB of memory for sums",
                    (count * size_of::<f32>()) >> 20
                )
            })?;
            zeros.resize(count, 0.0);
            Ok::<Vec<f32>, ModelMismatch>(zeros)
        };
        Ok(Self {
            window,
            classes: windows.classes,
            weights: weights(window[0], windows.deviation),
            sums: zeros(window[0] * windows.classes * plane)?,
            totals: zeros(window[0] * plane)?,
            volume: [0; 3],
            first: 0,
        })
    }

    /// Begins a volume, whose planes are not larger than stated.
    pub(super) fn begin(&mut self, volume: [usize; 3]) {
        self.volume = volume;
        self.first = 0;
        let plane = self.plane();
        self.sums[..self.window[0] * self.classes * plane].fill(0.0);
        self.totals[..self.window[0] * plane].fill(0.0);
    }

    /// Adds a window. Windows come in order of their first plane.
    pub(super) fn add(&mut self, start: [usize; 3], scores: Scores<'_>, answer: &mut [u8]) {
        self.classify(start[0], answer);
        match scores {
            Scores::Single(scores) => self.add_scores(start, scores, |bytes| f32::from_le_bytes(*bytes)),
            Scores::Half(scores) => {
                self.add_scores(start, scores, |bytes| f16::from_le_bytes(*bytes).to_f32())
            }
        }
    }

    /// Turns the last planes into classes.
    pub(super) fn finish(&mut self, answer: &mut [u8]) {
        self.classify(self.volume[0], answer);
    }

    const fn plane(&self) -> usize {
        self.volume[1] * self.volume[2]
    }

    fn add_scores<T>(&mut self, start: [usize; 3], scores: &[T], value: impl Fn(&T) -> f32) {
        let [depths, rows, columns] = self.window;
        let (plane, width) = (self.plane(), self.volume[2]);
        let of_class = depths * rows * columns;
        for depth in 0..depths {
            let slot = (start[0] + depth) % depths;
            for row in 0..rows {
                let own = (depth * rows + row) * columns;
                let weights = &self.weights[own..own + columns];
                let place = (start[1] + row) * width + start[2];
                for class in 0..self.classes {
                    let to = (slot * self.classes + class) * plane + place;
                    let scores = &scores[class * of_class + own..][..columns];
                    for ((sum, score), weight) in
                        self.sums[to..to + columns].iter_mut().zip(scores).zip(weights)
                    {
                        // In two roundings, as NumPy does it.
                        let weighted = value(score) * weight;
                        *sum += weighted;
                    }
                }
                let to = slot * plane + place;
                for (total, weight) in self.totals[to..to + columns].iter_mut().zip(weights) {
                    *total += weight;
                }
            }
        }
    }

    /// Turns the planes before `end` into classes, and clears their sums.
    fn classify(&mut self, end: usize, answer: &mut [u8]) {
        let (plane, classes) = (self.plane(), self.classes);
        for depth in self.first..end {
            let slot = depth % self.window[0];
            let sums = &mut self.sums[slot * classes * plane..][..classes * plane];
            let totals = &mut self.totals[slot * plane..][..plane];
            for (voxel, (answer, total)) in answer[depth * plane..][..plane]
                .iter_mut()
                .zip(&*totals)
                .enumerate()
            {
                let (mut best, mut largest) = (0, sums[voxel] / total);
                for class in 1..classes {
                    let score = sums[class * plane + voxel] / total;
                    if score > largest {
                        (best, largest) = (class, score);
                    }
                }
                // At most 256 classes.
                *answer = best as u8;
            }
            sums.fill(0.0);
            totals.fill(0.0);
        }
        self.first = self.first.max(end);
    }
}

#[cfg(test)]
mod tests {
    use regatta_random::SplitMix64;

    use super::*;

    /// The sums of a complete volume, computed at once as in the reference.
    fn expected(
        volume: [usize; 3],
        starts: &[[usize; 3]],
        scores: &[Vec<f32>],
        windows: &SlidingWindows,
    ) -> Vec<u8> {
        let side = 4;
        let voxels = volume.iter().product::<usize>();
        let (mut sums, mut totals) = (vec![0.0_f32; windows.classes * voxels], vec![0.0_f32; voxels]);
        let cube = weights(side, windows.deviation);
        for (start, scores) in starts.iter().zip(scores) {
            for own in 0..side.pow(3) {
                let [z, y, x] = [own / 16 + start[0], own / 4 % 4 + start[1], own % 4 + start[2]];
                let voxel = (z * volume[1] + y) * volume[2] + x;
                for class in 0..windows.classes {
                    let weighted = scores[class * 64 + own] * cube[own];
                    sums[class * voxels + voxel] += weighted;
                }
                totals[voxel] += cube[own];
            }
        }
        let best = |voxel: usize| {
            let score = |class: usize| sums[class * voxels + voxel] / totals[voxel];
            (1..windows.classes).fold(
                0,
                |best, class| if score(class) > score(best) { class } else { best },
            ) as u8
        };
        (0..voxels).map(best).collect()
    }

    #[test]
    fn planes_are_classified_as_if_the_volume_were_summed_as_a_whole() {
        let windows = SlidingWindows {
            stride: [2; 3],
            deviation: 0.125,
            classes: 3,
        };
        let mut blender = Blender::new([4; 3], &windows, 8 * 6).unwrap();
        let mut bits = SplitMix64::new(7);
        let mut random = || f32::from(bits.bits() as i16) / 3e4;
        // The second volume reuses the memory of the first, larger one.
        for volume in [[8, 8, 6], [4, 6, 4], [6, 4, 8]] {
            let mut starts = Vec::new();
            for z in (0..=volume[0] - 4).step_by(2) {
                for y in (0..=volume[1] - 4).step_by(2) {
                    starts.extend((0..=volume[2] - 4).step_by(2).map(|x| [z, y, x]));
                }
            }
            // Halves of whole numbers are the same in both types.
            let scores: Vec<Vec<f32>> = starts
                .iter()
                .map(|_| (0..192).map(|_| (random() * 8.0).round() / 2.0).collect())
                .collect();
            let expected = expected(volume, &starts, &scores, &windows);
            for is_half in [false, true] {
                let mut answer = vec![9; volume.iter().product()];
                blender.begin(volume);
                for (start, scores) in starts.iter().zip(&scores) {
                    let bytes: Vec<u8> = match is_half {
                        true => scores
                            .iter()
                            .flat_map(|&score| f16::from_f32(score).to_le_bytes())
                            .collect(),
                        false => scores.iter().flat_map(|score| score.to_le_bytes()).collect(),
                    };
                    blender.add(*start, Scores::of(&bytes, 3, 64), &mut answer);
                }
                blender.finish(&mut answer);
                assert_eq!(answer, expected, "{volume:?}");
            }
        }
    }
}
