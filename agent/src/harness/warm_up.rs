//! Before LoadGen begins: engines are made warm, and where a chip has several units their service times are learnt.

use std::{
    thread,
    time::{Duration, Instant},
};

use regatta_schedule::learn::{Learnt, Stand, doublings, learn};

use super::{fault::HarnessError, lane::Lane};

/// Batches per stream of one measurement, however short the warm-up is to be.
const LEAST: usize = 3;

/// Computes full batches on every lane for about `length`, one lane after the other; not at all when it is zero.
///
/// # Errors
/// [`HarnessError`] when an engine fails.
pub(crate) fn warm_up(lanes: &mut [Lane], length: Duration) -> Result<(), HarnessError> {
    for lane in lanes.iter_mut().filter(|_| !length.is_zero()) {
        lane.compute_blank(lane.max_batch(), length, 1)?;
    }
    Ok(())
}

/// How many units the lanes compute on: one more than the largest number.
pub(crate) fn units(lanes: &[Lane]) -> usize {
    lanes.iter().map(|lane| lane.unit() + 1).fold(1, usize::max)
}

/// Learns the units' service times in about `length`, or longer where a few batches take longer.
///
/// # Errors
/// [`HarnessError`] when an engine fails.
pub(crate) fn learn_times(
    lanes: &mut [Lane],
    pipelined: bool,
    length: Duration,
) -> Result<Learnt, HarnessError> {
    let mut stand = Lanes {
        units: units(lanes),
        length: Duration::ZERO,
        lanes,
    };
    let measurements: usize = (0..stand.units).map(|unit| stand.sizes(unit).len() + 1).sum();
    stand.length = length / u32::try_from(measurements).unwrap_or(u32::MAX);
    learn(&mut stand, pipelined)
}

/// The lanes as something to be measured.
struct Lanes<'a> {
    lanes: &'a mut [Lane],
    units: usize,
    /// How long one measurement goes on.
    length: Duration,
}

impl Stand for Lanes<'_> {
    type Error = HarnessError;

    fn units(&self) -> usize {
        self.units
    }

    fn sizes(&self, unit: usize) -> Vec<usize> {
        let of_unit = self.lanes.iter().filter(|lane| lane.unit() == unit);
        doublings(of_unit.map(Lane::max_batch).fold(1, usize::max))
    }

    fn measure(&mut self, sizes: &[usize], pipelined: bool) -> Result<Vec<f64>, HarnessError> {
        let length = self.length;
        let mut taken = vec![false; sizes.len()];
        let mut taking_part = Vec::new();
        for lane in &mut *self.lanes {
            let unit = lane.unit();
            if sizes[unit] > 0 && (pipelined || !taken[unit]) {
                taken[unit] = true;
                taking_part.push(lane);
            }
        }
        let begun = Instant::now();
        let mut batches = vec![0; sizes.len()];
        let mut ends = vec![begun; sizes.len()];
        thread::scope(|scope| {
            let threads: Vec<_> = taking_part
                .into_iter()
                .map(|lane| {
                    scope.spawn(move || {
                        let unit = lane.unit();
                        let size = sizes[unit].min(lane.max_batch());
                        let computed = lane.compute_blank(size, length, LEAST)?;
                        Ok((unit, computed, Instant::now()))
                    })
                })
                .collect();
            for thread in threads {
                // An engine's panic is caught within the lane; one of ours would come out here as what it is.
                let (unit, computed, end) = thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                batches[unit] += computed;
                ends[unit] = ends[unit].max(end);
            }
            Ok::<(), HarnessError>(())
        })?;
        let seconds = batches.iter().zip(&ends).map(|(&batches, end)| {
            (*end - begun).as_secs_f64() / f64::from(u32::try_from(batches).unwrap_or(u32::MAX).max(1))
        });
        Ok(seconds.collect())
    }
}
