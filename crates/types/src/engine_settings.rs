//! Engine settings of a run (`--set`, plans, systems files, `spec.json`): declared once, and parsed once, where they enter.
//!
//! The harness and the engines apply the values. LoadGen's own settings are in the `conf` crate.

mod declaration;
mod document;
mod loopback_address;
mod search;
mod sequence_lengths;
mod units;
mod value;

use crate::{EngineKind, Scenario};

pub use self::{
    declaration::{EngineSettings, SETTINGS, Setting, SettingSource},
    loopback_address::LoopbackAddress,
    search::{Bound, SearchRule, SearchValues},
    sequence_lengths::SequenceLengths,
    units::{BoardName, GpuSelection, SimUnit, SimUnits},
    value::{
        CalibrationMethod, Dispatch, EngineBuild, EnginePrecision, InnerPath, InnerPaths, InputType,
        OnnxRuntimeOptimization, OnnxRuntimeProvider, SettingValue, Sharing, TimingWait, ValueType,
    },
};

/// The error for a setting that an engine cannot use.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EngineSettingError {
    /// No setting has this name.
    #[error("{} setting `{name}`; {}", has_no(*engine), advice(name, *engine))]
    Unknown {
        /// `None` while the engine is not known.
        engine: Option<EngineKind>,
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
    /// The setting has no effect beside another one.
    #[error("the engine settings {name} and {other} exclude each other: {reason}")]
    Excluded {
        /// The setting.
        name: &'static str,
        /// The other setting.
        other: &'static str,
        /// Why it has no effect.
        reason: &'static str,
    },
    /// The setting is for other drivers of model servers.
    #[error("the engine setting {name} has no effect with the server's driver: only {drivers}")]
    OtherDriver {
        /// The setting.
        name: &'static str,
        /// The drivers with which it has an effect, and why.
        drivers: &'static str,
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

    /// Checks that an engine accepts the setting.
    ///
    /// # Errors
    /// [`EngineSettingError::OtherEngine`] when it does not.
    pub fn check_engine(&self, engine: EngineKind) -> Result<(), EngineSettingError> {
        if self.is_accepted_by(engine) {
            return Ok(());
        }
        let name = self.name;
        Err(EngineSettingError::OtherEngine { engine, name })
    }

    /// Parses a value from text.
    ///
    /// # Errors
    /// [`EngineSettingError::Value`] when it is not of the setting's type, or out of range.
    pub fn parse(&'static self, text: &str) -> Result<SettingValue, EngineSettingError> {
        let value = self.value_type.parse(text.trim());
        value
            .filter(|value| self.value_type.contains(value))
            .ok_or_else(|| self.refuse(text))
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
    /// Parses the settings of an engine from names and values as text. A later value of a setting replaces an earlier one. Without an
    /// engine, the settings of all engines are accepted; [`Self::check_engine`] checks them later.
    ///
    /// # Errors
    /// [`EngineSettingError`] for the first unknown name or invalid value.
    pub fn parse<'a>(
        engine: impl Into<Option<EngineKind>>,
        values: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, EngineSettingError> {
        let engine = engine.into();
        let mut settings = Self::default();
        for (name, text) in values {
            let setting = Setting::named(name).ok_or_else(|| EngineSettingError::Unknown {
                engine,
                name: name.to_owned(),
            })?;
            if let Some(engine) = engine {
                setting.check_engine(engine)?;
            }
            settings.set(setting, &setting.parse(text)?)?;
        }
        Ok(settings)
    }

    /// Sets a setting, whatever the engine.
    ///
    /// # Errors
    /// [`EngineSettingError::Value`] when the value is not of the setting's type, or out of range.
    pub fn set(&mut self, setting: &'static Setting, value: &SettingValue) -> Result<(), EngineSettingError> {
        if setting.value_type.contains(value) && (setting.set)(self, value) {
            Ok(())
        } else {
            Err(setting.refuse(&value.to_string()))
        }
    }

    /// Returns the settings that have a value, in declaration order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Setting, SettingValue)> {
        SETTINGS
            .iter()
            .filter_map(|setting| Some((setting, (setting.get)(self)?)))
    }

    /// Returns the value of the setting with this name, if it has one.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<SettingValue> {
        (Setting::named(name)?.get)(self)
    }

    /// Returns the settings that have a value as `NAME=VALUE`, ordered by name.
    #[must_use]
    pub fn assignments(&self) -> Vec<String> {
        let mut assignments: Vec<String> = self
            .iter()
            .map(|(setting, value)| format!("{}={value}", setting.name))
            .collect();
        assignments.sort_unstable();
        assignments
    }

    /// The settings that become a network's configuration in the model repository of a server.
    pub const OF_MODEL_REPOSITORY: [&'static str; 3] = [
        "instance_group_count",
        "preferred_batch_size",
        "max_queue_delay_usec",
    ];

    /// Checks that no setting for the start of a model server is set beside `server_address`, which names one that runs.
    ///
    /// # Errors
    /// [`EngineSettingError::Excluded`] for the first one that is.
    pub fn check_server_address(&self) -> Result<(), EngineSettingError> {
        if self.server_address.is_none() {
            return Ok(());
        }
        // What the agent gives a server that it starts.
        let is_of_start = |name: &&str| {
            matches!(*name, "server_port" | "server_context") || Self::OF_MODEL_REPOSITORY.contains(name)
        };
        let mut set = self.iter().map(|(setting, _)| setting.name);
        set.find(is_of_start).map_or(Ok(()), |name| {
            Err(EngineSettingError::Excluded {
                name,
                other: "server_address",
                reason: "a server that runs already has its port, context and instances; hint: leave out the first, or start the server with it",
            })
        })
    }

    /// Checks that an engine accepts all settings.
    ///
    /// # Errors
    /// [`EngineSettingError::OtherEngine`] for the first setting that it does not accept.
    pub fn check_engine(&self, engine: EngineKind) -> Result<(), EngineSettingError> {
        self.iter()
            .try_for_each(|(setting, _)| setting.check_engine(engine))
    }
}

fn has_no(engine: Option<EngineKind>) -> String {
    engine.map_or_else(
        || "no engine has a".to_owned(),
        |engine| format!("the {engine} engine has no"),
    )
}

/// Returns a hint with the most similar setting of the engine, or with all of its settings.
fn advice(name: &str, engine: Option<EngineKind>) -> String {
    let is_accepted = |setting: &&Setting| engine.is_none_or(|engine| setting.is_accepted_by(engine));
    let known: Vec<&Setting> = SETTINGS.iter().filter(is_accepted).collect();
    if let Some(near) = Setting::nearest(name, known.iter().copied()) {
        return format!("hint: did you mean `{}`?", near.name);
    }
    let names: Vec<&str> = known.iter().map(|setting| setting.name).collect();
    format!("known are {}", names.join(", "))
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
