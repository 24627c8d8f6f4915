//! The samples of speech: a padded waveform of float32 or float16, and the number of its values before the padding. Makes no features.

use half::f16;
use regatta_types::benchmark::{Dtype, Model};

use super::{Batch, EngineError};

/// Reads waveforms, in memory that is allocated once.
#[derive(Default)]
pub(super) struct WaveformReader {
    is_half: bool,
    shortest: usize,
    /// The values of a padded waveform.
    longest: usize,
    sample_bytes: usize,
    /// A sample's values before the padding.
    values: Vec<f32>,
}

impl WaveformReader {
    /// Allocates the memory for a model whose waveforms have at least `shortest` values.
    pub(super) fn new(model: &Model, shortest: usize) -> Self {
        let longest = model.input_shape[0];
        Self {
            is_half: model.input_dtype == Dtype::Float16,
            shortest,
            longest,
            sample_bytes: model.sample_bytes().unwrap_or(0),
            values: Vec::with_capacity(longest),
        }
    }

    /// Calls `take` with the place and the waveform of each sample in the batch. A length of 0 is that of a blank sample in the warm-up, which is
    /// read like the longest; datasets with such a length are refused.
    ///
    /// # Errors
    /// [`EngineError`] when the batch has no such samples, or a waveform has no valid length.
    pub(super) fn each_waveform(
        &mut self,
        batch: &Batch<'_>,
        mut take: impl FnMut(usize, &[f32]),
    ) -> Result<(), EngineError> {
        let (mut place, mut all_read) = (0, Ok(()));
        let nowhere = std::iter::repeat_with(|| &mut [] as &mut [u8]);
        batch.each_sample(self.sample_bytes, nowhere, |sample, _| {
            if all_read.is_ok() {
                all_read = self.read(sample);
            }
            if all_read.is_ok() {
                take(place, &self.values);
            }
            place += 1;
        })?;
        all_read.map_err(|source| EngineError::Sample(source.into()))
    }

    fn read(&mut self, sample: &[u8]) -> Result<(), WaveformLength> {
        let element = if self.is_half {
            size_of::<f16>()
        } else {
            size_of::<f32>()
        };
        let (waveform, length) = sample.split_at(self.longest * element);
        let length = length
            .first_chunk()
            .map_or(-1, |bytes| i32::from_le_bytes(*bytes));
        let count = match usize::try_from(length) {
            Ok(0) => self.longest,
            Ok(count) if (self.shortest..=self.longest).contains(&count) => count,
            _ => {
                return Err(WaveformLength {
                    length,
                    shortest: self.shortest,
                    longest: self.longest,
                });
            }
        };
        self.values.clear();
        if self.is_half {
            let values = waveform.as_chunks().0.iter().take(count);
            self.values
                .extend(values.map(|bytes| f16::from_le_bytes(*bytes).to_f32()));
        } else {
            let values = waveform.as_chunks().0.iter().take(count);
            self.values.extend(values.map(|bytes| f32::from_le_bytes(*bytes)));
        }
        Ok(())
    }
}

/// The error for a sample whose waveform has no valid length.
#[derive(Debug, thiserror::Error)]
#[error("a waveform has {length} values, but {shortest} to {longest} are needed")]
struct WaveformLength {
    length: i32,
    shortest: usize,
    longest: usize,
}

/// Returns what is missing if the inputs of a model with this section are not a waveform and its length.
pub(super) fn inputs_fault(model: &Model, section: &str) -> Option<String> {
    let inputs: Vec<_> = model.inputs().collect();
    let [waveform, length] = &inputs[..] else {
        return Some(format!("{section} needs two inputs: a waveform and its length"));
    };
    let is_waveform = waveform.shape.len() == 1 && matches!(waveform.dtype, Dtype::Float32 | Dtype::Float16);
    (!is_waveform || !length.shape.is_empty() || length.dtype != Dtype::Int32)
        .then(|| format!("{section} needs a waveform of float32 or float16, and its length as int32"))
}
