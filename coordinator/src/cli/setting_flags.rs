//! Flags that select the round, the system and the settings of runs and engine builds. The catalogue resolves them.

use regatta_types::{EngineKind, engine_settings::EngineSettings};

use crate::exit::Failure;
use regatta_lab_runs::{RunRequestError, RunRequestInput};
use regatta_lab_store::SystemChoice;

/// Flags that select the rules and settings of a run.
#[derive(Debug, clap::Args)]
pub(super) struct SettingFlags {
    /// The round whose rules apply, such as v6.1 [default: the newest]
    #[arg(long)]
    round: Option<String>,
    /// The system whose settings apply: a name, a .toml file, `auto` for the system of the device's board, or `none` [default: auto,
    /// if there is one]
    #[arg(long, value_name = "SYSTEM")]
    system: Option<SystemChoice>,
    /// An engine setting, KEY=VALUE (see `regatta settings list`); can be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment)]
    set: Vec<Assignment>,
}

/// An option's `KEY=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Assignment {
    pub(super) key: String,
    pub(super) value: String,
}

impl Assignment {
    /// Returns key and value.
    pub(super) fn as_pair(&self) -> (&str, &str) {
        (&self.key, &self.value)
    }

    /// Returns key and value, for a map.
    pub(super) fn into_pair(self) -> (String, String) {
        (self.key, self.value)
    }
}

/// Parses an option's `KEY=VALUE`.
pub(super) fn assignment(text: &str) -> Result<Assignment, String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok(Assignment {
            key: key.trim().to_owned(),
            value: value.trim().to_owned(),
        }),
        _ => Err("not of the form KEY=VALUE".to_owned()),
    }
}

/// Parses engine settings.
///
/// # Errors
/// Returns the failure for a setting that the engine does not accept.
pub(super) fn engine_settings<'a>(
    engine: Option<EngineKind>,
    values: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<EngineSettings, Failure> {
    EngineSettings::parse(engine, values).map_err(|error| {
        let error = RunRequestError::EngineSetting { engine, error };
        let hint = error.hint();
        Failure::usage(error).optional_hint(hint)
    })
}

impl SettingFlags {
    /// Returns a request with these flags.
    ///
    /// # Errors
    /// Returns the failure for a setting that the engine does not accept.
    pub(super) fn input(&self, engine: Option<EngineKind>) -> Result<RunRequestInput, Failure> {
        let set = engine_settings(engine, self.set.iter().map(Assignment::as_pair))?;
        Ok(RunRequestInput {
            round: self.round.clone(),
            system: self.system.clone(),
            set,
            ..RunRequestInput::default()
        })
    }
}
