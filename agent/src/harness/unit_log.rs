//! Notes which unit computed each response, one byte per response in memory that is touched before LoadGen begins. What is
//! done with the notes is decided elsewhere, when the run is over.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use regatta_loadgen::sut::QuerySample;
use regatta_rules::{
    Scenario, TestSettings,
    response_units::{NO_UNIT, ResponseUnits},
};

use super::lane::Lane;

/// Responses for which there is always room, and for which there is at most. Later ones have no unit in the file.
const ROOM: (usize, usize) = (1 << 16, 1 << 24);

/// Which unit computed each response, by its place in the order of issue.
pub(crate) struct UnitLog {
    names: Vec<String>,
    units: Vec<AtomicU8>,
}

impl UnitLog {
    /// A log that all lanes note in from now on; `None` where they compute on one unit, of which there is nothing to tell.
    ///
    /// `test` and the dataset's `total` samples tell how many responses are to be expected; there is room for twice as many.
    pub(crate) fn of(lanes: &mut [Lane], test: &TestSettings, total: usize) -> Option<Arc<Self>> {
        let units = super::warm_up::units(lanes);
        if units < 2 || units > usize::from(NO_UNIT) {
            return None;
        }
        let mut names = vec!["unused".to_owned(); units];
        for lane in &*lanes {
            names[lane.unit()] = lane.unit_name();
        }
        let room = expected(test).saturating_add(total).saturating_mul(2);
        let units = (0..room.clamp(ROOM.0, ROOM.1))
            .map(|_| AtomicU8::new(NO_UNIT))
            .collect();
        let log = Arc::new(Self { names, units });
        lanes.iter_mut().for_each(|lane| lane.note_in(&log));
        Some(log)
    }

    /// Notes that `unit` computed the samples.
    pub(crate) fn note(&self, samples: &[QuerySample], unit: usize) {
        // Units are fewer than a byte counts, or there is no log.
        let number = u8::try_from(unit).unwrap_or(NO_UNIT);
        for sample in samples {
            // Responses are counted from 1.
            let noted = usize::try_from(sample.id.0.wrapping_sub(1)).ok();
            if let Some(place) = noted.and_then(|place| self.units.get(place)) {
                place.store(number, Ordering::Relaxed);
            }
        }
    }

    /// What was noted up to now.
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

/// The responses of a performance run that keeps to the rate which was guessed for it.
fn expected(test: &TestSettings) -> usize {
    let per_query = match test.scenario {
        Scenario::MultiStream => test.multi_stream_samples_per_query,
        Scenario::SingleStream | Scenario::Server | Scenario::Offline => 1,
    };
    let queries_per_second = match test.scenario {
        Scenario::SingleStream => 1e9 / test.single_stream_expected_latency_ns,
        Scenario::MultiStream => 1e9 / test.multi_stream_expected_latency_ns,
        Scenario::Server => test.server_target_qps,
        Scenario::Offline => test.offline_expected_qps,
    };
    let by_time = queries_per_second * test.min_duration_ms as f64 / 1e3;
    // As casts go: what is no number becomes 0, what is too large the largest.
    let queries = (by_time as usize).max(usize::try_from(test.min_query_count).unwrap_or(usize::MAX));
    queries.saturating_mul(usize::try_from(per_query).unwrap_or(usize::MAX))
}
