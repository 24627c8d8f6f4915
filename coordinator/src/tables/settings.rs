//! Engine settings as a table.

use regatta_types::engine_settings::Setting;
use regatta_types::{Scenario, documents::EngineKind};

use super::plain;

/// Formats engine settings, one line each.
pub(crate) fn settings(settings: &[&Setting]) -> String {
    plain(
        ["setting", "values", "default", "engines", "scenarios", "meaning"],
        settings.iter().map(|setting| {
            [
                setting.name.to_owned(),
                setting.value_type.to_string(),
                setting.default.to_owned(),
                engines(setting),
                scenarios(setting),
                setting.doc.to_owned(),
            ]
        }),
    )
}

fn engines(setting: &Setting) -> String {
    if setting.engines.len() == EngineKind::ALL.len() {
        return "all".to_owned();
    }
    let words: Vec<&str> = setting.engines.iter().map(|engine| engine.as_str()).collect();
    words.join(", ")
}

fn scenarios(setting: &Setting) -> String {
    if setting.scenarios.len() == Scenario::ALL.len() {
        return "all".to_owned();
    }
    let words: Vec<&str> = setting
        .scenarios
        .iter()
        .map(|scenario| scenario.as_str())
        .collect();
    words.join(", ")
}
