//! The warm-up before LoadGen starts. If a chip has several units, their service times are measured too.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use regatta_unit_sharing::unit_profiler::{UnitProfiler, UnitProfiles, doublings, profile_units};

use super::{fault::HarnessError, lane::Lane};

/// Fewest batches per unit in a measurement, however short the warm-up is.
const MIN: usize = 4;

/// Computes full batches on every lane for about `length`, one lane and one length of sequences at a time. Does nothing if `length` is
/// zero.
///
/// # Errors
/// [`HarnessError`] when an engine fails.
pub(crate) fn warm_up(lanes: &mut [Lane], length: Duration) -> Result<(), HarnessError> {
    for lane in lanes.iter_mut().filter(|_| !length.is_zero()) {
        let samples = lane.blank_samples();
        let share = length / u32::try_from(samples.len().max(1)).unwrap_or(u32::MAX);
        for sample in samples {
            let end = Instant::now() + share;
            lane.compute_blank_as(sample, lane.max_batch(), || Instant::now() < end)?;
        }
    }
    Ok(())
}

/// Returns the number of units of the lanes: one more than the largest unit number.
pub(crate) fn units(lanes: &[Lane]) -> usize {
    lanes.iter().map(|lane| lane.unit() + 1).fold(1, usize::max)
}

/// Measures the units' service times in about `length`, or longer if a few batches take longer.
///
/// # Errors
/// [`HarnessError`] when an engine fails.
pub(crate) fn learn_times(
    lanes: &mut [Lane],
    pipelined: bool,
    length: Duration,
) -> Result<UnitProfiles, HarnessError> {
    let mut stand = Lanes {
        units: units(lanes),
        length: Duration::ZERO,
        lanes,
    };
    let measurements: usize = (0..stand.units).map(|unit| stand.sizes(unit).len() + 1).sum();
    stand.length = length / u32::try_from(measurements).unwrap_or(u32::MAX);
    profile_units(&mut stand, pipelined)
}

/// The lanes as a subject of measurement.
struct Lanes<'a> {
    lanes: &'a mut [Lane],
    units: usize,
    /// Duration of one measurement.
    length: Duration,
}

impl UnitProfiler for Lanes<'_> {
    type Error = HarnessError;

    fn units(&self) -> usize {
        self.units
    }

    fn sizes(&self, unit: usize) -> Vec<usize> {
        let of_unit = self.lanes.iter().filter(|lane| lane.unit() == unit);
        doublings(of_unit.map(Lane::max_batch).fold(1, usize::max))
    }

    fn measure(&mut self, sizes: &[usize], pipelined: bool) -> Result<Vec<f64>, HarnessError> {
        let mut taken = vec![false; sizes.len()];
        let mut taking_part = Vec::new();
        for lane in &mut *self.lanes {
            let unit = lane.unit();
            if sizes[unit] > 0 && (pipelined || !taken[unit]) {
                taken[unit] = true;
                taking_part.push(lane);
            }
        }
        let window = Window::new(sizes, self.length);
        thread::scope(|scope| {
            let window = &window;
            let threads: Vec<_> = taking_part
                .into_iter()
                .map(|lane| scope.spawn(move || window.keep_busy(lane, sizes)))
                .collect();
            for thread in threads {
                // A lane catches panics of its engine. Other panics are propagated.
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
            Ok::<(), HarnessError>(())
        })?;
        Ok(window.seconds())
    }
}

/// A period in which all participating lanes are busy. It ends when the time is over and every unit has computed its
/// fewest batches. So units that are measured together load the chip together all the time.
struct Window {
    end: Instant,
    state: Mutex<WindowState>,
}

struct WindowState {
    over: bool,
    /// For each participating unit: batches computed in the window, and the times of the first and the last.
    units: Vec<Option<(usize, Instant, Instant)>>,
}

impl Window {
    /// Returns a window of at least `length` for the units whose size is not 0.
    fn new(sizes: &[usize], length: Duration) -> Self {
        let now = Instant::now();
        let units = sizes.iter().map(|&size| (size > 0).then_some((0, now, now)));
        Self {
            end: now + length,
            state: Mutex::new(WindowState {
                over: false,
                units: units.collect(),
            }),
        }
    }

    /// Computes on a lane until the window is over. A failing lane ends the window for all.
    fn keep_busy(&self, lane: &mut Lane, sizes: &[usize]) -> Result<(), HarnessError> {
        let unit = lane.unit();
        let size = sizes[unit].min(lane.max_batch());
        let computed = lane.compute_blank(size, || self.note(unit));
        if computed.is_err() {
            self.lock().over = true;
        }
        computed
    }

    /// Counts a batch of `unit` and returns whether to compute another. A batch that ends after the window does not
    /// count, because other units may have been idle.
    fn note(&self, unit: usize) -> bool {
        let mut state = self.lock();
        let now = Instant::now();
        if state.over {
            return false;
        }
        if let Some((done, first, last)) = &mut state.units[unit] {
            *done += 1;
            *last = now;
            if *done == 1 {
                *first = now;
            }
        }
        let enough = state.units.iter().flatten().all(|(done, ..)| *done >= MIN);
        state.over = enough && now >= self.end;
        !state.over
    }

    /// Returns the seconds between two batches of each unit.
    fn seconds(&self) -> Vec<f64> {
        let between = |(done, first, last): (usize, Instant, Instant)| {
            let gaps = u32::try_from(done.saturating_sub(1)).unwrap_or(u32::MAX).max(1);
            last.saturating_duration_since(first).as_secs_f64() / f64::from(gaps)
        };
        let state = self.lock();
        state.units.iter().map(|unit| unit.map_or(0.0, between)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, WindowState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use regatta_engines::{Answers, Batch, Engine, EngineError};
    use regatta_test_support::fixture::Fixture;

    use super::*;
    use crate::{fault::FirstFault, library::Library};

    /// Two engines that count their batches. The slow one waits until the fast one has computed another batch, or
    /// fails.
    struct Counting {
        unit: usize,
        batches: Arc<[AtomicUsize; 2]>,
        fails: bool,
    }

    impl Engine for Counting {
        fn max_batch(&self) -> usize {
            1
        }

        fn unit(&self) -> usize {
            self.unit
        }

        fn infer(&mut self, _: &Batch<'_>, answers: &mut Answers) -> Result<(), EngineError> {
            let [quick, slow] = &*self.batches;
            if self.unit == 0 {
                let before = quick.fetch_add(1, Ordering::SeqCst);
                if self.fails && before > 0 {
                    return Err(EngineError::BatchSize { size: 1, max: 1 });
                }
            } else {
                let before = quick.load(Ordering::SeqCst);
                let patience = Instant::now() + Duration::from_secs(20);
                // A failed companion computes no more.
                while quick.load(Ordering::SeqCst) == before && !self.fails {
                    assert!(
                        Instant::now() < patience,
                        "the quick unit has stopped before the slow one"
                    );
                    thread::yield_now();
                }
                slow.fetch_add(1, Ordering::SeqCst);
            }
            answers.push(&[0]);
            Ok(())
        }
    }

    fn lanes(fails: bool) -> (Vec<Lane>, Arc<[AtomicUsize; 2]>) {
        let library = Library::counted(&Fixture::new().benchmark(), FirstFault::default());
        let (library, batches) = (Arc::new(library), Arc::new([0, 0].map(AtomicUsize::new)));
        let lane = |unit| {
            let engine = Counting {
                unit,
                batches: Arc::clone(&batches),
                fails,
            };
            Lane::new(Box::new(engine), Arc::clone(&library))
        };
        (vec![lane(0), lane(1)], batches)
    }

    fn measure(lanes: &mut [Lane], sizes: &[usize]) -> Result<Vec<f64>, HarnessError> {
        let mut stand = Lanes {
            lanes,
            units: 2,
            length: Duration::ZERO,
        };
        stand.measure(sizes, true)
    }

    #[test]
    fn quick_unit_continues_until_the_slow_one_has_its_minimum() {
        let (mut lanes, batches) = lanes(false);
        let seconds = measure(&mut lanes, &[1, 1]).unwrap();
        assert!(seconds.iter().all(|&seconds| seconds > 0.0), "{seconds:?}");
        assert!(batches[1].load(Ordering::SeqCst) >= MIN);
        let slow = batches[1].load(Ordering::SeqCst);
        assert_eq!(measure(&mut lanes, &[1, 0]).unwrap()[1], 0.0);
        assert_eq!(
            batches[1].load(Ordering::SeqCst),
            slow,
            "who is out computes nothing"
        );
    }

    #[test]
    fn a_unit_that_fails_ends_the_measurement_for_all() {
        let (mut lanes, _) = lanes(true);
        let error = measure(&mut lanes, &[1, 1]).unwrap_err();
        assert!(matches!(error, HarnessError::Engine(_)), "{error}");
    }
}
