//! Types of engine settings: conversion from and to text, and valid ranges. This module knows no setting by name.

use std::{fmt, time::Duration};

use regatta_types::{assets::is_inner_path, layout::Layout};

/// The type of a setting and the range of its values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueType {
    /// An integer.
    Integer {
        /// The smallest value.
        min: u64,
        /// The largest value.
        max: u64,
        /// A description of the number, for example `a whole number of microseconds`.
        noun: &'static str,
    },
    /// A number that may have a fraction.
    Number {
        /// The smallest value.
        min: f64,
        /// The largest value.
        max: f64,
        /// A description of the number, for example `a number of seconds`.
        noun: &'static str,
    },
    /// `true` or `false`.
    Boolean,
    /// One word of a fixed list.
    Word(&'static [&'static str]),
    /// Text with its own syntax, described by a noun phrase.
    Text(&'static str),
}

impl ValueType {
    /// Returns the name of the type in JSON and in the documents.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Integer { .. } => "integer",
            Self::Number { .. } => "number",
            Self::Boolean => "boolean",
            Self::Word(_) => "word",
            Self::Text(_) => "text",
        }
    }

    /// Returns the range without the type's noun: `1 to 256`, `direct, worker`. Empty when every value of the type is valid.
    #[must_use]
    pub fn range(&self) -> String {
        match self {
            Self::Integer {
                min: 0,
                max: u64::MAX,
                ..
            }
            | Self::Boolean
            | Self::Text(_) => String::new(),
            Self::Integer { min, max, .. } => format!("{min} to {max}"),
            Self::Number { min, max, .. } => format!("{min} to {max}"),
            Self::Word(words) => words.join(", "),
        }
    }
}

impl fmt::Display for ValueType {
    /// Formats the accepted values for error messages: `a whole number from 1 to 256`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer {
                min: 0,
                max: u64::MAX,
                noun,
            }
            | Self::Text(noun) => f.write_str(noun),
            Self::Integer { min, max, noun } => write!(f, "{noun} from {min} to {max}"),
            Self::Number { min, max, noun } => write!(f, "{noun} from {min} to {max}"),
            Self::Boolean => f.write_str("`true` or `false`"),
            Self::Word(words) => {
                for (number, word) in words.iter().enumerate() {
                    match number {
                        0 => {}
                        _ if number + 1 == words.len() => f.write_str(" or ")?,
                        _ => f.write_str(", ")?,
                    }
                    write!(f, "`{word}`")?;
                }
                Ok(())
            }
        }
    }
}

/// A Rust type of a setting's values.
pub(super) trait SettingValue: Sized {
    /// Parses a value without surrounding blanks; `None` when it has the wrong type or is out of range.
    fn read(text: &str, value_type: &ValueType) -> Option<Self>;

    /// Returns the value as text, which [`read`](Self::read) parses to the same value.
    fn text(&self) -> String;
}

/// Implements integers; the range is checked as `u64`.
macro_rules! integers {
    ($($type:ty),*) => {$(
        impl SettingValue for $type {
            fn read(text: &str, value_type: &ValueType) -> Option<Self> {
                let ValueType::Integer { min, max, .. } = value_type else { return None };
                let number: u64 = text.parse().ok()?;
                (*min..=*max).contains(&number).then(|| Self::try_from(number).ok()).flatten()
            }

            fn text(&self) -> String {
                self.to_string()
            }
        }
    )*};
}
integers!(u8, u64, usize);

impl SettingValue for f64 {
    fn read(text: &str, value_type: &ValueType) -> Option<Self> {
        let ValueType::Number { min, max, .. } = value_type else {
            return None;
        };
        // NaN is outside of every range.
        text.parse().ok().filter(|number| (*min..=*max).contains(number))
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl SettingValue for Duration {
    /// Parses a number of seconds.
    fn read(text: &str, value_type: &ValueType) -> Option<Self> {
        Self::try_from_secs_f64(f64::read(text, value_type)?).ok()
    }

    fn text(&self) -> String {
        self.as_secs_f64().to_string()
    }
}

impl SettingValue for bool {
    fn read(text: &str, _: &ValueType) -> Option<Self> {
        text.parse().ok()
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl SettingValue for String {
    fn read(text: &str, _: &ValueType) -> Option<Self> {
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn text(&self) -> String {
        self.clone()
    }
}

/// A path below the scratch directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InnerPath(pub String);

impl SettingValue for InnerPath {
    fn read(text: &str, _: &ValueType) -> Option<Self> {
        is_inner_path(text).then(|| Self(text.to_owned()))
    }

    fn text(&self) -> String {
        self.0.clone()
    }
}

/// Paths below the scratch directory, at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InnerPaths(pub Vec<String>);

impl SettingValue for InnerPaths {
    fn read(text: &str, _: &ValueType) -> Option<Self> {
        let paths: Vec<String> = text.split(',').map(|path| path.trim().to_owned()).collect();
        paths
            .iter()
            .all(|path| is_inner_path(path))
            .then_some(Self(paths))
    }

    fn text(&self) -> String {
        self.0.join(",")
    }
}

impl SettingValue for Layout {
    fn read(text: &str, _: &ValueType) -> Option<Self> {
        text.parse().ok()
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// Declares enums whose values are one word each.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $value:ident = $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$word_doc])* $value,)*
        }

        impl $name {
            /// The words of all values.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// The word in settings.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)*
                }
            }
        }

        impl SettingValue for $name {
            fn read(text: &str, _: &ValueType) -> Option<Self> {
                match text {
                    $($word => Some(Self::$value),)*
                    _ => None,
                }
            }

            fn text(&self) -> String {
                self.as_str().to_owned()
            }
        }
    )*};
}

words! {
    /// Which thread computes.
    Dispatch {
        /// LoadGen's issuing thread, within the issuing call, without a queue.
        Direct = "direct",
        /// Worker threads behind a queue.
        Worker = "worker",
    }

    /// How samples are shared among the units of a chip.
    Sharing {
        /// All units finish together, by service times that the warm-up learns.
        Together = "together",
        /// Each unit takes a full batch as soon as it is free, as in NVIDIA's harness.
        FirstFree = "first-free",
    }

    /// What LoadGen's issuing thread does while it waits.
    TimingWait {
        /// It sleeps.
        Block = "block",
        /// It spins.
        Spin = "spin",
    }

    /// What happens before a run whose TensorRT engine the device lacks.
    EngineBuild {
        /// The engine is built.
        Missing = "missing",
        /// The run fails.
        Never = "never",
    }

    /// The types that a TensorRT engine may compute in.
    EnginePrecision {
        /// As in the network.
        Fp32 = "fp32",
        /// 16-bit floats too.
        Fp16 = "fp16",
        /// 8-bit integers and 16-bit floats too.
        Int8 = "int8",
    }

    /// The type of a TensorRT engine's input.
    InputType {
        /// 32-bit floats.
        Fp32 = "fp32",
        /// 16-bit floats.
        Fp16 = "fp16",
        /// 8-bit integers.
        Int8 = "int8",
        /// 32-bit integers.
        Int32 = "int32",
    }
}
