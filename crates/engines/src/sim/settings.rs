//! The modelled accelerator that the engine settings of a run describe.

use regatta_types::engine_settings::{BoardName, EngineSettings};

use super::{model::SimModel, modelled_board};

/// The modelled board does not exist on this machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the engine setting sim_board is `{0}`, but must be a modelled board such as agx-orin.resnet50, or the path of a board's file"
)]
pub struct UnknownBoard(String);

impl SimModel {
    /// Returns the modelled accelerator, after the settings of its units are applied.
    ///
    /// # Errors
    /// [`UnknownBoard`].
    pub fn of(settings: &EngineSettings) -> Result<Self, UnknownBoard> {
        let mut sim = Self::default();
        if let Some(BoardName(board)) = &settings.sim_board {
            sim.board = Self::board_named(board).ok_or_else(|| UnknownBoard(board.clone()))?;
        }
        if let Some(units) = &settings.sim_units {
            sim.board.units = Self::units(units);
            sim.board.name.clear();
        }
        sim.board.jitter = settings.sim_jitter.unwrap_or(sim.board.jitter);
        sim.seed = settings.sim_seed.unwrap_or(sim.seed);
        sim.board = modelled_board::configured(&sim.board, settings);
        sim.spin = settings.use_spin_wait == Some(true);
        Ok(sim)
    }
}

#[cfg(test)]
mod tests {
    use regatta_types::documents::EngineKind;

    use super::*;

    fn model(values: &[(&str, &str)]) -> Result<SimModel, UnknownBoard> {
        SimModel::of(&EngineSettings::parse(EngineKind::Sim, values.iter().copied()).unwrap())
    }

    #[test]
    fn a_modelled_accelerator_is_as_the_settings_say() {
        let sim = model(&[
            ("gpu_batch_size", "64"),
            ("dla_batch_size", "2"),
            ("dla_enqueue_count", "4"),
            ("gpu_copy_streams", "2"),
            ("dla_copy_streams", "3"),
            ("max_dlas", "1"),
            ("use_direct_host_access", "true"),
            ("use_spin_wait", "true"),
            ("sim_units", "gpu=400+60, dla0=900+210"),
            ("sim_jitter", "0.05"),
            ("sim_seed", "9"),
        ]);
        insta::assert_debug_snapshot!(sim.unwrap());
    }

    #[test]
    fn a_board_that_is_not_here_is_refused_by_name() {
        let refused = model(&[("sim_board", "no-such-board.toml")])
            .unwrap_err()
            .to_string();
        assert!(refused.contains("sim_board is `no-such-board.toml`"), "{refused}");
    }

    #[test]
    fn every_systems_file_describes_a_modelled_accelerator() {
        for system in regatta_catalogue::known::systems().unwrap() {
            for run in &system.runs {
                assert!(SimModel::of(&run.settings).is_ok(), "{}", system.name);
            }
        }
    }
}
