//! Which GPUs of a machine take part in a run, and their contexts. What runs on them is elsewhere.

use std::fmt::Write as _;

use regatta_cuda::{Context, Device, Driver};

use crate::engines::EngineError;

/// GPUs by CUDA's numbers; `CUDA_VISIBLE_DEVICES` decides which there are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Gpus {
    /// All that are of the first one's kind.
    #[default]
    All,
    /// These, in this order. Never none, and none twice.
    Named(Vec<u32>),
}

/// GPUs of different kinds were named: a plan serves one kind.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "GPU {first} is {is}, but GPU {other} is {differs}, and an engine serves one of them: name GPUs of a kind by the setting gpus"
)]
struct Unlike {
    first: u32,
    is: String,
    other: u32,
    differs: String,
}

impl Gpus {
    /// The words of the setting: `all`, or numbers separated by commas.
    pub(crate) fn parse(given: &str) -> Option<Self> {
        if given == "all" {
            return Some(Self::All);
        }
        let numbers: Option<Vec<u32>> = given
            .split(',')
            .map(|number| number.trim().parse().ok())
            .collect();
        let mut numbers = numbers?;
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        (numbers.len() == count).then_some(Self::Named(numbers))
    }

    /// The first of them alone.
    pub(crate) fn first(&self) -> Self {
        Self::Named(vec![self.numbers()[0]])
    }

    /// Their numbers; of all of an unknown machine that of the first.
    pub(super) fn numbers(&self) -> &[u32] {
        match self {
            Self::Named(numbers) if !numbers.is_empty() => numbers,
            Self::Named(_) | Self::All => &[0],
        }
    }

    /// Their contexts, in the same order.
    ///
    /// # Errors
    /// [`EngineError::Unavailable`] when one is not there, does not start, or is of another kind than the first.
    pub(super) fn open(&self, driver: &Driver) -> Result<Vec<Context>, EngineError> {
        let contexts: Vec<(u32, Context)> = self
            .numbers()
            .iter()
            .map(|&number| Ok((number, driver.context(number)?)))
            .collect::<Result<_, _>>()
            .map_err(|error: regatta_cuda::DriverOpenError| super::unavailable(error))?;
        let (first, one) = &contexts[0];
        let unlike = contexts
            .iter()
            .find(|(_, context)| !is_like(context.device(), one.device()));
        if let Some((other, context)) = unlike {
            return Err(super::unavailable(Unlike {
                first: *first,
                is: one.device().name.clone(),
                other: *other,
                differs: context.device().name.clone(),
            }));
        }
        Ok(contexts.into_iter().map(|(_, context)| context).collect())
    }
}

/// The numbers of the devices that are like the first. One that is left out is told of.
pub(super) fn alike(devices: &[Device]) -> Vec<u32> {
    let mut numbers = vec![0];
    for (number, device) in (0..).zip(devices).skip(1) {
        if is_like(device, &devices[0]) {
            numbers.push(number);
        } else {
            tracing::warn!(
                "GPU {number} ({}) takes no part: it is of another kind than GPU 0 ({}); gpus={number} runs on it",
                device.name,
                devices[0].name
            );
        }
    }
    numbers
}

/// Whether one plan serves both.
fn is_like(one: &Device, other: &Device) -> bool {
    (&one.name, one.compute_capability) == (&other.name, other.compute_capability)
}

/// The devices in words: `Orin`, `2 x NVIDIA L4`.
pub(super) fn in_words(contexts: &[Context]) -> String {
    let mut words = String::new();
    if contexts.len() > 1 {
        // Writing to a string cannot fail.
        let _ = write!(words, "{} x ", contexts.len());
    }
    words + &contexts[0].device().name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_names_each_gpu_once() {
        assert_eq!(Gpus::parse("all"), Some(Gpus::All));
        assert_eq!(Gpus::parse("2, 0"), Some(Gpus::Named(vec![0, 2])));
        assert_eq!(Gpus::parse("2, 0").map(|gpus| gpus.first()), Gpus::parse("0"));
        assert_eq!(Gpus::All.first(), Gpus::Named(vec![0]));
        for wrong in ["", "0,0", "-1", "0;1", "every"] {
            assert_eq!(Gpus::parse(wrong), None, "{wrong}");
        }
    }
}
