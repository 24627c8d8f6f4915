//! The calibrator: provides the batches of samples from which TensorRT finds INT8 scales. Reads no files and uses no device.

use std::{
    error::Error,
    ffi::{CString, c_char, c_void},
    slice,
    sync::Mutex,
};

use crate::{engine::c_name, ffi, io_format::ElementType, library::text, lock::lock};

/// An input of the network, as calibration samples contain it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalibrationInput {
    /// The input's name. `None` for the network's only input.
    pub name: Option<String>,
    /// The element type, which is the network's own.
    pub element: ElementType,
    /// The size of a sample in bytes, in the shape of the network's input.
    pub sample_bytes: usize,
}

/// A source of samples for INT8 calibration.
pub trait Calibrator {
    /// Returns the inputs that a sample contains, one for each input of the network.
    fn inputs(&self) -> Vec<CalibrationInput>;

    /// Copies the next batch to the device and returns the address of each of the network's `inputs`, in their order. The
    /// addresses are valid until the next call. Returns `None` after the last batch. A batch has
    /// [`BuildSettings::batch`](crate::BuildSettings::batch) samples.
    ///
    /// # Errors
    /// When samples cannot be read or copied. The build then fails with this error.
    fn next_batch(&mut self, inputs: &[String]) -> Result<Option<Vec<u64>>, Box<dyn Error + Send + Sync>>;
}

/// The inputs of a calibrator for C, with the names that they point to.
pub(crate) struct FfiInputs {
    _names: Vec<CString>,
    pub(crate) inputs: Vec<ffi::RawCalibrationInput>,
}

impl FfiInputs {
    pub(crate) fn new(samples: Option<&dyn Calibrator>) -> Self {
        let inputs = samples.map(Calibrator::inputs).unwrap_or_default();
        let names: Vec<Option<CString>> = inputs
            .iter()
            .map(|input| input.name.as_deref().map(c_name))
            .collect();
        let for_c = inputs
            .iter()
            .zip(&names)
            .map(|(input, name)| ffi::RawCalibrationInput {
                name: name.as_ref().map_or(std::ptr::null(), |name| name.as_ptr()),
                kind: input.element as i32,
                sample_bytes: input.sample_bytes as u64,
            });
        Self {
            inputs: for_c.collect(),
            _names: names.into_iter().flatten().collect(),
        }
    }
}

/// Passes the next batch's addresses to TensorRT. Returns whether there was a batch.
///
/// # Errors
/// The calibrator's error, or a number of addresses that differs from the network's inputs.
///
/// # Safety
/// `names` and `buffers` have `count` elements; each name is a C string or null.
pub(crate) unsafe fn fill_batch(
    samples: &Mutex<Option<&mut dyn Calibrator>>,
    names: *const *const c_char,
    buffers: *mut *mut c_void,
    count: i32,
) -> Result<bool, Box<dyn Error + Send + Sync>> {
    let count = usize::try_from(count).unwrap_or(0);
    let mut samples = lock(samples);
    let Some(samples) = samples.as_mut().filter(|_| count > 0) else {
        return Ok(false);
    };
    // SAFETY: guaranteed by the caller.
    let (names, buffers) = unsafe {
        (
            slice::from_raw_parts(names, count),
            slice::from_raw_parts_mut(buffers, count),
        )
    };
    let names: Vec<String> = names.iter().map(|&name| text(name)).collect();
    let Some(addresses) = samples.next_batch(&names)? else {
        return Ok(false);
    };
    if addresses.len() != count {
        return Err(format!(
            "the samples are for {} inputs, the network has {count}",
            addresses.len()
        )
        .into());
    }
    for (buffer, address) in buffers.iter_mut().zip(addresses) {
        *buffer = std::ptr::without_provenance_mut(usize::try_from(address).unwrap_or(0));
    }
    Ok(true)
}
