//! Types of engine settings: conversion from and to text, and valid ranges. This module knows no setting by name.

use std::{fmt, time::Duration};

use serde::Serialize;

use crate::{assets::is_inner_path, layout::Layout};

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

    /// Parses a value from text, such as the one of `--set NAME=VALUE`. `None` when it is not of this type. The range is not checked.
    pub(super) fn parse(&self, text: &str) -> Option<SettingValue> {
        match self {
            Self::Integer { .. } => text.parse().ok().map(SettingValue::Integer),
            Self::Number { .. } => text.parse().ok().map(SettingValue::Number),
            Self::Boolean => text.parse().ok().map(SettingValue::Boolean),
            Self::Word(_) | Self::Text(_) => Some(SettingValue::Text(text.to_owned())),
        }
    }

    /// Returns whether a value is of this type and in its range.
    pub(super) fn contains(&self, value: &SettingValue) -> bool {
        match (self, value) {
            (Self::Integer { min, max, .. }, SettingValue::Integer(number)) => (min..=max).contains(&number),
            // NaN is outside of every range.
            (Self::Number { min, max, .. }, SettingValue::Number(number)) => (min..=max).contains(&number),
            (Self::Boolean, SettingValue::Boolean(_)) => true,
            (Self::Word(words), SettingValue::Text(word)) => words.contains(&word.as_str()),
            (Self::Text(_), SettingValue::Text(_)) => true,
            _ => false,
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

/// A setting's value, as documents and command lines have it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SettingValue {
    /// An integer.
    Integer(u64),
    /// A number that may have a fraction.
    Number(f64),
    /// `true` or `false`.
    Boolean(bool),
    /// A word, or text with its own syntax.
    Text(String),
}

impl fmt::Display for SettingValue {
    /// Formats the value as `--set NAME=VALUE` takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => number.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Boolean(value) => value.fmt(f),
            Self::Text(text) => f.pad(text),
        }
    }
}

/// A Rust type of a setting's values.
pub(super) trait SettingType: Sized {
    /// Converts a value in the setting's range; `None` when it is not of this type.
    fn from_value(value: &SettingValue) -> Option<Self>;

    /// Returns the value, from which [`from_value`](Self::from_value) makes the same one again.
    fn value(&self) -> SettingValue;
}

/// Implements integers.
macro_rules! integers {
    ($($type:ty),*) => {$(
        impl SettingType for $type {
            fn from_value(value: &SettingValue) -> Option<Self> {
                let SettingValue::Integer(number) = value else { return None };
                Self::try_from(*number).ok()
            }

            fn value(&self) -> SettingValue {
                // No field has more than 64 bits.
                SettingValue::Integer(*self as u64)
            }
        }
    )*};
}
integers!(u8, u16, u64, usize);

impl SettingType for f64 {
    fn from_value(value: &SettingValue) -> Option<Self> {
        let SettingValue::Number(number) = value else {
            return None;
        };
        Some(*number)
    }

    fn value(&self) -> SettingValue {
        SettingValue::Number(*self)
    }
}

impl SettingType for Duration {
    /// Converts a number of seconds.
    fn from_value(value: &SettingValue) -> Option<Self> {
        Self::try_from_secs_f64(f64::from_value(value)?).ok()
    }

    fn value(&self) -> SettingValue {
        SettingValue::Number(self.as_secs_f64())
    }
}

impl SettingType for bool {
    fn from_value(value: &SettingValue) -> Option<Self> {
        let SettingValue::Boolean(value) = value else {
            return None;
        };
        Some(*value)
    }

    fn value(&self) -> SettingValue {
        SettingValue::Boolean(*self)
    }
}

/// A type whose values are text with its own syntax.
pub(super) trait TextSetting: Sized {
    /// Parses text without surrounding blanks; `None` when it is not valid.
    fn read(text: &str) -> Option<Self>;

    /// Returns the text, which [`read`](Self::read) parses to the same value.
    fn text(&self) -> String;
}

impl<T: TextSetting> SettingType for T {
    fn from_value(value: &SettingValue) -> Option<Self> {
        let SettingValue::Text(text) = value else {
            return None;
        };
        Self::read(text)
    }

    fn value(&self) -> SettingValue {
        SettingValue::Text(self.text())
    }
}

impl TextSetting for String {
    fn read(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn text(&self) -> String {
        self.clone()
    }
}

/// A path below the scratch directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InnerPath(pub String);

impl TextSetting for InnerPath {
    fn read(text: &str) -> Option<Self> {
        is_inner_path(text).then(|| Self(text.to_owned()))
    }

    fn text(&self) -> String {
        self.0.clone()
    }
}

/// Paths below the scratch directory, at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InnerPaths(pub Vec<String>);

impl TextSetting for InnerPaths {
    fn read(text: &str) -> Option<Self> {
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

impl TextSetting for Layout {
    fn read(text: &str) -> Option<Self> {
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

        impl TextSetting for $name {
            fn read(text: &str) -> Option<Self> {
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

    /// The action before a run whose TensorRT engine is missing on the device.
    EngineBuild {
        /// The engine is built.
        Missing = "missing",
        /// The run fails.
        Never = "never",
        /// The engines of the calibration samples are removed, and the engine is built with new scales.
        Recalibrate = "recalibrate",
    }

    /// How TensorRT finds INT8 scales with samples.
    CalibrationMethod {
        /// The scale loses the least information (`IInt8EntropyCalibrator2`).
        Entropy = "entropy",
        /// The scale covers all values (`IInt8MinMaxCalibrator`), as NVIDIA calibrates 3D-UNet.
        MinMax = "min-max",
    }

    /// The part of ONNX Runtime that computes.
    OnnxRuntimeProvider {
        /// The CPU.
        Cpu = "cpu",
        /// CUDA on a GPU. The CPU computes what it does not have.
        Cuda = "cuda",
        /// TensorRT on a GPU. CUDA and the CPU compute what it does not have.
        Tensorrt = "tensorrt",
    }

    /// How far ONNX Runtime changes a network before it computes it.
    OnnxRuntimeOptimization {
        /// Not at all.
        None = "none",
        /// Nodes without effect are removed.
        Basic = "basic",
        /// Nodes are also joined.
        Extended = "extended",
        /// Layouts of data are also changed.
        All = "all",
    }

    /// The types that a TensorRT engine may compute in.
    EnginePrecision {
        /// The network's own types.
        AsInNetwork = "as-in-network",
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
