//! A modelled board as configured by the engine settings: batches, streams and loops of its units, and the number of
//! DLA cores. Settings that the model does not know (graphs, formats, memory) have no effect.

use regatta_types::engine_settings::EngineSettings;
use regatta_unit_sharing::{
    board_model::{BoardModel, UnitModel},
    service_times::ServiceTimes,
};

/// Returns the board with the settings applied.
pub(super) fn configured(board: &BoardModel, settings: &EngineSettings) -> BoardModel {
    let (dlas, gpus): (Vec<_>, Vec<_>) = board.units.iter().cloned().partition(is_dla);
    let gpu = UnitConfiguration {
        batch: settings.gpu_batch_size,
        streams: settings.gpu_copy_streams,
        loops: 1,
    };
    let dla = UnitConfiguration {
        batch: settings.dla_batch_size,
        streams: settings.dla_copy_streams,
        loops: settings.dla_enqueue_count.unwrap_or(1),
    };
    let dlas = dlas.into_iter().take(settings.max_dlas.unwrap_or(usize::MAX));
    let gpus = gpus.into_iter().map(|unit| gpu.applied_to(unit));
    let mut units: Vec<UnitModel> = gpus.chain(dlas.map(|unit| dla.applied_to(unit))).collect();
    if settings.use_direct_host_access == Some(true) {
        units.iter_mut().for_each(|unit| unit.copy = 0.0);
    }
    BoardModel {
        units,
        ..board.clone()
    }
}

/// Returns whether a modelled unit is a DLA core.
fn is_dla(unit: &UnitModel) -> bool {
    unit.name.starts_with("dla")
}

/// The configuration of one kind of unit. `None` keeps the board's value.
struct UnitConfiguration {
    /// Most samples in a batch.
    batch: Option<usize>,
    /// Batches in flight.
    streams: Option<usize>,
    /// Batches that are computed in a row.
    loops: usize,
}

impl UnitConfiguration {
    /// Returns the configured unit. A batch size above the table's largest is limited to it.
    fn applied_to(&self, mut unit: UnitModel) -> UnitModel {
        let batch = self.batch.unwrap_or(unit.batch).min(unit.times.max_batch());
        unit.batch = batch.saturating_mul(self.loops);
        if let Some(times) = looped(&unit.times, batch, self.loops) {
            unit.times = times;
        }
        unit.streams = self.streams.unwrap_or(unit.streams);
        unit
    }
}

/// Returns the times of up to `loops` batches of `batch` samples in a row. `None` for one loop.
fn looped(times: &ServiceTimes, batch: usize, loops: usize) -> Option<ServiceTimes> {
    let once = times.seconds(batch);
    let steps = (1..=loops).flat_map(|done| {
        let seconds = once * done as f64;
        [(batch * (done - 1) + 1, seconds), (batch * done, seconds)]
    });
    let mut points: Vec<_> = steps.collect();
    points.dedup_by_key(|&mut (size, _)| size);
    // Sizes ascend and times are positive, so the points form a valid table.
    (loops > 1).then(|| ServiceTimes::new(points).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::SimModel;

    fn orin() -> BoardModel {
        SimModel::board_named("agx-orin.resnet50").unwrap()
    }

    #[test]
    fn a_board_runs_as_the_settings_say() {
        let settings = EngineSettings {
            gpu_batch_size: Some(64),
            gpu_copy_streams: Some(4),
            dla_batch_size: Some(2),
            dla_enqueue_count: Some(4),
            max_dlas: Some(1),
            ..EngineSettings::default()
        };
        let board = configured(&orin(), &settings);
        let units_of_board: Vec<_> = board
            .units
            .iter()
            .map(|unit| (unit.name.as_str(), unit.batch, unit.streams))
            .collect();
        assert_eq!(units_of_board, [("gpu", 64, 4), ("dla0", 8, 2)]);
        // Each loop takes the time of a batch of 2, however many samples it contains.
        let (looped, once) = (&board.units[1].times, orin().units[1].times.seconds(2));
        for (samples, loops) in [(1, 1.0), (2, 1.0), (3, 2.0), (6, 3.0), (7, 4.0), (8, 4.0)] {
            let expected: f64 = once * loops;
            assert!((looped.seconds(samples) - expected).abs() < 1e-12, "{samples}");
        }
    }

    #[test]
    fn default_settings_leave_the_modelled_board_unchanged() {
        assert_eq!(configured(&orin(), &EngineSettings::default()), orin());
    }

    #[test]
    fn a_batch_beyond_the_table_is_the_tables_largest() {
        let settings = EngineSettings {
            dla_batch_size: Some(64),
            ..EngineSettings::default()
        };
        assert_eq!(configured(&orin(), &settings).units[1].batch, 8);
    }

    #[test]
    fn shared_memory_takes_no_copy() {
        let mut board = orin();
        board.units[0].copy = 1e-5;
        let mut settings = EngineSettings {
            use_direct_host_access: Some(false),
            ..EngineSettings::default()
        };
        assert_eq!(configured(&board, &settings), board);
        settings.use_direct_host_access = Some(true);
        assert_eq!(configured(&board, &settings), orin());
    }
}
