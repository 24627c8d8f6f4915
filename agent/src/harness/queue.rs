//! The queue between LoadGen's issuing thread and the worker threads: samples go in as they are issued and come out as
//! batches. It knows nothing of engines; how samples are shared among units is a policy's affair.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use regatta_loadgen::sut::{Completer, Query, QuerySample};
use regatta_schedule::policy::Policy;

/// When a worker takes a batch that is not full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gather {
    /// Once the oldest sample has waited this long, wherever it waited: for company, or for a worker.
    Within(Duration),
    /// Only once LoadGen has flushed: every batch but a series' last is full.
    UntilFull,
}

impl Gather {
    /// How long a sample waits for company, where it does.
    const fn patience(self) -> Option<Duration> {
        match self {
            Self::Within(time) if !time.is_zero() => Some(time),
            Self::Within(_) | Self::UntilFull => None,
        }
    }
}

/// Samples for which a queue without a capacity has room from the start: more than can be answered in time by anything that a
/// Server run is made for. Behind that the queue grows, on the issuing thread, in a run that is hopelessly late.
const ROOM: usize = 1 << 16;

/// Samples on their way to the workers.
pub(crate) struct SampleQueue {
    gather: Gather,
    /// Samples that are put in under one lock.
    at_once: usize,
    /// Samples above which the issuing thread waits; `None` never holds it up, as its schedule is not ours to move.
    capacity: Option<usize>,
    /// The beginning of the policy's time.
    begun: Instant,
    state: Mutex<State>,
    arrived: Condvar,
    room: Condvar,
}

#[derive(Default)]
struct State {
    samples: VecDeque<QuerySample>,
    /// When each of them came, where they are to wait for company.
    arrivals: VecDeque<Instant>,
    /// Who takes how many, where that is not simply whoever comes first.
    policy: Option<Box<dyn Policy + Send>>,
    /// Samples of the queries at hand that nobody has taken, put in or not.
    left: usize,
    /// Where the answers of these samples go. A series has one completer, and series do not overlap.
    completer: Option<Completer>,
    flushed: bool,
    /// Why no more samples are taken.
    closed: Option<String>,
}

impl State {
    /// What the policy gives `unit` now. It is asked only when all that it may give is at hand.
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
    /// An empty queue that takes `at_once` samples under one lock and holds up the issuing thread above `capacity`. With a
    /// `policy`, workers take what it gives them.
    pub(crate) fn new(
        gather: Gather,
        at_once: usize,
        capacity: Option<usize>,
        policy: Option<Box<dyn Policy + Send>>,
    ) -> Self {
        // What is put in when one sample is missing to the capacity fits in too.
        let room = capacity.map_or(ROOM, |capacity| capacity + at_once);
        let arrivals = if gather.patience().is_some() { room } else { 0 };
        let state = Mutex::new(State {
            samples: VecDeque::with_capacity(room),
            arrivals: VecDeque::with_capacity(arrivals),
            policy,
            ..State::default()
        });
        Self {
            gather,
            at_once,
            capacity,
            begun: Instant::now(),
            state,
            arrived: Condvar::new(),
            room: Condvar::new(),
        }
    }

    /// Puts a query's samples in, and waits for room where the queue has a capacity.
    ///
    /// # Errors
    /// The reason for which the queue was closed.
    pub(crate) fn push(&self, query: Query<'_>, completer: &Completer) -> Result<(), String> {
        self.lock().left += query.len();
        let mut begin = 0;
        while begin < query.len() {
            let mut state = self.wait_for_space()?;
            let end = query.len().min(begin + self.at_once);
            state
                .samples
                .extend((begin..end).map(|position| query.sample(position)));
            if self.gather.patience().is_some() {
                let now = Instant::now();
                state.arrivals.extend((begin..end).map(|_| now));
            }
            state.completer = Some(completer.clone());
            state.flushed = false;
            drop(state);
            if end - begin == 1 && query.len() == 1 {
                self.arrived.notify_one()
            } else {
                self.arrived.notify_all()
            }
            begin = end;
        }
        Ok(())
    }

    fn wait_for_space(&self) -> Result<MutexGuard<'_, State>, String> {
        let mut state = self.lock();
        loop {
            if let Some(reason) = &state.closed {
                return Err(reason.clone());
            }
            if self
                .capacity
                .is_none_or(|capacity| state.samples.len() < capacity)
            {
                return Ok(state);
            }
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets go what was held back for fuller batches.
    ///
    /// # Errors
    /// The reason for which the queue was closed.
    pub(crate) fn flush(&self) -> Result<(), String> {
        let mut state = self.lock();
        state.flushed = true;
        self.arrived.notify_all();
        state.closed.clone().map_or(Ok(()), Err)
    }

    /// Takes no more samples and sends the workers home. The first reason stays.
    pub(crate) fn close(&self, reason: &str) {
        self.lock().closed.get_or_insert_with(|| reason.to_owned());
        self.arrived.notify_all();
        self.room.notify_all();
    }

    /// Waits for a batch of at most `most` samples for `unit` and puts it into `batch`, which it empties first. Returns
    /// where its answers go, or `None` when the queue is closed.
    pub(crate) fn take(&self, batch: &mut Vec<QuerySample>, most: usize, unit: usize) -> Option<Completer> {
        batch.clear();
        let mut state = self.lock();
        loop {
            if state.closed.is_some() {
                return None;
            }
            let waiting = state.samples.len();
            let size = if state.policy.is_some() {
                state.portion(unit, most, self.now())
            } else if waiting >= most || (waiting > 0 && self.may_be_short(&state)) {
                waiting.min(most)
            } else {
                0
            };
            if size > 0 {
                batch.extend(state.samples.drain(..size));
                let noted = size.min(state.arrivals.len());
                state.arrivals.drain(..noted);
                state.left -= size.min(state.left);
                self.room.notify_all();
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

    /// The batch that `unit` took longest ago is done, which may change what the others take.
    pub(crate) fn done(&self, unit: usize) {
        let now = self.now();
        let mut state = self.lock();
        if let Some(policy) = &mut state.policy {
            policy.done(unit, now);
            drop(state);
            self.arrived.notify_all();
        }
    }

    /// Seconds on the policy's clock.
    fn now(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Whether a batch may go although it is not full.
    fn may_be_short(&self, state: &State) -> bool {
        match self.gather {
            _ if state.flushed => true,
            Gather::UntilFull => false,
            Gather::Within(_) => self.deadline(state).is_none_or(|end| Instant::now() >= end),
        }
    }

    /// When the oldest sample has waited long enough; `None` where there is no sample, or none is to wait.
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
    use regatta_schedule::{policy::FinishTogether, service_times::ServiceTimes};

    use super::*;
    use crate::counting_allocator::allocations;

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

    /// Puts these queries in and takes them out again, a few times, on one thread.
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
            // 63 lie in the queue, so there is room, when the last 16 come.
            assert_eq!(allocations_of(&queue, &[63, 16], 16), 0);
        }
        let patience = Gather::Within(Duration::from_micros(1));
        let queue = SampleQueue::new(patience, 1, None, None);
        assert_eq!(allocations_of(&queue, &[1; ROOM], 64), 0);
    }
}
