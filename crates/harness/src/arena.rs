//! The memory of a loadable set: the samples in LoadGen's order, and the position of each sample.

use std::{slice, sync::Arc};

use regatta_cuda::HostMemory;
use regatta_engines::{Batch, Input, tensorrt::SharedSamples};
use regatta_loadgen::sut::{QuerySample, QuerySampleIndex};

use super::fault::HarnessError;

/// The loaded samples.
pub(crate) struct Arena {
    memory: Memory,
    /// Length in bytes of the part of the memory that is in use.
    length: usize,
    /// Allocator of the memory, if the engine reads samples without a copy.
    shared: Option<Arc<SharedSamples>>,
    sizes: SampleSizes,
    /// The sample in each slot.
    order: Vec<QuerySampleIndex>,
    /// The position of each slot, for samples of different sizes.
    begins: Vec<usize>,
    /// The first slot of each sample of the dataset. `NOT_LOADED` if it has none.
    slots: Vec<u32>,
}

const NOT_LOADED: u32 = u32::MAX;

/// The bytes of samples.
#[derive(Debug, Clone)]
pub(crate) enum SampleSizes {
    /// All samples have the same size.
    Equal(usize),
    /// The size of each sample of the dataset, at least one.
    Each(Arc<[usize]>),
}

impl SampleSizes {
    /// Returns the bytes of a sample.
    pub(crate) fn of(&self, index: QuerySampleIndex) -> usize {
        match self {
            Self::Equal(bytes) => *bytes,
            Self::Each(sizes) => sizes.get(index).copied().unwrap_or(0),
        }
    }

    /// Returns the bytes of the largest sample.
    pub(crate) fn largest(&self) -> usize {
        match self {
            Self::Equal(bytes) => *bytes,
            Self::Each(sizes) => sizes.iter().copied().max().unwrap_or(0),
        }
    }

    /// Returns the index of the smallest sample, whose size blank samples have.
    pub(crate) fn smallest_sample(&self) -> QuerySampleIndex {
        match self {
            Self::Equal(_) => 0,
            Self::Each(sizes) => (0..sizes.len()).min_by_key(|&index| sizes[index]).unwrap_or(0),
        }
    }
}

/// Memory for the batches of a lane, reserved for the largest.
pub(crate) struct BatchMemory {
    pub(crate) indices: Vec<QuerySampleIndex>,
    slots: Vec<usize>,
}

impl BatchMemory {
    /// Reserves memory for batches of up to `most` samples.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            indices: Vec::with_capacity(most),
            slots: Vec::with_capacity(most),
        }
    }
}

/// Returns the samples' indices. That of a single sample, the batch of SingleStream, is read where LoadGen has it; others are gathered in
/// `memory`.
pub(crate) fn indices<'a>(
    samples: &'a [QuerySample],
    memory: &'a mut Vec<QuerySampleIndex>,
) -> &'a [QuerySampleIndex] {
    if let [only] = samples {
        return slice::from_ref(&only.index);
    }
    memory.clear();
    memory.extend(samples.iter().map(|sample| sample.index));
    memory
}

/// The samples' memory: private, or shared with a device.
enum Memory {
    Own(Vec<u8>),
    Shared(HostMemory),
}

impl Memory {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(memory) => memory.bytes(),
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(memory) => memory.bytes_mut(),
        }
    }
}

impl Arena {
    /// Returns an empty arena for samples of these sizes from a dataset of `total` samples.
    pub(crate) fn new(total: usize, sizes: SampleSizes) -> Self {
        Self {
            memory: Memory::Own(Vec::new()),
            length: 0,
            shared: None,
            sizes,
            order: Vec::new(),
            begins: Vec::new(),
            slots: vec![NOT_LOADED; total],
        }
    }

    /// Sets the allocator for shared memory and drops the loaded samples.
    pub(crate) fn share(&mut self, shared: Arc<SharedSamples>) {
        self.clear();
        self.shared = Some(shared);
    }

    /// Drops the samples and keeps the memory for the next set.
    pub(crate) fn clear(&mut self) {
        self.length = 0;
        for &index in &self.order {
            self.slots[index] = NOT_LOADED;
        }
        self.order.clear();
        self.begins.clear();
    }

    /// Drops the samples and returns space for these. Returns `None` if there is not enough memory.
    pub(crate) fn free_space(&mut self, samples: &[QuerySampleIndex]) -> Option<&mut [u8]> {
        self.clear();
        u32::try_from(samples.len())
            .ok()
            .filter(|&slots| slots < NOT_LOADED)?;
        let length = match &self.sizes {
            SampleSizes::Equal(bytes) => samples.len().checked_mul(*bytes)?,
            SampleSizes::Each(_) => samples
                .iter()
                .try_fold(0_usize, |sum, &index| sum.checked_add(self.sizes.of(index)))?,
        };
        match (&mut self.memory, &self.shared) {
            (Memory::Shared(memory), _) if memory.bytes().len() >= length => {}
            (memory, Some(shared)) => {
                // Free the old memory first, because both sets may not fit at once.
                *memory = Memory::Own(Vec::new());
                *memory = Memory::Shared(shared.allocate(length)?);
            }
            (Memory::Own(bytes), None) => {
                bytes.clear();
                bytes.try_reserve_exact(length).ok()?;
                bytes.resize(length, 0);
            }
            (Memory::Shared(_), None) => return None,
        }
        self.length = length;
        self.memory.bytes_mut().get_mut(..length)
    }

    fn bytes(&self) -> &[u8] {
        &self.memory.bytes()[..self.length]
    }

    /// Returns the first `samples` samples of the arena for the warm-up; their contents do not matter. They are in the
    /// memory of loaded samples, so that an engine which reads that memory directly is warmed up too.
    pub(crate) fn blank(&self, samples: usize) -> Input<'_> {
        let bytes = samples * self.sizes.of(self.sizes.smallest_sample());
        match self.bytes().get(..bytes) {
            Some(bytes) => Input::Contiguous(bytes),
            None => Input::Absent,
        }
    }

    /// Records which samples the space now contains. All of them must be in the dataset.
    pub(crate) fn fill(&mut self, samples: &[QuerySampleIndex]) {
        self.order.extend_from_slice(samples);
        if let SampleSizes::Each(_) = self.sizes {
            let sizes = samples.iter().map(|&index| self.sizes.of(index));
            self.begins.extend(sizes.scan(0, |end, bytes| {
                let begin = *end;
                *end += bytes;
                Some(begin)
            }));
        }
        for (slot, &index) in (0_u32..).zip(samples) {
            // If a sample has several slots, the first one is used. A query that continues into the padding after the
            // set begins before it.
            if self.slots[index] == NOT_LOADED {
                self.slots[index] = slot;
            }
        }
    }

    /// Returns the batch of `samples`: contiguous if they were loaded in this order, otherwise scattered, with their
    /// indices and slots in `memory`.
    ///
    /// # Errors
    /// [`HarnessError::NotLoaded`].
    pub(crate) fn batch<'a>(
        &'a self,
        samples: &'a [QuerySample],
        memory: &'a mut BatchMemory,
    ) -> Result<Batch<'a>, HarnessError> {
        let absent = Input::Absent;
        let Some(first) = samples.first() else {
            return Ok(Batch {
                samples: &[],
                input: absent,
            });
        };
        let slot = self.slot(first.index)?;
        let run = self.order.get(slot..slot + samples.len());
        let is_in_order = |run: &&[QuerySampleIndex]| {
            run.iter()
                .zip(samples)
                .all(|(loaded, sample)| *loaded == sample.index)
        };
        if let Some(run) = run.filter(is_in_order) {
            let bytes = match &self.sizes {
                SampleSizes::Equal(bytes) => slot * bytes..(slot + samples.len()) * bytes,
                SampleSizes::Each(_) => {
                    let sizes = samples.iter().map(|sample| self.sizes.of(sample.index));
                    self.begins[slot]..self.begins[slot] + sizes.sum::<usize>()
                }
            };
            return Ok(Batch {
                samples: run,
                input: Input::Contiguous(&self.bytes()[bytes]),
            });
        }
        let BatchMemory { indices, slots } = memory;
        let input = match self.sizes {
            // Engines for such samples take one at a time, which is always contiguous.
            SampleSizes::Each(_) => absent,
            SampleSizes::Equal(_) => {
                slots.clear();
                for sample in samples {
                    slots.push(self.slot(sample.index)?);
                }
                Input::Scattered {
                    arena: self.bytes(),
                    slots,
                }
            }
        };
        Ok(Batch {
            samples: self::indices(samples, indices),
            input,
        })
    }

    fn slot(&self, index: QuerySampleIndex) -> Result<usize, HarnessError> {
        match self.slots.get(index) {
            Some(&slot) if slot != NOT_LOADED => Ok(slot as usize),
            _ => Err(HarnessError::NotLoaded(index)),
        }
    }
}
