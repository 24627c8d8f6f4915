//! Engine settings as a table of a systems file: each value has its setting's type in TOML. Errors carry the position of the key or the
//! value.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeSeed, Error, MapAccess, Visitor},
    ser::SerializeMap as _,
};

use super::{EngineSettings, SETTINGS, Setting, ValueType};

impl<'de> Deserialize<'de> for EngineSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Table)
    }
}

impl Serialize for EngineSettings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for setting in SETTINGS {
            let Some(text) = (setting.get)(self) else { continue };
            match setting.value_type {
                ValueType::Integer { .. } => map.serialize_entry(setting.name, &text.parse::<u64>().ok())?,
                ValueType::Number { .. } => map.serialize_entry(setting.name, &text.parse::<f64>().ok())?,
                ValueType::Boolean => map.serialize_entry(setting.name, &(text == "true"))?,
                ValueType::Word(_) | ValueType::Text(_) => map.serialize_entry(setting.name, &text)?,
            }
        }
        map.end()
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
            let hint = Setting::nearest(name, SETTINGS.iter()).map_or_else(String::new, |near| {
                format!("; hint: did you mean `{}`?", near.name)
            });
            E::custom(format_args!("there is no engine setting `{name}`{hint}"))
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
    fn take<E: Error>(self, text: &str, is_of_type: bool) -> Result<(), E> {
        if is_of_type && (self.setting.set)(self.settings, text) {
            Ok(())
        } else {
            Err(E::custom(self.setting.refuse(text)))
        }
    }

    fn is_number(&self) -> bool {
        matches!(
            self.setting.value_type,
            ValueType::Integer { .. } | ValueType::Number { .. }
        )
    }
}

impl Visitor<'_> for Value<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.setting.value_type)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        let is_of_type = self.is_number();
        self.take(&number.to_string(), is_of_type)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        let is_of_type = self.is_number();
        self.take(&number.to_string(), is_of_type)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        let is_of_type = matches!(self.setting.value_type, ValueType::Number { .. });
        self.take(&number.to_string(), is_of_type)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        let is_of_type = self.setting.value_type == ValueType::Boolean;
        self.take(&value.to_string(), is_of_type)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        let is_of_type = matches!(self.setting.value_type, ValueType::Word(_) | ValueType::Text(_));
        self.take(text.trim(), is_of_type)
    }
}
