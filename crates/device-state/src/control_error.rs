//! Reasons why a control of the board cannot be set. `Error` is implemented by hand, because the privileged helper has no dependencies beyond libc.

use std::{error::Error, fmt, io};

use crate::{device_control::DeviceControl, state_request::PowerMode};

#[derive(Debug)]
pub enum ControlError {
    /// The board has no nvpmodel.conf, or one without modes.
    NoPowerModes,
    /// nvpmodel.conf does not contain the mode.
    UnknownPowerMode {
        requested: PowerMode,
        /// The modes in nvpmodel.conf, each with its number.
        known: Vec<String>,
    },
    /// The board does not have the clock, or does not list its rates.
    NoRates(DeviceControl),
    /// The clock does not support the rate.
    UnsupportedRate {
        control: DeviceControl,
        /// In the control's unit.
        value: u64,
        /// The nearest supported rate, in the same unit.
        nearest: u64,
    },
    /// The board does not have that many cores, or the request would leave none.
    CoreCount { requested: u32, all: usize },
    /// The board does not have a control of this kind.
    NoControl(&'static str),
    /// The kernel refused the value.
    Write {
        control: DeviceControl,
        value: String,
        source: io::Error,
    },
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPowerModes => f.write_str("this board has no nvpmodel.conf with power modes"),
            Self::UnknownPowerMode { requested, known } => {
                write!(
                    f,
                    "nvpmodel.conf has no mode {requested}; it has {}",
                    known.join(", ")
                )
            }
            Self::NoRates(control) => write!(
                f,
                "{control} cannot be set: this board does not have it, or does not list its rates"
            ),
            Self::UnsupportedRate {
                control,
                value,
                nearest,
            } => write!(f, "{control} has no clock of {value}; the nearest is {nearest}"),
            Self::CoreCount { requested, all } => write!(
                f,
                "{requested} cores cannot be online: this board takes 1 to {all} cores"
            ),
            Self::NoControl(kind) => write!(f, "this board has no {kind} that can be set"),
            // The helper answers in one line, so the message includes the cause.
            Self::Write {
                control,
                value,
                source,
            } => write!(f, "{control} could not be set to {value}: {source}"),
        }
    }
}

impl Error for ControlError {}
