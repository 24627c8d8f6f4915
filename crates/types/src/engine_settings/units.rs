//! Settings that name units of a machine: GPUs by number, and the units of a modelled accelerator. This module opens no device.

use super::value::TextSetting;

/// GPUs, by CUDA's numbers. `CUDA_VISIBLE_DEVICES` determines which exist.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum GpuSelection {
    /// All GPUs of the same kind as the first one.
    #[default]
    All,
    /// The GPUs with these numbers, ascending. Never empty and without duplicates.
    Named(Vec<u32>),
}

impl GpuSelection {
    /// Returns only the first GPU.
    #[must_use]
    pub fn first(&self) -> Self {
        Self::Named(vec![self.numbers()[0]])
    }

    /// Returns the numbers. For [`All`](Self::All), the machine is unknown here, and the result is the first GPU's number.
    #[must_use]
    pub fn numbers(&self) -> &[u32] {
        match self {
            Self::Named(numbers) if !numbers.is_empty() => numbers,
            Self::Named(_) | Self::All => &[0],
        }
    }
}

impl TextSetting for GpuSelection {
    fn read(text: &str) -> Option<Self> {
        if text == "all" {
            return Some(Self::All);
        }
        let numbers: Option<Vec<u32>> = text.split(',').map(|number| number.trim().parse().ok()).collect();
        let mut numbers = numbers?;
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        (numbers.len() == count).then_some(Self::Named(numbers))
    }

    fn text(&self) -> String {
        match self {
            Self::All => "all".to_owned(),
            Self::Named(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
                numbers.join(",")
            }
        }
    }
}

/// The units of a modelled accelerator, with their service times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimUnits(pub Vec<SimUnit>);

/// One unit of a modelled accelerator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimUnit {
    /// The unit's name. Names of DLA cores begin with `dla`.
    pub name: String,
    /// Microseconds that every batch takes.
    pub base_us: u32,
    /// Microseconds that each sample of a batch adds.
    pub per_sample_us: u32,
}

impl SimUnit {
    fn read(text: &str) -> Option<Self> {
        let (name, times) = text.trim().split_once('=')?;
        let (base, per_sample) = times.split_once('+')?;
        let name = name.trim();
        (!name.is_empty()).then_some(Self {
            name: name.to_owned(),
            base_us: base.trim().parse().ok()?,
            per_sample_us: per_sample.trim().parse().ok()?,
        })
    }
}

/// A modelled board: a built-in one, or the path of a board's file on the device. Which are built in is not known here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardName(pub String);

impl BoardName {
    /// Returns whether this is the path of a board's file.
    #[must_use]
    pub fn is_path(&self) -> bool {
        self.0.contains('/') || self.0.ends_with(".toml")
    }
}

impl TextSetting for BoardName {
    fn read(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    fn text(&self) -> String {
        self.0.clone()
    }
}

impl TextSetting for SimUnits {
    fn read(text: &str) -> Option<Self> {
        text.split(',')
            .map(SimUnit::read)
            .collect::<Option<_>>()
            .map(Self)
    }

    fn text(&self) -> String {
        let units = self.0.iter();
        let texts: Vec<String> = units
            .map(|unit| format!("{}={}+{}", unit.name, unit.base_us, unit.per_sample_us))
            .collect();
        texts.join(",")
    }
}
