//! `--write-board`: writes the units' times from the warm-up to a file for `sim_board`. This module does not measure.

use std::{fs, path::Path};

use anyhow::{Context as _, anyhow};
use regatta_engines::Description;
use regatta_types::{EngineKind, Scenario, engine_settings::EngineSettings};
use regatta_unit_sharing::board_model::BoardModel;

use crate::exit::Failure;

/// The origin of a board file.
pub(super) struct Origin<'a> {
    pub(super) model: &'a str,
    pub(super) scenario: Scenario,
    pub(super) settings: &'a EngineSettings,
}

/// Rejects engines without units.
///
/// # Errors
/// [`Failure`], a usage error.
pub(super) fn check(engine: EngineKind) -> Result<(), Failure> {
    match engine {
        EngineKind::Tensorrt | EngineKind::Sim => Ok(()),
        other => Err(Failure::usage(anyhow!(
            "--write-board needs --engine tensorrt or sim, but the engine is {other}"
        ))),
    }
}

/// Writes the file.
///
/// # Errors
/// [`Failure`] when the file cannot be written.
pub(super) fn write(
    path: &Path,
    board: &BoardModel,
    engine: &Description,
    origin: &Origin<'_>,
) -> Result<(), Failure> {
    let text = text(board, engine, origin, jiff::Timestamp::now());
    fs::write(path, text).with_context(|| format!("the board {} cannot be written", path.display()))?;
    Ok(())
}

fn text(board: &BoardModel, engine: &Description, origin: &Origin<'_>, now: jiff::Timestamp) -> String {
    let (model, scenario) = (origin.model, origin.scenario);
    let named = BoardModel {
        name: format!("{model} {scenario}, a trace of {now:.0}"),
        ..board.clone()
    };
    let how = if engine.kind.computes() {
        "Measured"
    } else {
        "A model, not a measurement: taken"
    };
    let settings = origin.settings.assignments();
    let head = [
        format!("{how} in the warm-up of regatta-agent {}, {now:.0}.", env!("CARGO_PKG_VERSION")),
        format!("On: {engine}"),
        format!("For: {model}, {scenario}; engine settings: {}", settings.join(" ")),
        "Seconds between two batches of a unit with its streams full, so they include the part of the copies that is not hidden.".to_owned(),
        "The spread of the times was not measured.".to_owned(),
    ];
    let lines = head.map(|line| format!("# {}\n", line.replace(char::is_control, " ")));
    format!("{}\n{named}", lines.concat())
}

#[cfg(test)]
mod tests {
    use regatta_engines::sim::SimModel;

    use super::*;

    #[test]
    fn board_file_names_its_origin_and_reads_back_equal() {
        let board = SimModel::board_named("xavier-nx.resnet50").unwrap();
        let engine = Description {
            kind: EngineKind::Tensorrt,
            version: "8.5.2.2".to_owned(),
            runs_on: "Xavier\nunits = [] (CUDA 11.4)".to_owned(),
        };
        let origin = Origin {
            model: "resnet50",
            scenario: Scenario::Offline,
            settings: &EngineSettings {
                max_dlas: Some(2),
                ..EngineSettings::default()
            },
        };
        let text = text(&board, &engine, &origin, jiff::Timestamp::UNIX_EPOCH);
        let read = BoardModel::parse(&text).unwrap();
        assert_eq!(read.units, board.units);
        insta::assert_snapshot!(text.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
    }
}
