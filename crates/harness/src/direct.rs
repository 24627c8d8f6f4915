//! The SUT without a queue: LoadGen's issuing thread computes within the issue call. This is the shortest path for one
//! query at a time, and the only one for engines that answer immediately.

use std::sync::{Arc, Mutex, PoisonError};

use regatta_engines::SequenceBuckets;
use regatta_loadgen::sut::{Completer, Query, QuerySample, SutError, SystemUnderTest};

use super::{
    fault::{FirstFault, HarnessError},
    lane::Lane,
    sequences::longest_first,
};

/// A SUT that computes on the issuing thread.
pub(crate) struct DirectSut {
    name: String,
    /// The lane. Several issuing threads take turns, with one lock per query.
    lane: Mutex<DirectLane>,
    fault: FirstFault,
}

struct DirectLane {
    lane: Lane,
    /// Buffer for a batch of a query whose samples are not contiguous in memory, or are sorted.
    batch: Vec<QuerySample>,
    /// The lengths of sequences by which a query's samples are sorted.
    sorted: Arc<SequenceBuckets>,
}

impl DirectSut {
    /// Returns a SUT with one lane. Batches have samples of one length in `sorted`.
    pub(crate) fn new(name: String, lane: Lane, sorted: Arc<SequenceBuckets>, fault: FirstFault) -> Self {
        let batch = Vec::with_capacity(lane.max_batch());
        Self {
            name,
            lane: Mutex::new(DirectLane { lane, batch, sorted }),
            fault,
        }
    }
}

impl DirectLane {
    fn serve(&mut self, query: Query<'_>, completer: &Completer) -> Result<(), HarnessError> {
        let most = self.lane.max_batch();
        if self.sorted.are_several() {
            return self.serve_sorted(query, most, completer);
        }
        if let Some(samples) = query.as_slice() {
            return samples
                .chunks(most)
                .try_for_each(|batch| self.lane.serve(batch, completer));
        }
        for begin in (0..query.len()).step_by(most) {
            let end = query.len().min(begin + most);
            self.batch.clear();
            self.batch
                .extend((begin..end).map(|position| query.sample(position)));
            self.lane.serve(&self.batch, completer)?;
        }
        Ok(())
    }

    fn serve_sorted(
        &mut self,
        query: Query<'_>,
        most: usize,
        completer: &Completer,
    ) -> Result<(), HarnessError> {
        self.batch.clear();
        for sample in longest_first(query, &self.sorted) {
            let bucket = self.sorted.of(sample.index);
            let differs = self
                .batch
                .first()
                .is_some_and(|first| self.sorted.of(first.index) != bucket);
            if differs || self.batch.len() == most {
                self.lane.serve(&self.batch, completer)?;
                self.batch.clear();
            }
            self.batch.push(sample);
        }
        if self.batch.is_empty() {
            return Ok(());
        }
        self.lane.serve(&self.batch, completer)
    }
}

impl SystemUnderTest for DirectSut {
    fn name(&self) -> &str {
        &self.name
    }

    fn issue_query(&self, query: Query<'_>, completer: &Completer) -> Result<(), SutError> {
        let mut lane = self.lane.lock().unwrap_or_else(PoisonError::into_inner);
        lane.serve(query, completer)
            .map_err(|error| self.fault.remember(error))
    }

    fn flush_queries(&self) -> Result<(), SutError> {
        Ok(())
    }
}
