//! Engine settings of a run (`--set`, plans, systems files, `bench --setting`): declared once, parsed and checked for an engine.
//!
//! The harness and the engines apply the values. LoadGen's own settings are in the `conf` crate.

mod declaration;
mod search;
mod sequence_lengths;
mod toml_table;
mod units;
mod value;

use std::collections::BTreeMap;

use regatta_types::{
    Scenario,
    documents::{EngineKind, EngineSpec},
};

pub use self::{
    declaration::{EngineSettings, SETTINGS, Setting, SettingSource},
    search::{Bound, SearchRule, SearchValues},
    sequence_lengths::SequenceLengths,
    units::{BoardName, GpuSelection, SimUnit, SimUnits},
    value::{
        Dispatch, EngineBuild, EnginePrecision, InnerPath, InnerPaths, InputType, Sharing, TimingWait,
        ValueType,
    },
};

/// The error for a setting that an engine cannot use.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EngineSettingError {
    /// No setting has this name.
    #[error("the {engine} engine has no setting `{name}`; {}", advice(*engine, name))]
    Unknown {
        /// The engine.
        engine: EngineKind,
        /// The requested name.
        name: String,
    },
    /// The setting belongs to other engines.
    #[error("the {engine} engine has no setting `{name}`: it is one of {}", owners(name))]
    OtherEngine {
        /// The engine.
        engine: EngineKind,
        /// The setting.
        name: &'static str,
    },
    /// The value is not of the setting's type, or out of range.
    #[error("the engine setting {name} is `{value}`, but must be {expected}")]
    Value {
        /// The setting.
        name: &'static str,
        /// The invalid value.
        value: String,
        /// The accepted values.
        expected: ValueType,
    },
}

impl Setting {
    /// Returns the setting with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.name == name)
    }

    /// Returns the settings that an engine accepts, in declaration order.
    pub fn accepted_by(engine: EngineKind) -> impl Iterator<Item = &'static Self> {
        SETTINGS
            .iter()
            .filter(move |setting| setting.is_accepted_by(engine))
    }

    /// Whether an engine accepts the setting, with or without effect.
    #[must_use]
    pub fn is_accepted_by(&self, engine: EngineKind) -> bool {
        self.engines.contains(&engine) || self.ignored_by.contains(&engine)
    }

    /// Returns the values that `regatta-agent tune` tries, if it searches for the setting.
    #[must_use]
    pub fn search_rule(&self, engine: EngineKind, scenario: Scenario) -> Option<&'static SearchRule> {
        let mut rules = self.search.iter();
        rules.find(|rule| rule.engines.contains(&engine) && rule.scenarios.contains(&scenario))
    }

    /// Returns the setting with the most similar name, if one is similar enough.
    #[must_use]
    pub fn nearest<'a>(name: &str, among: impl Iterator<Item = &'a Self>) -> Option<&'a Self> {
        let among: Vec<&Self> = among.collect();
        let name = regatta_text::nearest(name, among.iter().map(|setting| setting.name))?;
        among.into_iter().find(|setting| setting.name == name)
    }

    /// Returns the error for an invalid value.
    #[must_use]
    pub fn refuse(&'static self, value: &str) -> EngineSettingError {
        EngineSettingError::Value {
            name: self.name,
            value: value.to_owned(),
            expected: self.value_type,
        }
    }
}

impl EngineSettings {
    /// Parses the settings of an engine.
    ///
    /// # Errors
    /// [`EngineSettingError`] for the first unknown name or invalid value.
    pub fn read(engine: EngineKind, values: &BTreeMap<String, String>) -> Result<Self, EngineSettingError> {
        let mut settings = Self::default();
        for (name, value) in values {
            let setting = Setting::named(name).ok_or_else(|| EngineSettingError::Unknown {
                engine,
                name: name.clone(),
            })?;
            if !setting.is_accepted_by(engine) {
                let name = setting.name;
                return Err(EngineSettingError::OtherEngine { engine, name });
            }
            if !(setting.set)(&mut settings, value.trim()) {
                return Err(setting.refuse(value));
            }
        }
        Ok(settings)
    }

    /// Returns the settings that have a value, by name, as text that [`read`](Self::read) parses to the same values.
    #[must_use]
    pub fn texts(&self) -> BTreeMap<String, String> {
        let texts = SETTINGS.iter().map(|setting| (setting, (setting.get)(self)));
        texts
            .filter_map(|(setting, text)| Some((setting.name.to_owned(), text?)))
            .collect()
    }

    /// Checks that an engine accepts all settings.
    ///
    /// # Errors
    /// [`EngineSettingError::OtherEngine`] for the first setting that it does not accept.
    pub fn check_engine(&self, engine: EngineKind) -> Result<(), EngineSettingError> {
        let other = SETTINGS
            .iter()
            .find(|setting| (setting.get)(self).is_some() && !setting.is_accepted_by(engine));
        other.map_or(Ok(()), |setting| {
            let name = setting.name;
            Err(EngineSettingError::OtherEngine { engine, name })
        })
    }
}

impl TryFrom<&EngineSpec> for EngineSettings {
    type Error = EngineSettingError;

    fn try_from(spec: &EngineSpec) -> Result<Self, EngineSettingError> {
        Self::read(spec.kind, &spec.settings)
    }
}

/// Returns a hint with the nearest name that the engine has, or all its names.
fn advice(engine: EngineKind, name: &str) -> String {
    if let Some(near) = Setting::nearest(name, Setting::accepted_by(engine)) {
        return format!("hint: did you mean `{}`?", near.name);
    }
    let known: Vec<&str> = Setting::accepted_by(engine).map(|setting| setting.name).collect();
    format!("known are {}", known.join(", "))
}

/// Returns the names of the engines that accept a setting.
fn owners(name: &str) -> String {
    let accepts =
        |engine: &EngineKind| Setting::named(name).is_some_and(|setting| setting.is_accepted_by(*engine));
    let owners: Vec<&str> = EngineKind::ALL
        .iter()
        .filter(|engine| accepts(engine))
        .map(|engine| engine.as_str())
        .collect();
    owners.join(" and ")
}
