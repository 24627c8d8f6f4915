//! Settings of harness and engine: the engine settings of a run, and the modelled accelerator that they configure.
//! `regatta_types::engine_settings` declares the settings.

mod modelled_board;

use regatta_config::engine_settings::{BoardName, EngineSettings, TimingWait};
use regatta_engines::sim::SimModel;

/// Why settings cannot be used on this machine.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SettingError {
    /// The modelled board does not exist on this machine.
    #[error(
        "the engine setting sim_board is `{0}`, but must be a modelled board such as agx-orin.resnet50, or the path of a board's file"
    )]
    NoBoard(String),
}

/// Settings of harness and engine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HarnessSettings {
    /// The engine settings of the run.
    pub engine: EngineSettings,
    /// The modelled accelerator, after the settings of its units are applied.
    pub sim: SimModel,
    /// Whether the units' service times are measured and kept even if no policy needs them. `bench` sets this; no
    /// setting does.
    pub learn: bool,
}

impl HarnessSettings {
    /// Returns the settings of a run.
    ///
    /// # Errors
    /// [`SettingError::NoBoard`] when this machine does not have the modelled board.
    pub fn new(engine: EngineSettings) -> Result<Self, SettingError> {
        let sim = sim_model(&engine)?;
        Ok(Self {
            engine,
            sim,
            learn: false,
        })
    }

    /// Returns whether LoadGen's issuing thread spins while it waits.
    pub fn timing_spins(&self) -> bool {
        self.engine.timing_wait == Some(TimingWait::Spin)
    }
}

/// Returns the modelled accelerator.
///
/// # Errors
/// [`SettingError::NoBoard`] when this machine has no such board.
fn sim_model(settings: &EngineSettings) -> Result<SimModel, SettingError> {
    let mut sim = SimModel::default();
    if let Some(BoardName(board)) = &settings.sim_board {
        sim.board = SimModel::board_named(board).ok_or_else(|| SettingError::NoBoard(board.clone()))?;
    }
    if let Some(units) = &settings.sim_units {
        sim.board.units = SimModel::units(units);
        sim.board.name.clear();
    }
    sim.board.jitter = settings.sim_jitter.unwrap_or(sim.board.jitter);
    sim.seed = settings.sim_seed.unwrap_or(sim.seed);
    sim.board = modelled_board::configured(&sim.board, settings);
    sim.spin = settings.use_spin_wait == Some(true);
    Ok(sim)
}

#[cfg(test)]
mod tests {
    use regatta_types::documents::EngineKind;

    use super::*;

    fn settings(values: &[(&str, &str)]) -> Result<HarnessSettings, SettingError> {
        HarnessSettings::new(EngineSettings::parse(EngineKind::Sim, values.iter().copied()).unwrap())
    }

    #[test]
    fn a_modelled_accelerator_is_as_the_settings_say() {
        let sim = settings(&[
            ("gpu_batch_size", "64"),
            ("dla_batch_size", "2"),
            ("dla_loop_count", "4"),
            ("gpu_copy_streams", "2"),
            ("dla_copy_streams", "3"),
            ("max_dlas", "1"),
            ("use_direct_host_access", "true"),
            ("use_spin_wait", "true"),
            ("sim_units", "gpu=400+60, dla0=900+210"),
            ("sim_jitter", "0.05"),
            ("sim_seed", "9"),
        ]);
        insta::assert_debug_snapshot!(sim.unwrap().sim);
    }

    #[test]
    fn a_board_that_is_not_here_is_refused_by_name() {
        let refused = settings(&[("sim_board", "no-such-board")])
            .unwrap_err()
            .to_string();
        assert!(refused.contains("sim_board is `no-such-board`"), "{refused}");
    }

    #[test]
    fn every_systems_file_configures_a_harness() {
        for system in regatta_config::known::systems().unwrap() {
            for run in &system.runs {
                let read = HarnessSettings::new(run.settings.clone());
                assert!(read.is_ok(), "{}: {read:?}", system.name);
            }
        }
    }
}
