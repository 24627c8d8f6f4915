//! Enums of a benchmark's file whose variant a key names. They are read by way of a JSON value, so that the reader of their variants is compiled
//! once for all formats: one for TOML and one for JSON would add 60 KiB to the agent. Such enums are buffered before they are read anyway.

/// Implements serde's traits for an enum with `#[serde(remote = "Self", tag = "...")]`.
macro_rules! read_by_value {
    ($name:ty) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                // The function that the derive with `remote` has made.
                Self::serialize(self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = serde_json::Value::deserialize(deserializer)?;
                Self::deserialize(value).map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(super) use read_by_value;
