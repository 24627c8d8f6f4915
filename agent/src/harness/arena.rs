//! The memory of a loadable set: samples behind each other in LoadGen's own order, and where each of them lies.

use std::sync::Arc;

use regatta_cuda::HostMemory;
use regatta_loadgen::sut::{QuerySample, QuerySampleIndex};

use super::fault::HarnessError;
use crate::engines::{Input, tensorrt::SharedSamples};

/// The samples that are loaded.
pub(crate) struct Arena {
    memory: Memory,
    /// The beginning of the memory that holds samples.
    length: usize,
    /// Where memory comes from, when the engine reads it without a copy.
    shared: Option<Arc<SharedSamples>>,
    sample_bytes: usize,
    /// The sample in each slot.
    order: Vec<QuerySampleIndex>,
    /// The first slot of each sample of the dataset, `NOT_LOADED` where it has none.
    slots: Vec<u32>,
}

const NOT_LOADED: u32 = u32::MAX;

/// The samples' memory: ours alone, or shared with a device.
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
    /// An empty arena for samples of `sample_bytes` out of a dataset of `total`.
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

    /// Takes memory from there from now on.
    pub(crate) fn share(&mut self, shared: Arc<SharedSamples>) {
        self.clear();
        self.shared = Some(shared);
    }

    /// Forgets the samples and keeps the memory for the next set.
    pub(crate) fn clear(&mut self) {
        self.length = 0;
        for &index in &self.order {
            self.slots[index] = NOT_LOADED;
        }
        self.order.clear();
    }

    /// Forgets the samples and gives blank room for so many others; `None` when memory does not suffice.
    pub(crate) fn free_space(&mut self, samples: usize) -> Option<&mut [u8]> {
        self.clear();
        u32::try_from(samples).ok().filter(|&slots| slots < NOT_LOADED)?;
        let length = samples.checked_mul(self.sample_bytes)?;
        match (&mut self.memory, &self.shared) {
            (Memory::Shared(memory), _) if memory.bytes().len() >= length => {}
            (memory, Some(shared)) => {
                // The old memory goes first: two sets may not fit side by side.
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

    /// The data of so many samples of no meaning, for which there is room. It lies where loaded samples do, so that an engine
    /// which reads these in place is warmed in doing so.
    pub(crate) fn blank(&self, samples: usize) -> Input<'_> {
        match self.bytes().get(..samples * self.sample_bytes) {
            Some(bytes) => Input::Contiguous(bytes),
            None => Input::Absent,
        }
    }

    /// Says which samples the room now holds. All of them belong to the dataset.
    pub(crate) fn fill(&mut self, samples: &[QuerySampleIndex]) {
        self.order.extend_from_slice(samples);
        for (slot, &index) in (0_u32..).zip(samples) {
            // Of several slots of a sample the first one counts: a query that runs on into the padding behind the set
            // begins before it.
            if self.slots[index] == NOT_LOADED {
                self.slots[index] = slot;
            }
        }
    }

    /// Where the data of `samples` lies: in one piece if they were loaded behind each other, otherwise apart, with
    /// `slots` as memory for their places.
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
