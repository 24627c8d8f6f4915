//! The rounds of a program, by name. Of the built-in rounds, only the requested one is parsed, because parsing all takes longer than a
//! submission check.

use std::path::{Path, PathBuf};

use super::config_file::{CatalogueError, ConfigFileKind, read_directory, read_file, unknown};
use crate::{known, round::Round};

/// All rounds of a program: the user's own first, then the built-in ones. The first match applies.
#[derive(Debug)]
pub struct RoundCatalogue {
    /// The user's rounds.
    rounds: Vec<Round>,
    /// The user's directory of such files.
    own: Option<PathBuf>,
}

impl RoundCatalogue {
    /// Reads the rounds of the user's own `configs` directory.
    ///
    /// # Errors
    /// [`CatalogueError`] when a file cannot be read or parsed.
    pub fn read(configs: Option<&Path>) -> Result<Self, CatalogueError> {
        let own = configs.map(|configs| configs.join(ConfigFileKind::Round.directory()));
        let rounds = match &own {
            Some(own) => read_directory(own, |path| {
                read_file(ConfigFileKind::Round, path, Round::from_toml)
            })?,
            None => Vec::new(),
        };
        Ok(Self { rounds, own })
    }

    /// Returns all rounds, sorted by name, which is also by age.
    ///
    /// # Errors
    /// [`CatalogueError`] when a built-in file cannot be parsed.
    pub fn all(&self) -> Result<Vec<&Round>, CatalogueError> {
        let mut names: Vec<&str> = known::round_names().collect();
        names.extend(self.rounds.iter().map(|round| round.name.as_str()));
        names.sort_unstable();
        names.dedup();
        names.into_iter().map(|name| self.named(Some(name))).collect()
    }

    /// Returns the round with a name, in any case and also without the `v`. Without a name, returns the newest built-in one.
    ///
    /// # Errors
    /// [`CatalogueError::Unknown`] with the known names.
    pub fn named(&self, name: Option<&str>) -> Result<&Round, CatalogueError> {
        let with_v = name.filter(|name| name.starts_with(|c: char| c.is_ascii_digit()));
        let with_v = with_v.map(|name| format!("v{name}"));
        let name = with_v.as_deref().or(name);
        let own = name.and_then(|name| {
            let mut rounds = self.rounds.iter();
            rounds.find(|round| round.name.eq_ignore_ascii_case(name))
        });
        let name = name
            .or_else(|| known::round_names().next_back())
            .unwrap_or_default();
        let found = match own {
            None => known::round(name)?,
            own => own,
        };
        found.ok_or_else(|| {
            let mut names: Vec<&str> = known::round_names().collect();
            names.extend(self.rounds.iter().map(|round| round.name.as_str()));
            unknown(ConfigFileKind::Round, name, names, self.own.as_deref())
        })
    }
}
