//! A log of the unit that computed each response: one byte per response, in memory that is touched before LoadGen
//! starts. Other code writes the log after the run.

use std::sync::atomic::{AtomicU8, Ordering};

use regatta_loadgen::sut::QuerySample;
use regatta_types::response_units::{NO_UNIT, ResponseUnits};

/// Smallest and largest number of logged responses. Later responses have no unit in the file.
const RESERVED: (usize, usize) = (1 << 16, 1 << 24);

/// The unit that computed each response, by order of issue.
pub(crate) struct UnitLog {
    names: Vec<String>,
    units: Vec<AtomicU8>,
}

impl UnitLog {
    /// Returns a log for units with these names and about `responses` responses, within fixed bounds.
    pub(super) fn new(names: Vec<String>, responses: usize) -> Self {
        let units = (0..responses.clamp(RESERVED.0, RESERVED.1)).map(|_| AtomicU8::new(NO_UNIT));
        Self {
            names,
            units: units.collect(),
        }
    }

    /// Records that `unit` computed the samples.
    pub(crate) fn note(&self, samples: &[QuerySample], unit: usize) {
        // The number of units fits into a byte, otherwise there is no log.
        let number = u8::try_from(unit).unwrap_or(NO_UNIT);
        for sample in samples {
            // Response ids start at 1.
            let noted = usize::try_from(sample.id.0.wrapping_sub(1)).ok();
            if let Some(place) = noted.and_then(|place| self.units.get(place)) {
                place.store(number, Ordering::Relaxed);
            }
        }
    }

    /// Returns the recorded units.
    pub(crate) fn responses(&self) -> ResponseUnits {
        let mut units: Vec<u8> = self
            .units
            .iter()
            .map(|unit| unit.load(Ordering::Relaxed))
            .collect();
        let end = units.iter().rposition(|&unit| unit != NO_UNIT);
        units.truncate(end.map_or(0, |last| last + 1));
        #[expect(clippy::expect_used, reason = "numbers come from lanes, each with a name")]
        ResponseUnits::new(self.names.clone(), units).expect("every unit has a name")
    }
}
