//! The memory of a loadable set: the samples in LoadGen's order, and the position of each sample.

use std::sync::Arc;

use regatta_cuda::HostMemory;
use regatta_loadgen::sut::{QuerySample, QuerySampleIndex};

use super::fault::HarnessError;
use crate::engines::{Input, tensorrt::SharedSamples};

/// The loaded samples.
pub(crate) struct Arena {
    memory: Memory,
    /// Length in bytes of the part of the memory that is in use.
    length: usize,
    /// Allocator of the memory, if the engine reads samples without a copy.
    shared: Option<Arc<SharedSamples>>,
    sample_bytes: usize,
    /// The sample in each slot.
    order: Vec<QuerySampleIndex>,
    /// The first slot of each sample of the dataset. `NOT_LOADED` if it has none.
    slots: Vec<u32>,
}

const NOT_LOADED: u32 = u32::MAX;

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
    /// Returns an empty arena for samples of `sample_bytes` bytes from a dataset of `total` samples.
    pub(crate) fn new(total: usize, sample_bytes: usize) -> Self {
        Self {
            memory: Memory::Own(Vec::new()),
            length: 0,
            shared: None,
            sample_bytes,
            order: Vec::new(),
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
    }

    /// Drops the samples and returns space for `samples` new ones. Returns `None` if there is not enough memory.
    pub(crate) fn free_space(&mut self, samples: usize) -> Option<&mut [u8]> {
        self.clear();
        u32::try_from(samples).ok().filter(|&slots| slots < NOT_LOADED)?;
        let length = samples.checked_mul(self.sample_bytes)?;
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
        match self.bytes().get(..samples * self.sample_bytes) {
            Some(bytes) => Input::Contiguous(bytes),
            None => Input::Absent,
        }
    }

    /// Records which samples the space now contains. All of them must be in the dataset.
    pub(crate) fn fill(&mut self, samples: &[QuerySampleIndex]) {
        self.order.extend_from_slice(samples);
        for (slot, &index) in (0_u32..).zip(samples) {
            // If a sample has several slots, the first one is used. A query that continues into the padding after the
            // set begins before it.
            if self.slots[index] == NOT_LOADED {
                self.slots[index] = slot;
            }
        }
    }

    /// Returns the data of `samples`: contiguous if they were loaded in this order, otherwise scattered, with their
    /// positions in `slots`.
    ///
    /// # Errors
    /// [`HarnessError::NotLoaded`].
    pub(crate) fn input<'a>(
        &'a self,
        samples: &[QuerySample],
        slots: &'a mut Vec<usize>,
    ) -> Result<Input<'a>, HarnessError> {
        let Some(first) = samples.first() else {
            return Ok(Input::Absent);
        };
        let slot = self.slot(first.index)?;
        let run = self.order.get(slot..slot + samples.len());
        if run.is_some_and(|run| {
            run.iter()
                .zip(samples)
                .all(|(loaded, sample)| *loaded == sample.index)
        }) {
            let begin = slot * self.sample_bytes;
            return Ok(Input::Contiguous(
                &self.bytes()[begin..begin + samples.len() * self.sample_bytes],
            ));
        }
        slots.clear();
        for sample in samples {
            slots.push(self.slot(sample.index)?);
        }
        Ok(Input::Scattered {
            arena: self.bytes(),
            slots,
        })
    }

    fn slot(&self, index: QuerySampleIndex) -> Result<usize, HarnessError> {
        match self.slots.get(index) {
            Some(&slot) if slot != NOT_LOADED => Ok(slot as usize),
            _ => Err(HarnessError::NotLoaded(index)),
        }
    }
}
