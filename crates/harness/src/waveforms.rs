//! The lengths of waveforms, which are in a separate array and checked when the dataset is opened. Engines check them again, but take a
//! length of 0 for a blank sample of the warm-up.

use std::path::Path;

use regatta_types::benchmark::Model;

use super::{array_set::ArraySet, npy::SampleError};

/// Checks the length of each sample, for a model that makes transcripts of waveforms.
///
/// # Errors
/// [`SampleError`] for the first sample whose length is not that of a waveform.
pub(super) fn check_lengths(model: &Model, arrays: &ArraySet) -> Result<(), SampleError> {
    if model.transducer.is_none() && model.encoder_decoder.is_none() {
        return Ok(());
    }
    let mut inputs = model.inputs();
    // The engine says what is wrong with other inputs.
    let (Some(&[longest]), Some(Some(input))) = (
        inputs.next().map(|waveform| waveform.shape),
        inputs.next().map(|length| length.name),
    ) else {
        return Ok(());
    };
    let lengths = arrays.map_rows(input, |row| {
        row.first_chunk().map(|bytes| i32::from_le_bytes(*bytes))
    })?;
    for (index, length) in lengths.into_iter().flatten().enumerate() {
        if !usize::try_from(length).is_ok_and(|count| (1..=longest).contains(&count)) {
            return Err(SampleError::WaveformLength {
                path: arrays.path(input).map(Path::to_owned).unwrap_or_default(),
                index,
                length,
                longest,
            });
        }
    }
    Ok(())
}
