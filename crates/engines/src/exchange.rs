//! Inputs and outputs of engines: batches that refer to the loaded samples, and a reusable list of answers. Nothing
//! allocates once the buffers have reached their size.

use std::ops::Range;

use half::f16;

use super::EngineError;

/// The logit of tokens that were not computed. `accuracy-squad.py` puts the same behind a shorter answer.
const PADDING_LOGIT: f32 = -10_000.0;

/// Samples to compute together.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// The index of each sample in the dataset.
    pub samples: &'a [usize],
    /// Their data.
    pub input: Input<'a>,
}

/// The location of a batch's data.
#[derive(Debug, Clone, Copy)]
pub enum Input<'a> {
    /// There is no data. The engine does not read any.
    Absent,
    /// The samples are contiguous in the batch's order, as one tensor.
    Contiguous(&'a [u8]),
    /// The samples are scattered. Sample `i` of the batch begins at `slots[i] * (size of a sample)` in `arena`.
    Scattered {
        /// All loaded samples.
        arena: &'a [u8],
        /// One slot per sample of the batch.
        slots: &'a [usize],
    },
}

impl Batch<'_> {
    /// Returns the number of samples.
    ///
    /// # Errors
    /// [`EngineError::BatchSize`] when there are none, or more than `max`.
    pub const fn size(&self, max: usize) -> Result<usize, EngineError> {
        match self.samples.len() {
            size if size == 0 || size > max => Err(EngineError::BatchSize { size, max }),
            size => Ok(size),
        }
    }

    /// Copies one input's part of the batch's data to the start of `tensor`, in the batch's order. Each sample has
    /// `sample_bytes` bytes, and `part` is the input's range in it.
    ///
    /// # Errors
    /// [`EngineError::InputSize`] when the data is too short or `tensor` is too small.
    pub fn copy_input(
        &self,
        sample_bytes: usize,
        part: &Range<usize>,
        tensor: &mut [u8],
    ) -> Result<(), EngineError> {
        let expected = self.samples.len() * part.len();
        let wrong_size = |size| EngineError::InputSize {
            samples: self.samples.len(),
            size,
            expected,
        };
        let found = tensor.len();
        let target = tensor.get_mut(..expected).ok_or_else(|| wrong_size(found))?;
        match self.input {
            // One copy is faster than a copy per sample.
            Input::Contiguous(bytes) if part.len() == sample_bytes && bytes.len() == expected => {
                target.copy_from_slice(bytes);
                Ok(())
            }
            _ => self.each_sample(
                sample_bytes,
                target.chunks_exact_mut(part.len()),
                |sample, place| {
                    place.copy_from_slice(&sample[part.clone()]);
                },
            ),
        }
    }

    /// Calls `put` with the data and the destination of each sample, in the batch's order.
    ///
    /// # Errors
    /// [`EngineError::InputSize`] when the data does not have the expected size.
    pub fn each_sample<'p>(
        &self,
        sample_bytes: usize,
        places: impl Iterator<Item = &'p mut [u8]>,
        mut put: impl FnMut(&[u8], &mut [u8]),
    ) -> Result<(), EngineError> {
        let expected = self.samples.len() * sample_bytes;
        let wrong_size = |size| EngineError::InputSize {
            samples: self.samples.len(),
            size,
            expected,
        };
        match self.input {
            Input::Absent => Err(wrong_size(0)),
            Input::Contiguous(bytes) if bytes.len() == expected => {
                bytes
                    .chunks_exact(sample_bytes)
                    .zip(places)
                    .for_each(|(sample, place)| put(sample, place));
                Ok(())
            }
            Input::Contiguous(bytes) => Err(wrong_size(bytes.len())),
            Input::Scattered { slots, .. } if slots.len() != self.samples.len() => {
                Err(wrong_size(slots.len() * sample_bytes))
            }
            Input::Scattered { arena, slots } => {
                for (slot, place) in slots.iter().zip(places) {
                    let begin = slot * sample_bytes;
                    let sample = arena.get(begin..begin + sample_bytes);
                    put(sample.ok_or_else(|| wrong_size(arena.len()))?, place);
                }
                Ok(())
            }
        }
    }
}

/// The answers of a batch, in its order, in one reusable buffer.
#[derive(Debug, Default)]
pub struct Answers {
    bytes: Vec<u8>,
    ends: Vec<AnswerEnd>,
}

#[derive(Debug, Clone, Copy)]
struct AnswerEnd {
    place: usize,
    tokens: i64,
}

impl Answers {
    /// Removes all answers and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Reserves memory for `count` answers of up to `bytes` bytes each.
    pub fn reserve(&mut self, count: usize, bytes: usize) {
        self.bytes.reserve(count * bytes);
        self.ends.reserve(count);
    }

    /// Adds an answer of `bytes` zeros for the next sample, and returns it.
    pub fn add(&mut self, bytes: usize) -> &mut [u8] {
        let begin = self.bytes.len();
        self.bytes.resize(begin + bytes, 0);
        self.end_answer(0);
        &mut self.bytes[begin..]
    }

    /// Adds the next sample's answer.
    pub fn push(&mut self, answer: &[u8]) {
        self.push_generated(answer, 0);
    }

    /// Adds the next sample's answer, for which `tokens` tokens were generated.
    pub fn push_generated(&mut self, answer: &[u8], tokens: usize) {
        self.bytes.extend_from_slice(answer);
        self.end_answer(tokens);
    }

    /// Adds the next sample's answer from its rows of several outputs, one after the other.
    pub fn push_joined<'r>(&mut self, rows: impl Iterator<Item = &'r [u8]>) {
        rows.for_each(|row| self.bytes.extend_from_slice(row));
        self.end_answer(0);
    }

    /// Adds the next sample's answer from its rows of several outputs, element by element in turn. Each row comes with
    /// its element size in bytes. All rows have equal length.
    #[cfg(feature = "tract")]
    pub fn push_stacked<'r>(&mut self, rows: impl Iterator<Item = (&'r [u8], usize)> + Clone) {
        let elements = rows
            .clone()
            .map(|(row, size)| row.len() / size)
            .next()
            .unwrap_or(0);
        self.push_stacked_sequence(rows, elements, elements);
    }

    /// Adds the next sample's answer as `push_stacked` does, from floats of which only the first `tokens` of each row are the sample's. The
    /// answer has `full` elements of each row; -10,000 fills it up.
    pub fn push_stacked_sequence<'r>(
        &mut self,
        rows: impl Iterator<Item = (&'r [u8], usize)> + Clone,
        tokens: usize,
        full: usize,
    ) {
        for position in 0..tokens {
            for (row, size) in rows.clone() {
                self.bytes.extend_from_slice(&row[position * size..][..size]);
            }
        }
        let (single, half) = (
            PADDING_LOGIT.to_le_bytes(),
            f16::from_f32(PADDING_LOGIT).to_le_bytes(),
        );
        for _ in tokens..full {
            for (_, size) in rows.clone() {
                let padding = if size == half.len() {
                    &half[..]
                } else {
                    &single[..]
                };
                self.bytes.extend_from_slice(padding);
            }
        }
        self.end_answer(0);
    }

    /// Returns the number of answers.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no answers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the answers in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let ends = self.ends.iter().map(|end| end.place);
        let begins = std::iter::once(0).chain(ends.clone());
        begins.zip(ends).map(|(begin, end)| &self.bytes[begin..end])
    }

    /// Returns an answer by its number.
    pub(crate) fn get(&self, number: usize) -> Option<&[u8]> {
        let end = self.ends.get(number)?.place;
        let before = number.checked_sub(1).and_then(|before| self.ends.get(before));
        self.bytes.get(before.map_or(0, |before| before.place)..end)
    }

    /// Returns the number of tokens that were generated for each answer, in order; 0 for models without tokens.
    pub fn token_counts(&self) -> impl Iterator<Item = i64> {
        self.ends.iter().map(|end| end.tokens)
    }

    fn end_answer(&mut self, tokens: usize) {
        self.ends.push(AnswerEnd {
            place: self.bytes.len(),
            tokens: tokens as i64,
        });
    }
}
