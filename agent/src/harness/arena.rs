//! The memory of a loadable set: samples behind each other in LoadGen's own order, and where each of them lies.

use regatta_loadgen::sut::{QuerySample, QuerySampleIndex};

use super::fault::HarnessError;
use crate::engines::Input;

/// The samples that are loaded.
pub(crate) struct Arena {
    bytes: Vec<u8>,
    sample_bytes: usize,
    /// The sample in each slot.
    order: Vec<QuerySampleIndex>,
    /// The first slot of each sample of the dataset, `NOT_LOADED` where it has none.
    slots: Vec<u32>,
}

const NOT_LOADED: u32 = u32::MAX;

impl Arena {
    /// An empty arena for samples of `sample_bytes` out of a dataset of `total`.
    pub(crate) fn new(total: usize, sample_bytes: usize) -> Self {
        Self {
            bytes: Vec::new(),
            sample_bytes,
            order: Vec::new(),
            slots: vec![NOT_LOADED; total],
        }
    }

    /// Forgets the samples and keeps the memory for the next set.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        for &index in &self.order {
            self.slots[index] = NOT_LOADED;
        }
        self.order.clear();
    }

    /// Forgets the samples and gives blank room for so many others; `None` when memory does not suffice.
    pub(crate) fn make_room(&mut self, samples: usize) -> Option<&mut [u8]> {
        self.clear();
        u32::try_from(samples).ok().filter(|&slots| slots < NOT_LOADED)?;
        let length = samples.checked_mul(self.sample_bytes)?;
        self.bytes.try_reserve_exact(length).ok()?;
        self.bytes.resize(length, 0);
        Some(&mut self.bytes)
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
                &self.bytes[begin..begin + samples.len() * self.sample_bytes],
            ));
        }
        slots.clear();
        for sample in samples {
            slots.push(self.slot(sample.index)?);
        }
        Ok(Input::Scattered {
            arena: &self.bytes,
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
