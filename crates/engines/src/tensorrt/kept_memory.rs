//! The kept inputs of a network of a loop, in the memory of the device: states, the rows of earlier positions, and what another network has
//! computed. Computes nothing.
//!
//! A state has two memories. A computation reads one and writes the other, so that nothing is copied while all streams are computed each
//! time. The states of a stream that is left out are moved before they would be overwritten.

#[cfg(test)]
mod tests;

use std::ops::Range;

use regatta_cuda::{Context, CudaError, DeviceMemory, RowCopy, Stream};

use super::{network_tensors::KeptTensor, tensors::Row};
use crate::network::KeptUpdate;

/// One of the two memories of a state.
pub(super) type Side = usize;

/// The kept inputs of all streams. A stream has the row of its number.
pub(super) struct KeptMemory {
    inputs: Vec<KeptInputMemory>,
    /// For each row, the side of its states.
    sides: Vec<Side>,
    /// Whether the states of a row are needed.
    is_needed: Vec<bool>,
}

struct KeptInputMemory {
    tensor: KeptTensor,
    /// The input. A state has a second memory.
    memory: DeviceMemory,
    /// The second memory of a state, or the new rows.
    output: Option<DeviceMemory>,
}

impl KeptInputMemory {
    /// Returns the memory of a state's side.
    fn side(&self, side: Side) -> &DeviceMemory {
        let second = self.output.as_ref().filter(|_| side == 1);
        second.unwrap_or(&self.memory)
    }

    fn is_state(&self) -> bool {
        self.tensor.update == KeptUpdate::Whole
    }

    /// Returns the bytes of these rows.
    const fn bytes(&self, rows: &Range<usize>) -> Range<usize> {
        let row = self.tensor.input.bytes();
        rows.start * row..rows.end * row
    }
}

impl KeptMemory {
    /// Allocates and clears the memory for `rows` rows.
    ///
    /// # Errors
    /// [`CudaError`], for instance when there is not enough memory.
    pub(super) fn new(
        context: &Context,
        stream: &Stream,
        tensors: &[KeptTensor],
        rows: usize,
    ) -> Result<Self, CudaError> {
        let allocate = |bytes: usize| DeviceMemory::new(context, rows * bytes);
        let inputs = tensors.iter().map(|tensor| {
            Ok(KeptInputMemory {
                memory: allocate(tensor.input.bytes())?,
                output: tensor
                    .output
                    .as_ref()
                    .map(|output| allocate(output.bytes()))
                    .transpose()?,
                tensor: tensor.clone(),
            })
        });
        let kept = Self {
            inputs: inputs.collect::<Result<_, CudaError>>()?,
            sides: vec![0; rows],
            is_needed: vec![false; rows],
        };
        let memories = kept
            .inputs
            .iter()
            .flat_map(|kept| std::iter::once(&kept.memory).chain(&kept.output));
        // SAFETY: the stream is waited for below, before the memory can be freed or written by another network's stream.
        let cleared = memories
            .map(|memory| unsafe { stream.clear(memory, 0..memory.len()) })
            .find(Result::is_err);
        let waited = stream.synchronize();
        cleared.unwrap_or(Ok(())).and(waited)?;
        Ok(kept)
    }

    pub(super) fn rows(&self) -> usize {
        self.sides.len()
    }

    /// Returns whether there are states, so that computations read different sides.
    pub(super) fn has_states(&self) -> bool {
        self.inputs.iter().any(KeptInputMemory::is_state)
    }

    /// Returns the tensors with their addresses, for a computation that reads the states of a side.
    pub(super) fn addresses(&self, side: Side) -> impl Iterator<Item = (&Row, u64)> {
        self.inputs.iter().flat_map(move |kept| {
            let (input, output) = if kept.is_state() {
                (kept.side(side), Some(kept.side(1 - side)))
            } else {
                (&kept.memory, kept.output.as_ref())
            };
            let output = kept.tensor.output.as_ref().zip(output);
            let output = output.map(|(row, memory)| (row, memory.address()));
            std::iter::once((&kept.tensor.input, input.address())).chain(output)
        })
    }

    /// Returns the input that another network writes, and its address.
    pub(super) fn result_input(&self) -> Option<(&Row, u64)> {
        let is_result = |kept: &&KeptInputMemory| kept.tensor.update == KeptUpdate::Result;
        let found = self.inputs.iter().find(is_result)?;
        Some((&found.tensor.input, found.memory.address()))
    }

    /// Adds the clearing of states and rows of the first `rows` rows to the stream. Those of other rows are not needed.
    ///
    /// # Errors
    /// [`CudaError`] of the driver.
    pub(super) fn reset(&mut self, rows: usize, stream: &Stream) -> Result<(), CudaError> {
        let kept = self.inputs.iter();
        for kept in kept.filter(|kept| kept.tensor.update != KeptUpdate::Result) {
            // SAFETY: the network waits for its stream before it frees the memory.
            unsafe { stream.clear(kept.side(0), kept.bytes(&(0..rows))) }?;
        }
        self.sides[..rows].fill(0);
        for (row, is_needed) in self.is_needed.iter_mut().enumerate() {
            *is_needed = row < rows;
        }
        Ok(())
    }

    /// Declares that the states of a row are not needed.
    pub(super) fn release(&mut self, row: usize) {
        self.is_needed[row] = false;
    }

    /// Returns the side that a computation of the first `rows` rows reads, after it has moved the states of these rows there.
    ///
    /// # Errors
    /// [`CudaError`] of the driver.
    pub(super) fn gather(&mut self, rows: usize, stream: &Stream) -> Result<Side, CudaError> {
        if !self.has_states() {
            return Ok(0);
        }
        let on = |side: Side| (0..rows).filter(|&row| self.is_elsewhere(row, side)).count();
        let side = Side::from(on(0) > on(1));
        let mut row = 0;
        while row < rows {
            let end = row
                + (row..rows)
                    .take_while(|&row| self.is_elsewhere(row, side))
                    .count();
            if end > row {
                for kept in self.inputs.iter().filter(|kept| kept.is_state()) {
                    let (to, from) = (kept.side(side), kept.side(1 - side));
                    // SAFETY: the network waits for its stream before it frees the memories.
                    unsafe { stream.copy_on_device(to, from, kept.bytes(&(row..end))) }?;
                }
                self.sides[row..end].fill(side);
            }
            row = end + 1;
        }
        Ok(side)
    }

    /// Returns whether the states of a row are needed and not on this side.
    fn is_elsewhere(&self, row: usize, side: Side) -> bool {
        self.is_needed[row] && self.sides[row] != side
    }

    /// Takes over the values that a computation has written. It has read one side, so the states of these streams are on the other side now. Enqueues
    /// copies of the new rows to their position in each of the first `rows` rows.
    ///
    /// # Errors
    /// [`CudaError`] of the driver.
    pub(super) fn take(
        &mut self,
        streams: &[usize],
        rows: usize,
        side: Side,
        position: usize,
        stream: &Stream,
    ) -> Result<(), CudaError> {
        for &row in streams {
            self.sides[row] = 1 - side;
        }
        let updated = |kept: &&KeptInputMemory| kept.tensor.update == KeptUpdate::Row;
        for kept in self.inputs.iter().filter(updated) {
            let Some(output) = &kept.output else { continue };
            let tensor = &kept.tensor;
            let copy = RowCopy {
                width: tensor.width,
                rows: rows * tensor.input.bytes() / tensor.pitch,
                source_pitch: tensor.width,
                target_offset: position * tensor.width,
                target_pitch: tensor.pitch,
            };
            // SAFETY: the network waits for its stream before it frees the memories.
            unsafe { stream.copy_rows(&kept.memory, output, &copy) }?;
        }
        Ok(())
    }
}
