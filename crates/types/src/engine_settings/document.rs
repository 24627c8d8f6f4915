//! Engine settings in documents: a table with the settings that have a value, each of its setting's type. `spec.json`, drafts, plans and
//! systems files have the same form. Errors carry the position of the key or the value.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeSeed, Error, MapAccess, Visitor},
};

use super::{EngineSettings, Setting, SettingValue, ValueType, advice};

impl<'de> Deserialize<'de> for EngineSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Table)
    }
}

impl Serialize for EngineSettings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(setting, value)| (setting.name, value)))
    }
}

struct Table;

impl<'de> Visitor<'de> for Table {
    type Value = EngineSettings;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of engine settings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<EngineSettings, A::Error> {
        let mut settings = EngineSettings::default();
        while let Some(setting) = map.next_key_seed(Name)? {
            let settings = &mut settings;
            map.next_value_seed(Value { setting, settings })?;
        }
        Ok(settings)
    }
}

/// Deserialises a key as the setting of that name.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = &'static Setting;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name {
    type Value = &'static Setting;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of an engine setting")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Setting::named(name).ok_or_else(|| {
            let advice = advice(name, None);
            E::custom(format_args!("there is no engine setting `{name}`; {advice}"))
        })
    }
}

/// Deserialises the value of one setting into its field.
struct Value<'a> {
    setting: &'static Setting,
    settings: &'a mut EngineSettings,
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.setting.value_type {
            ValueType::Integer { .. } => deserializer.deserialize_i64(self),
            ValueType::Number { .. } => deserializer.deserialize_f64(self),
            ValueType::Boolean => deserializer.deserialize_bool(self),
            ValueType::Word(_) | ValueType::Text(_) => deserializer.deserialize_str(self),
        }
    }
}

impl Value<'_> {
    fn set<E: Error>(self, value: &SettingValue) -> Result<(), E> {
        self.settings.set(self.setting, value).map_err(E::custom)
    }

    const fn is_number(&self) -> bool {
        matches!(self.setting.value_type, ValueType::Number { .. })
    }
}

impl Visitor<'_> for Value<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.setting.value_type)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::custom(self.setting.refuse(&number.to_string()))),
        }
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        if self.is_number() {
            return self.set(&SettingValue::Number(number as f64));
        }
        self.set(&SettingValue::Integer(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        self.set(&SettingValue::Number(number))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.set(&SettingValue::Boolean(value))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        match self.setting.value_type {
            ValueType::Word(_) | ValueType::Text(_) => self.set(&SettingValue::Text(text.trim().to_owned())),
            // The quotes show why `"8"` is not a number.
            _ => Err(E::custom(self.setting.refuse(&format!("{text:?}")))),
        }
    }
}
