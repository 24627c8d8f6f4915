//! The accelerator that `sim` models: units from the settings, or a board of `configs/simulated-boards`.

use std::{fmt, path::Path};

use regatta_catalogue::boards;
use regatta_fsutil::regular_file;
use regatta_types::engine_settings::{SimUnit, SimUnits};
use regatta_unit_sharing::{
    board_model::{BoardModel, UnitModel},
    service_times::ServiceTimes,
};

/// The modelled accelerator.
#[derive(Debug, Clone, PartialEq)]
pub struct SimModel {
    /// The board with its units.
    pub board: BoardModel,
    /// Seed of the service times' jitter.
    pub seed: u64,
    /// Whether a stream's thread spins while the unit computes.
    pub spin: bool,
}

/// Largest batch of a unit that only has a base time and a time per sample.
const ANY_BATCH: usize = 1 << 20;

impl Default for SimModel {
    /// Returns one unit that needs 600 microseconds for a batch of one, about as small Jetsons need for resnet50.
    fn default() -> Self {
        Self {
            board: BoardModel {
                name: String::new(),
                units: modelled(&SimUnit {
                    name: "gpu".to_owned(),
                    base_us: 400,
                    per_sample_us: 200,
                })
                .into_iter()
                .collect(),
                jitter: 0.0,
            },
            seed: 0,
            spin: false,
        }
    }
}

impl SimModel {
    /// Returns the modelled units of the setting `sim_units`.
    pub fn units(value: &SimUnits) -> Vec<UnitModel> {
        value.0.iter().filter_map(modelled).collect()
    }

    /// Returns the board with this name, or the board in the file with this path.
    pub fn board_named(value: &str) -> Option<BoardModel> {
        match boards::texts().find(|(name, _)| *name == value) {
            Some((_, text)) => BoardModel::parse(text).ok(),
            None => BoardModel::parse(&regular_file::read_text(Path::new(value)).ok()?).ok(),
        }
    }

    /// Returns the unit of each stream: first one stream per unit, then the second streams, and so on.
    pub fn streams(&self) -> impl Iterator<Item = usize> + Clone {
        let units = &self.board.units;
        let most = units.iter().map(|unit| unit.streams).fold(1, usize::max);
        (0..most).flat_map(move |round| (0..units.len()).filter(move |&unit| units[unit].streams > round))
    }

    /// Returns the largest batch of a named board's units, as set in the published configuration.
    pub fn published_batch(&self) -> Option<usize> {
        let largest = self.board.units.iter().map(|unit| unit.batch).max();
        largest.filter(|&batch| batch != ANY_BATCH)
    }
}

/// Returns a unit with a base time per batch and a time per sample. Zero times become a nanosecond, so the table is
/// always valid.
fn modelled(unit: &SimUnit) -> Option<UnitModel> {
    let seconds = |micros: u32| f64::from(micros) * 1e-6;
    let (base, per_sample) = (seconds(unit.base_us), seconds(unit.per_sample_us));
    let at = |size: usize| (size, (base + per_sample * size as f64).max(1e-9));
    Some(UnitModel {
        name: unit.name.clone(),
        times: ServiceTimes::new(vec![at(1), at(ANY_BATCH)]).ok()?,
        batch: ANY_BATCH,
        copy: 0.0,
        streams: 1,
        slows_others: 0.0,
    })
}

impl fmt::Display for SimModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a modelled accelerator, not a measurement (")?;
        if !self.board.name.is_empty() {
            write!(f, "{}: ", self.board.name)?;
        }
        for unit in &self.board.units {
            let micros = |size| unit.times.seconds(size) * 1e6;
            match unit.batch {
                ANY_BATCH => write!(
                    f,
                    "{} {:.0} us and {:.0} us/sample, ",
                    unit.name,
                    2.0 * micros(1) - micros(2),
                    micros(2) - micros(1)
                )?,
                batch => write!(f, "{} {:.0} us for {batch}, ", unit.name, micros(batch))?,
            }
        }
        write!(f, "jitter {}, seed {})", self.board.jitter, self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_board_that_comes_with_the_agent_is_one() {
        for (name, _) in boards::texts() {
            assert!(SimModel::board_named(name).is_some(), "{name}");
        }
        assert_eq!(SimModel::board_named("no-such-board"), None);
    }
}
