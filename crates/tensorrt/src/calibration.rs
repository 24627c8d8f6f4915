//! Samples on their way into TensorRT's calibrator: what they are, and the batches that it asks for. Reads no files and has no device.

use std::{
    error::Error,
    ffi::{CString, c_char, c_void},
    slice,
    sync::Mutex,
};

use crate::{build::lock, engine::c_name, face, io::IoType, library::text};

/// What a calibration sample has for an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalibrationInput {
    /// The input's name; `None` for the only one.
    pub name: Option<String>,
    /// Type of its elements, which is the network's own.
    pub element: IoType,
    /// Bytes of a sample, in the shape of the network's input.
    pub sample_bytes: usize,
}

/// Samples that the scales of INT8 are found with.
pub trait Calibration {
    /// What a sample has, for each input of the network.
    fn inputs(&self) -> Vec<CalibrationInput>;

    /// Puts the next batch onto the device and gives the address of each of the network's `inputs`, in their order; they hold
    /// until the next call. `None` when there is no further one. A batch has [`BuildSettings::batch`](crate::BuildSettings::batch)
    /// samples.
    ///
    /// # Errors
    /// When samples cannot be read, or the device does not take them; the build then fails with that.
    fn next_batch(&mut self, inputs: &[String]) -> Result<Option<Vec<u64>>, Box<dyn Error + Send + Sync>>;
}

/// The samples' inputs for C, and the names that these point to.
pub(crate) struct Described {
    _names: Vec<CString>,
    pub(crate) inputs: Vec<face::CalibrationInput>,
}

impl Described {
    pub(crate) fn of(samples: Option<&dyn Calibration>) -> Self {
        let inputs = samples.map(Calibration::inputs).unwrap_or_default();
        let names: Vec<Option<CString>> = inputs
            .iter()
            .map(|input| input.name.as_deref().map(c_name))
            .collect();
        let for_c = inputs
            .iter()
            .zip(&names)
            .map(|(input, name)| face::CalibrationInput {
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

/// Fills the calibrator's next batch; says whether there was one, or why there was none.
///
/// # Safety
/// `names` and `buffers` are of `count` elements, the names strings or null.
pub(crate) unsafe fn fill(
    samples: &Mutex<Option<&mut dyn Calibration>>,
    names: *const *const c_char,
    buffers: *mut *mut c_void,
    count: i32,
) -> Result<bool, String> {
    let count = usize::try_from(count).unwrap_or(0);
    let mut samples = lock(samples);
    let Some(samples) = samples.as_mut().filter(|_| count > 0) else {
        return Ok(false);
    };
    // SAFETY: the caller's promise.
    let (names, buffers) = unsafe {
        (
            slice::from_raw_parts(names, count),
            slice::from_raw_parts_mut(buffers, count),
        )
    };
    let names: Vec<String> = names.iter().map(|&name| text(name)).collect();
    let Some(addresses) = samples
        .next_batch(&names)
        .map_err(|error| chain(error.as_ref()))?
    else {
        return Ok(false);
    };
    if addresses.len() != count {
        return Err(format!(
            "the samples are for {} inputs, the network has {count}",
            addresses.len()
        ));
    }
    for (place, address) in buffers.iter_mut().zip(addresses) {
        *place = std::ptr::without_provenance_mut(usize::try_from(address).unwrap_or(0));
    }
    Ok(true)
}

/// An error and its causes as one line.
fn chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |&error| error.source());
    causes.fold(error.to_string(), |line, cause| format!("{line}: {cause}"))
}
