//! The queue between LoadGen's issuing thread and the workers: samples go in as issued and come out as batches. It does
//! not know engines. A policy decides how units share the samples. Sequences of different lengths may be sorted.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use regatta_engines::SequenceBuckets;
use regatta_loadgen::sut::{Completer, Query, QuerySample};
use regatta_unit_sharing::policy::Policy;

use super::sequences::longest_first;

/// When a worker takes a partial batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gather {
    /// When the oldest sample has waited this long in the queue, for more samples or for a worker.
    Within(Duration),
    /// Only after LoadGen's flush. Every batch but the last of a series is full.
    UntilFull,
}

impl Gather {
    /// Returns how long a sample waits for a fuller batch, if it waits.
    const fn patience(self) -> Option<Duration> {
        match self {
            Self::Within(time) if !time.is_zero() => Some(time),
            Self::Within(_) | Self::UntilFull => None,
        }
    }
}

/// Initial capacity in samples of a queue without a limit. No Server run that meets its latency bound has more samples
/// waiting. Beyond this, the queue grows on the issuing thread.
const RESERVED: usize = 1 << 16;

/// The error for a queue that is closed, with the first reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueueClosed(pub(crate) String);

/// Samples that wait for workers.
pub(crate) struct SampleQueue {
    gather: Gather,
    /// Number of samples that are added under one lock.
    at_once: usize,
    /// Number of samples from which the issuing thread blocks. `None` never blocks it, because that would change
    /// LoadGen's schedule.
    capacity: Option<usize>,
    /// The lengths of sequences by which a query's samples are sorted. A batch has samples of one length.
    sorted: Arc<SequenceBuckets>,
    /// Start of the policy's clock.
    begun: Instant,
    state: Mutex<State>,
    arrived: Condvar,
    not_full: Condvar,
}

#[derive(Default)]
struct State {
    samples: VecDeque<QuerySample>,
    /// Arrival time of each sample, if samples wait for fuller batches.
    arrivals: VecDeque<Instant>,
    /// The policy that assigns samples to units. `None` lets any free worker take them.
    policy: Option<Box<dyn Policy + Send>>,
    /// Samples of the current queries that no worker has taken, including those not yet in the queue.
    left: usize,
    /// Receiver of the answers. A series has one completer, and series do not overlap.
    completer: Option<Completer>,
    flushed: bool,
    /// Why the queue is closed.
    closed: Option<String>,
}

impl State {
    /// Returns the number of samples that the policy assigns to `unit` now. The policy is only called when all samples
    /// that it may assign are in the queue.
    fn portion(&mut self, unit: usize, most: usize, now: f64) -> usize {
        let at_hand = self.samples.len();
        match &mut self.policy {
            Some(policy) if self.left > 0 && at_hand >= most.min(self.left) => {
                policy.take(unit, now, self.left).min(most).min(at_hand)
            }
            _ => 0,
        }
    }
}

impl SampleQueue {
    /// Returns an empty queue that adds `at_once` samples under one lock and blocks the issuing thread from `capacity`.
    /// With a `policy`, workers take what it assigns.
    pub(crate) fn new(
        gather: Gather,
        at_once: usize,
        capacity: Option<usize>,
        policy: Option<Box<dyn Policy + Send>>,
    ) -> Self {
        // The queue may add `at_once` samples when it is one below its capacity.
        let reserved = capacity.map_or(RESERVED, |capacity| capacity + at_once);
        let arrivals = if gather.patience().is_some() { reserved } else { 0 };
        let state = Mutex::new(State {
            samples: VecDeque::with_capacity(reserved),
            arrivals: VecDeque::with_capacity(arrivals),
            policy,
            ..State::default()
        });
        Self {
            gather,
            at_once,
            capacity,
            sorted: Arc::default(),
            begun: Instant::now(),
            state,
            arrived: Condvar::new(),
            not_full: Condvar::new(),
        }
    }

    /// Sorts each query's samples by their lengths. There must be no policy, because it would not know which samples share a batch.
    pub(crate) fn sorted_by(self, sorted: Arc<SequenceBuckets>) -> Self {
        Self { sorted, ..self }
    }

    /// Adds a query's samples, and waits for space if the queue has a capacity.
    ///
    /// # Errors
    /// When the queue was closed.
    pub(crate) fn push(&self, query: Query<'_>, completer: &Completer) -> Result<(), QueueClosed> {
        self.lock().left += query.len();
        if self.sorted.are_several() {
            self.add(longest_first(query, &self.sorted), query.len(), completer)
        } else {
            self.add(query.iter(), query.len(), completer)
        }
    }

    /// Adds `count` samples.
    fn add(
        &self,
        mut samples: impl Iterator<Item = QuerySample>,
        count: usize,
        completer: &Completer,
    ) -> Result<(), QueueClosed> {
        let mut begin = 0;
        while begin < count {
            let mut state = self.wait_for_space()?;
            let end = count.min(begin + self.at_once);
            state.samples.extend(samples.by_ref().take(end - begin));
            if self.gather.patience().is_some() {
                let now = Instant::now();
                state.arrivals.extend((begin..end).map(|_| now));
            }
            state.completer = Some(completer.clone());
            state.flushed = false;
            drop(state);
            if end - begin == 1 && count == 1 {
                self.arrived.notify_one()
            } else {
                self.arrived.notify_all()
            }
            begin = end;
        }
        Ok(())
    }

    fn wait_for_space(&self) -> Result<MutexGuard<'_, State>, QueueClosed> {
        let mut state = self.lock();
        loop {
            if let Some(reason) = &state.closed {
                return Err(QueueClosed(reason.clone()));
            }
            if self
                .capacity
                .is_none_or(|capacity| state.samples.len() < capacity)
            {
                return Ok(state);
            }
            state = self.not_full.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Releases samples that waited for fuller batches.
    ///
    /// # Errors
    /// When the queue was closed.
    pub(crate) fn flush(&self) -> Result<(), QueueClosed> {
        let mut state = self.lock();
        state.flushed = true;
        self.arrived.notify_all();
        state
            .closed
            .clone()
            .map_or(Ok(()), |reason| Err(QueueClosed(reason)))
    }

    /// Closes the queue and ends the workers. The first reason is kept.
    pub(crate) fn close(&self, reason: &str) {
        self.lock().closed.get_or_insert_with(|| reason.to_owned());
        self.arrived.notify_all();
        self.not_full.notify_all();
    }

    /// Waits for a batch of at most `most` samples for `unit` and writes it to `batch`. Returns the receiver of the
    /// answers, or `None` if the queue is closed.
    pub(crate) fn take(&self, batch: &mut Vec<QuerySample>, most: usize, unit: usize) -> Option<Completer> {
        batch.clear();
        let mut state = self.lock();
        loop {
            if state.closed.is_some() {
                return None;
            }
            let (waiting, is_last_of_length) = self.front(&state, most);
            let size = if state.policy.is_some() {
                state.portion(unit, most, self.now())
            } else if waiting >= most || is_last_of_length || (waiting > 0 && self.may_be_short(&state)) {
                waiting
            } else {
                0
            };
            if size > 0 {
                batch.extend(state.samples.drain(..size));
                let noted = size.min(state.arrivals.len());
                state.arrivals.drain(..noted);
                state.left -= size.min(state.left);
                self.not_full.notify_all();
                return state.completer.clone();
            }
            state = match self.deadline(&state) {
                Some(end) => {
                    let left = Instant::saturating_duration_since(&end, Instant::now());
                    let waited = self.arrived.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Returns how many samples at the front may be one batch of at most `most`, and whether a sample of another length follows them.
    fn front(&self, state: &State, most: usize) -> (usize, bool) {
        let waiting = state.samples.len().min(most);
        let first = state.samples.front().filter(|_| self.sorted.are_several());
        let Some(first) = first.map(|sample| self.sorted.of(sample.index)) else {
            return (waiting, false);
        };
        let of_length = |sample: &&QuerySample| self.sorted.of(sample.index) == first;
        let size = state.samples.iter().take(most).take_while(of_length).count();
        (size, size < waiting)
    }

    /// Tells the policy that the oldest batch of `unit` is done. This may change what other units take.
    pub(crate) fn done(&self, unit: usize) {
        let now = self.now();
        let mut state = self.lock();
        if let Some(policy) = &mut state.policy {
            policy.done(unit, now);
            drop(state);
            self.arrived.notify_all();
        }
    }

    /// Returns the seconds on the policy's clock.
    fn now(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Returns whether a partial batch may be taken.
    fn may_be_short(&self, state: &State) -> bool {
        match self.gather {
            _ if state.flushed => true,
            Gather::UntilFull => false,
            Gather::Within(_) => self.deadline(state).is_none_or(|end| Instant::now() >= end),
        }
    }

    /// Returns the time at which the oldest sample has waited long enough. `None` if there is no sample or samples do
    /// not wait.
    fn deadline(&self, state: &State) -> Option<Instant> {
        Some(*state.arrivals.front()? + self.gather.patience()?)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use regatta_loadgen::sut::{CompletionSink, QuerySampleResponse, ResponseId, SutError};
    use regatta_test_support::counting_allocator::allocations;
    use regatta_unit_sharing::{policy::FinishTogether, service_times::ServiceTimes};

    use super::*;

    struct Nobody;

    impl CompletionSink for Nobody {
        fn complete(&self, _: &[QuerySampleResponse<'_>]) {}

        fn first_token(&self, _: &[QuerySampleResponse<'_>]) {}

        fn fail(&self, _: SutError) {}
    }

    #[test]
    fn a_batch_waits_no_longer_than_its_oldest_sample_may() {
        let hour = Duration::from_secs(3600);
        let queue = SampleQueue::new(Gather::Within(hour), 1, None, None);
        let completer = Completer::new(std::sync::Arc::new(Nobody));
        let push = |index| {
            let sample = QuerySample {
                id: ResponseId(1),
                index,
            };
            queue.push(Query::Slice(&[sample]), &completer).unwrap();
        };
        let deadline = || queue.deadline(&queue.lock());
        assert_eq!(deadline(), None);
        let before = Instant::now();
        push(1);
        let first = deadline().unwrap();
        assert!(first >= before + hour && first <= Instant::now() + hour);
        std::thread::sleep(Duration::from_millis(2));
        push(2);
        assert_eq!(deadline(), Some(first), "who comes later does not put it off");
        let mut batch = Vec::new();
        queue.take(&mut batch, 1, 0).unwrap();
        assert_eq!(batch[0].index, 1);
        assert!(deadline() > Some(first), "the next has its own");
        queue.take(&mut batch, 1, 0).unwrap();
        assert_eq!(deadline(), None);
    }

    #[test]
    fn a_batch_has_samples_of_one_length() {
        let lengths = SequenceBuckets::new(vec![2, 4], (0..9).map(|index| 2 + index % 3));
        let queue = SampleQueue::new(Gather::UntilFull, 4, Some(64), None).sorted_by(Arc::new(lengths));
        let completer = Completer::new(Arc::new(Nobody));
        let samples: Vec<_> = (0..9)
            .map(|index| QuerySample {
                id: ResponseId(index as u64),
                index,
            })
            .collect();
        queue.push(Query::Slice(&samples), &completer).unwrap();
        queue.flush().unwrap();
        let mut batch = Vec::new();
        let mut batches = Vec::new();
        while queue.lock().left > 0 {
            queue.take(&mut batch, 4, 0).unwrap();
            batches.push(batch.iter().map(|sample| sample.index).collect::<Vec<_>>());
        }
        assert_eq!(batches, [vec![1, 2, 4, 5], vec![7, 8], vec![0, 3, 6]]);
    }

    /// Adds these queries and takes them out again, a few times, on one thread. Returns the allocations.
    fn allocations_of(queue: &SampleQueue, queries: &[usize], batch: usize) -> u64 {
        let completer = Completer::new(std::sync::Arc::new(Nobody));
        let sample = QuerySample {
            id: ResponseId(1),
            index: 0,
        };
        let (samples, mut taken) = (vec![sample; batch.max(64)], Vec::with_capacity(batch));
        let before = allocations();
        for _ in 0..3 {
            for &length in queries {
                queue.push(Query::Slice(&samples[..length]), &completer).unwrap();
            }
            queue.flush().unwrap();
            while queue.lock().left > 0 {
                queue.take(&mut taken, batch, 0).unwrap();
                queue.done(0);
            }
        }
        allocations() - before
    }

    #[test]
    fn a_full_queue_allocates_nothing() {
        let times = ServiceTimes::new(vec![(1, 1e-3), (16, 4e-3)]).unwrap();
        let policy = || Box::new(FinishTogether::new(vec![(times.clone(), 16)])) as Box<_>;
        for policy in [None, Some(policy())] {
            let queue = SampleQueue::new(Gather::UntilFull, 16, Some(64), policy);
            // 63 samples are in the queue, below its capacity, when the last 16 arrive.
            assert_eq!(allocations_of(&queue, &[63, 16], 16), 0);
        }
        let lengths = SequenceBuckets::new(vec![1, 2], std::iter::once(1));
        let queue = SampleQueue::new(Gather::UntilFull, 16, Some(64), None).sorted_by(Arc::new(lengths));
        assert_eq!(allocations_of(&queue, &[63, 16], 16), 0);
        let patience = Gather::Within(Duration::from_micros(1));
        let queue = SampleQueue::new(patience, 1, None, None);
        assert_eq!(allocations_of(&queue, &[1; RESERVED], 64), 0);
    }
}
