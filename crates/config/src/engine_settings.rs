//! Engine settings of a run (`--set`, plans, systems files, `bench --setting`): declared once, read and checked for an engine.
//!
//! The harness and the engines apply the values; nothing here does. LoadGen's own settings are in the `conf` crate.

mod declaration;
mod search;
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
    units::{GpuSelection, SimUnit, SimUnits},
    value::{Dispatch, EnginePrecision, InputType, Sharing, TimingWait, ValueType},
};

/// A setting that an engine cannot run with.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EngineSettingError {
    /// No setting has this name.
    #[error("the {engine} engine has no setting `{name}`; {}", advice(*engine, name))]
    Unknown {
        /// The engine.
        engine: EngineKind,
        /// The given name.
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
    #[error("the engine setting {name} is `{given}`, but must be {expected}")]
    Value {
        /// The setting.
        name: &'static str,
        /// The given value.
        given: String,
        /// What a value must be.
        expected: ValueType,
    },
}

impl Setting {
    /// The setting with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.name == name)
    }

    /// The settings that an engine accepts, in the order in which they are listed.
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

    /// What `regatta-agent tune` tries of the setting, if it searches for it.
    #[must_use]
    pub fn search_rule(&self, engine: EngineKind, scenario: Scenario) -> Option<&'static SearchRule> {
        let mut rules = self.search.iter();
        rules.find(|rule| rule.engines.contains(&engine) && rule.scenarios.contains(&scenario))
    }

    /// The setting whose name is most like this one, if any is.
    #[must_use]
    pub fn nearest<'a>(name: &str, among: impl Iterator<Item = &'a Self>) -> Option<&'a Self> {
        /// Names that are less alike are no likely slip of the keyboard.
        const ALIKE: f64 = 0.85;
        let name = name.to_ascii_lowercase().replace('-', "_");
        among
            .map(|setting| (strsim::jaro_winkler(&name, setting.name), setting))
            .filter(|&(likeness, _)| likeness >= ALIKE)
            .max_by(|(one, _), (other, _)| one.total_cmp(other))
            .map(|(_, setting)| setting)
    }

    /// The error for a value that is not valid.
    #[must_use]
    pub fn refuse(&'static self, given: &str) -> EngineSettingError {
        EngineSettingError::Value {
            name: self.name,
            given: given.to_owned(),
            expected: self.value_type,
        }
    }
}

impl EngineSettings {
    /// Reads the settings of an engine.
    ///
    /// # Errors
    /// [`EngineSettingError`] for the first name that the engine does not have, or value that is not valid.
    pub fn read(engine: EngineKind, given: &BTreeMap<String, String>) -> Result<Self, EngineSettingError> {
        let mut settings = Self::default();
        for (name, value) in given {
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

    /// The settings that have a value, by name, as text that [`read`](Self::read) reads as the same values.
    #[must_use]
    pub fn texts(&self) -> BTreeMap<String, String> {
        let texts = SETTINGS.iter().map(|setting| (setting, (setting.get)(self)));
        texts
            .filter_map(|(setting, text)| Some((setting.name.to_owned(), text?)))
            .collect()
    }

    /// Refuses settings that an engine does not accept.
    ///
    /// # Errors
    /// [`EngineSettingError::OtherEngine`] for the first of them.
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

/// The nearest name that the engine has, or all of them.
fn advice(engine: EngineKind, name: &str) -> String {
    if let Some(near) = Setting::nearest(name, Setting::accepted_by(engine)) {
        return format!("hint: did you mean `{}`?", near.name);
    }
    let known: Vec<&str> = Setting::accepted_by(engine).map(|setting| setting.name).collect();
    format!("known are {}", known.join(", "))
}

/// The engines that accept a setting.
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
