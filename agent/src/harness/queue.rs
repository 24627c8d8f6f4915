//! The queue between LoadGen's issuing thread and the worker threads: samples go in as they are issued and come out as
//! batches. It knows nothing of engines.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use regatta_loadgen::sut::{Completer, Query, QuerySample};

/// When a worker takes a batch that is not full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gather {
    /// Whenever there is a sample and it has waited this long.
    Within(Duration),
    /// Only once LoadGen has flushed: every batch but a series' last is full.
    UntilFull,
}

/// Samples on their way to the workers.
pub(crate) struct SampleQueue {
    gather: Gather,
    /// Samples above which the issuing thread waits; `None` never holds it up, as its schedule is not ours to move.
    capacity: Option<usize>,
    state: Mutex<State>,
    arrived: Condvar,
    room: Condvar,
}

#[derive(Default)]
struct State {
    samples: VecDeque<QuerySample>,
    /// Where the answers of these samples go. A series has one completer, and series do not overlap.
    completer: Option<Completer>,
    flushed: bool,
    /// Why no more samples are taken.
    closed: Option<String>,
}

impl SampleQueue {
    /// An empty queue that holds up the issuing thread above `capacity` samples.
    pub(crate) fn new(gather: Gather, capacity: Option<usize>) -> Self {
        let samples = VecDeque::with_capacity(capacity.unwrap_or(4096));
        let state = Mutex::new(State {
            samples,
            ..State::default()
        });
        Self {
            gather,
            capacity,
            state,
            arrived: Condvar::new(),
            room: Condvar::new(),
        }
    }

    /// Puts a query's samples in, `at_once` under one lock, and waits for room where the queue has a capacity.
    ///
    /// # Errors
    /// The reason for which the queue was closed.
    pub(crate) fn push(&self, query: Query<'_>, at_once: usize, completer: &Completer) -> Result<(), String> {
        let mut begin = 0;
        while begin < query.len() {
            let mut state = self.wait_for_room()?;
            let end = query.len().min(begin + at_once);
            state
                .samples
                .extend((begin..end).map(|position| query.sample(position)));
            state.completer = Some(completer.clone());
            state.flushed = false;
            drop(state);
            if end - begin == 1 {
                self.arrived.notify_one()
            } else {
                self.arrived.notify_all()
            }
            begin = end;
        }
        Ok(())
    }

    fn wait_for_room(&self) -> Result<MutexGuard<'_, State>, String> {
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

    /// Waits for a batch of at most `most` samples and puts it into `batch`, which it empties first. Returns where its
    /// answers go, or `None` when the queue is closed.
    pub(crate) fn take(&self, batch: &mut Vec<QuerySample>, most: usize) -> Option<Completer> {
        batch.clear();
        let mut state = self.lock();
        let mut patience = None;
        loop {
            if state.closed.is_some() {
                return None;
            }
            let waiting = state.samples.len();
            if waiting == 0 {
                // Another worker took what this one had patience with.
                patience = None;
            }
            if waiting >= most || (waiting > 0 && self.may_be_short(&state, &mut patience)) {
                batch.extend(state.samples.drain(..waiting.min(most)));
                self.room.notify_all();
                return state.completer.clone();
            }
            state = match (waiting, patience) {
                (1.., Some(end)) => {
                    let left = Instant::saturating_duration_since(&end, Instant::now());
                    let waited = self.arrived.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                _ => self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Whether a batch may go although it is not full. `patience` is when the worker stops waiting for more.
    fn may_be_short(&self, state: &State, patience: &mut Option<Instant>) -> bool {
        match self.gather {
            _ if state.flushed => true,
            Gather::UntilFull => false,
            Gather::Within(Duration::ZERO) => true,
            Gather::Within(time) => {
                let now = Instant::now();
                now >= *patience.get_or_insert(now + time)
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
