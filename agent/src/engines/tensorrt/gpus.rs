//! The contexts of the GPUs that take part in a run. Which ones are selected is a setting; what runs on them is elsewhere.

use std::fmt::Write as _;

use regatta_config::engine_settings::GpuSelection;
use regatta_cuda::{Context, Device, Driver};

use crate::engines::EngineError;

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

/// The contexts of the selected GPUs, in the same order.
///
/// # Errors
/// [`EngineError::Unavailable`] when one is not there, does not start, or is of another kind than the first.
pub(super) fn open(gpus: &GpuSelection, driver: &Driver) -> Result<Vec<Context>, EngineError> {
    let contexts: Vec<(u32, Context)> = gpus
        .numbers()
        .iter()
        .map(|&number| Ok((number, driver.context(number)?)))
        .collect::<Result<_, _>>()
        .map_err(|error: regatta_cuda::DriverOpenError| EngineError::tensorrt_unavailable(error))?;
    let (first, one) = &contexts[0];
    let unlike = contexts
        .iter()
        .find(|(_, context)| !is_like(context.device(), one.device()));
    if let Some((other, context)) = unlike {
        return Err(EngineError::tensorrt_unavailable(Unlike {
            first: *first,
            is: one.device().name.clone(),
            other: *other,
            differs: context.device().name.clone(),
        }));
    }
    Ok(contexts.into_iter().map(|(_, context)| context).collect())
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
