//! The built-in modelled boards (`configs/simulated-boards`), as texts. The schedule crate parses them.

use regatta_types::engine_settings::{EngineSettingError, EngineSettings, Setting};

use crate::packed::Packed;

static BOARDS: Packed = Packed::new(include_bytes!(concat!(env!("OUT_DIR"), "/boards")));

/// Returns names and file texts of the modelled boards, ordered by name.
pub fn texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    BOARDS
        .files()
        .iter()
        .map(|file| (file.name.as_str(), file.text.as_str()))
}

/// Checks that the modelled board of the settings, if any, is a built-in one or the path of a file, which only the device can read.
///
/// # Errors
/// [`EngineSettingError::Value`] when it is neither.
pub fn check(settings: &EngineSettings) -> Result<(), EngineSettingError> {
    let Some((board, setting)) = settings.sim_board.as_ref().zip(Setting::named("sim_board")) else {
        return Ok(());
    };
    if board.is_path() || texts().any(|(name, _)| name == board.0) {
        Ok(())
    } else {
        Err(setting.refuse(&board.0))
    }
}
