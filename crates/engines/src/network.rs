//! One network of a loop, with the inputs and states of all streams. The loops write inputs, compute streams and read their results; values
//! that a network keeps from one computation to the next stay where they are computed. Loads nothing.

use regatta_types::benchmark::FurtherInput;

use super::EngineError;

/// The bytes of a float.
pub(super) const FLOAT: usize = size_of::<f32>();

/// The inputs and outputs of a network. Its first output is the result; one for each kept input that has one follows, in the same order.
pub(super) struct NetworkLayout<'a> {
    /// The inputs that are written before a computation.
    pub(super) written: &'a [FurtherInput],
    /// The inputs that are kept from one computation to the next, behind the written ones.
    pub(super) kept: &'a [KeptInput],
    /// Whether the result is only an input of another network, and not read.
    pub(super) is_for_network: bool,
    /// Whether the network exceeds the range of 16-bit floats, so that its engine must compute in float32 whatever the settings request.
    pub(super) is_single_precision: bool,
}

/// An input that is kept from one computation to the next, of float32.
#[derive(Debug, Clone)]
pub(super) struct KeptInput {
    pub(super) input: FurtherInput,
    pub(super) update: KeptUpdate,
}

/// How a kept input changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeptUpdate {
    /// An output replaces it.
    Whole,
    /// An output becomes its row at the position of the computation. Rows are along the last dimension but one.
    Row,
    /// The result of another network replaces it.
    Result,
}

impl KeptInput {
    /// Returns the floats of the input, and those of the output that updates it.
    pub(super) fn floats(&self) -> (usize, usize) {
        let shape = &self.input.shape;
        let floats = shape.iter().product::<usize>();
        let updated = match self.update {
            KeptUpdate::Whole => floats,
            KeptUpdate::Row => floats / self.positions(),
            KeptUpdate::Result => 0,
        };
        (floats, updated)
    }

    /// Returns the number of rows along the last dimension but one.
    pub(super) fn positions(&self) -> usize {
        self.input.shape.iter().rev().nth(1).copied().unwrap_or(1).max(1)
    }

    /// Returns the floats of a row.
    pub(super) fn width(&self) -> usize {
        self.input.shape.last().copied().unwrap_or(1)
    }
}

/// A network with memory for the inputs of all streams.
pub(super) trait Network: Send + Sized + 'static {
    /// Returns the most streams.
    fn max_batch(&self) -> usize;

    /// Returns the number of the chip's unit that computes the network, from 0.
    fn unit(&self) -> usize;

    /// Returns that unit's name.
    fn unit_name(&self) -> String;

    /// Returns written input `number` of a stream.
    fn input(&mut self, number: usize, stream: usize) -> &mut [u8];

    /// Sets the kept inputs of the first `streams` streams to zero. Those of other streams are not needed any more.
    ///
    /// # Errors
    /// [`EngineError::Compute`] when the unit fails.
    fn reset(&mut self, streams: usize) -> Result<(), EngineError>;

    /// Declares that the kept inputs of a stream are not needed any more.
    fn release(&mut self, stream: usize);

    /// Computes the streams in `streams`, at least one and in ascending order, and updates their kept inputs. `position` is that of new rows;
    /// streams that have rows and are left out were released.
    ///
    /// # Errors
    /// [`EngineError::Compute`] when the unit fails.
    fn compute(&mut self, streams: &[usize], position: usize) -> Result<(), EngineError>;

    /// Returns whether `other` has a kept input that can take results of this network.
    fn fits_into(&self, other: &Self) -> bool;

    /// Computes the streams in `streams`, at least one and in ascending order. Their results become kept inputs of `other`, into which they fit.
    ///
    /// # Errors
    /// [`EngineError::Compute`] when the unit fails.
    fn compute_into(&mut self, streams: &[usize], other: &mut Self) -> Result<(), EngineError>;

    /// Returns the result of a stream in the last computation.
    fn result(&self, stream: usize) -> &[u8];

    /// Computes one stream of zeros, which gives the engine its buffers, unless the result is for another network, and returns the bytes of a result
    /// as float32. `Err` with the number of found bytes when there are not enough for the kept inputs.
    ///
    /// # Errors
    /// [`EngineError::Compute`] when the unit fails.
    fn probe(&mut self) -> Result<Result<usize, usize>, EngineError>;

    /// Reserves memory for results of `bytes` bytes of all streams.
    fn reserve(&mut self, bytes: usize);
}

/// Returns the floats of a result.
pub(super) fn read_floats(bytes: &[u8]) -> impl Iterator<Item = f32> {
    bytes.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value))
}

/// Writes floats to the beginning of an input, and zeros behind them.
pub(super) fn put(to: &mut [u8], mut values: impl Iterator<Item = f32>) {
    for place in to.as_chunks_mut().0 {
        *place = values.next().unwrap_or(0.0).to_le_bytes();
    }
}
