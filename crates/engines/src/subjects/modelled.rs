//! Settings of the modelled accelerator `sim` for tests.

#![expect(clippy::unwrap_used, reason = "test code")]

use regatta_types::{
    documents::EngineKind,
    engine_settings::{EngineSettings, SimUnits},
};
use regatta_unit_sharing::board_model::UnitModel;

use crate::sim::SimModel;

/// Returns settings with a modelled accelerator that does not slow down the tests.
pub(super) fn quick_settings() -> EngineSettings {
    EngineSettings {
        sim_units: Some(sim_units("gpu=5+1,dla=7+2")),
        sim_jitter: Some(0.1),
        sim_seed: Some(7),
        ..EngineSettings::default()
    }
}

/// Returns the value of `sim_units` with this text.
pub fn sim_units(text: &str) -> SimUnits {
    let settings = EngineSettings::parse(EngineKind::Sim, [("sim_units", text)]).unwrap();
    settings.sim_units.unwrap()
}

/// Returns the modelled units of the text of `sim_units`.
pub fn units_of(text: &str) -> Vec<UnitModel> {
    SimModel::units(&sim_units(text))
}
