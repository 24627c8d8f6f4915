//! The contexts of the GPUs in a run. A setting selects the GPUs.

use std::fmt::Write as _;

use regatta_cuda::{Context, Device, Driver};
use regatta_types::engine_settings::GpuSelection;

use crate::EngineError;

/// The named GPUs are of different kinds. A plan only runs on one kind.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "GPU {first} is {is}, but GPU {other} is {differs}, and an engine runs only on one kind; hint: name GPUs of one kind with the setting gpus"
)]
struct Unlike {
    first: u32,
    is: String,
    other: u32,
    differs: String,
}

/// Returns the contexts of the selected GPUs, in the same order.
///
/// # Errors
/// [`EngineError::Unavailable`] when a GPU is missing, does not start, or is of another kind than the first.
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

/// Returns the numbers of the devices of the same kind as the first. Logs each excluded device.
pub(super) fn alike(devices: &[Device]) -> Vec<u32> {
    let mut numbers = vec![0];
    for (number, device) in (0..).zip(devices).skip(1) {
        if is_like(device, &devices[0]) {
            numbers.push(number);
        } else {
            tracing::warn!(
                "GPU {number} ({}) is not used: it is of another kind than GPU 0 ({}); hint: gpus={number} uses it",
                device.name,
                devices[0].name
            );
        }
    }
    numbers
}

/// Returns whether one plan runs on both devices.
fn is_like(one: &Device, other: &Device) -> bool {
    (&one.name, one.compute_capability) == (&other.name, other.compute_capability)
}

/// Describes the devices, as in `Orin` or `2 x NVIDIA L4`.
pub(super) fn describe(contexts: &[Context]) -> String {
    let mut words = String::new();
    if contexts.len() > 1 {
        // Writing to a string cannot fail.
        let _ = write!(words, "{} x ", contexts.len());
    }
    words + &contexts[0].device().name
}
