//! Flags that select the round, the system and the settings of runs and engine builds. The catalogue resolves them.

use std::collections::BTreeMap;

/// Flags that select the rules and settings of a run.
#[derive(Debug, clap::Args)]
pub(super) struct SettingFlags {
    /// The round whose rules apply, such as v6.1 [default: the newest]
    #[arg(long)]
    pub(super) round: Option<String>,
    /// The system whose settings apply: a name, a .toml file, `auto` for the system of the device's board, or `none` [default: auto,
    /// if there is one]
    #[arg(long, value_name = "SYSTEM")]
    pub(super) system: Option<String>,
    /// An engine setting, KEY=VALUE (see `regatta settings list`); can be repeated
    #[arg(long, value_name = "K=V", value_parser = pair)]
    set: Vec<(String, String)>,
}

/// Parses an option's `KEY=VALUE`.
pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err("not of the form KEY=VALUE".to_owned()),
    }
}

impl SettingFlags {
    /// Returns the settings by name.
    pub(super) fn set(&self) -> BTreeMap<String, String> {
        self.set.iter().cloned().collect()
    }
}
