//! Receives responses in SingleStream and MultiStream: one query is outstanding, and the issuing thread waits for it.
//!
//! Responding threads claim their sample, stamp it and decrement the count. The issuing thread does all recording.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering},
};

use regatta_text::ErrorChain;

use super::{
    clock::now_ns,
    faults::Faults,
    tap::{AccuracyTap, Answer},
    tokens::TokenRecorder,
    wait::IssuerWaker,
};
use crate::sut::{CompletionSink, QuerySampleResponse, ResponseId, SutError};

/// One sample of the outstanding query.
#[derive(Debug, Default)]
struct Slot {
    /// The response id, shifted left by one. The lowest bit is set when the response has arrived.
    state: AtomicU64,
    done_ns: AtomicI64,
    index: AtomicUsize,
    logged: AtomicBool,
}

/// Bytes per sample of a query.
pub(super) const PER_SAMPLE: usize = size_of::<Slot>();

/// The responses to the outstanding query.
pub(super) struct StreamSink {
    slots: Box<[Slot]>,
    /// The id of the series' first sample.
    first_id: u64,
    unanswered: AtomicUsize,
    scheduled_ns: AtomicI64,
    /// Whether any response may go to the accuracy log.
    logs: bool,
    closed: AtomicBool,
    pub(super) faults: Faults,
    pub(super) waker: IssuerWaker,
    pub(super) tokens: Option<TokenRecorder>,
    tap: Arc<AccuracyTap>,
}

impl StreamSink {
    pub(super) fn new(
        samples_per_query: usize,
        first_sample: u64,
        logs: bool,
        tokens: Option<TokenRecorder>,
        tap: Arc<AccuracyTap>,
    ) -> Self {
        Self {
            slots: (0..samples_per_query).map(|_| Slot::default()).collect(),
            first_id: first_sample + 1,
            unanswered: AtomicUsize::new(0),
            scheduled_ns: AtomicI64::new(0),
            logs,
            closed: AtomicBool::new(false),
            faults: Faults::default(),
            waker: IssuerWaker::for_this_thread(),
            tokens,
            tap,
        }
    }

    /// Marks the slot at `position` as outstanding for the next query. The issuing thread calls this for every position while no query is
    /// outstanding, and then calls [`arm`](Self::arm).
    #[inline]
    pub(super) fn expect(&self, position: usize, id: ResponseId, index: usize, logged: bool) {
        let slot = &self.slots[position];
        if self.logs {
            slot.index.store(index, Ordering::Relaxed);
            slot.logged.store(logged, Ordering::Relaxed);
        }
        slot.state.store(waiting(id), Ordering::Release);
    }

    /// Stamps the query and returns the stamp.
    #[inline]
    pub(super) fn arm(&self) -> i64 {
        self.unanswered.store(self.slots.len(), Ordering::Release);
        let now = now_ns();
        self.scheduled_ns.store(now, Ordering::Release);
        now
    }

    /// Whether the outstanding query is complete, or the run must end.
    #[inline]
    pub(super) fn is_answered(&self) -> bool {
        self.unanswered.load(Ordering::SeqCst) == 0 || self.faults.is_fatal()
    }

    /// Returns the number of samples of the outstanding query without a response.
    #[inline]
    pub(super) fn unanswered(&self) -> usize {
        self.unanswered.load(Ordering::SeqCst)
    }

    /// Returns when the response of the sample at `position` arrived.
    #[inline]
    pub(super) fn done_ns(&self, position: usize) -> i64 {
        self.slots[position].done_ns.load(Ordering::Relaxed)
    }

    /// Returns the library index of the sample at `position`. It is only kept when responses are logged or traced.
    pub(super) fn index(&self, position: usize) -> usize {
        self.slots[position].index.load(Ordering::Relaxed)
    }

    /// Drops all later responses.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    #[inline]
    fn position(&self, id: ResponseId) -> usize {
        if self.slots.len() == 1 {
            return 0;
        }
        let offset = id.0.wrapping_sub(self.first_id) % self.slots.len() as u64;
        usize::try_from(offset).unwrap_or(0)
    }

    /// Claims a sample for this response, or records why it cannot be claimed.
    #[inline]
    fn claim(&self, id: ResponseId) -> Option<usize> {
        let position = self.position(id);
        let waiting = waiting(id);
        let answered = waiting | 1;
        match self.slots[position].state.compare_exchange(
            waiting,
            answered,
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            Ok(_) => Some(position),
            Err(found) => {
                self.refuse(id, found >> 1);
                None
            }
        }
    }

    #[cold]
    fn refuse(&self, id: ResponseId, outstanding: u64) {
        self.faults.note(|| match id.0 {
            id if id == outstanding => "Attempted to complete a sample twice.".to_owned(),
            id if id >= self.first_id && id < outstanding => format!(
                "Received completion for an old sample. Min expected id: {outstanding} Actual id: {id}"
            ),
            id => format!("Received completion for a sample that was never issued: id {id}"),
        });
    }

    fn log(&self, response: &QuerySampleResponse<'_>, position: usize, now: i64) {
        let slot = &self.slots[position];
        let latency = now - self.scheduled_ns.load(Ordering::Acquire);
        let relative = usize::try_from(response.id.0.wrapping_sub(self.first_id)).unwrap_or(usize::MAX);
        let first_token = self
            .tokens
            .as_ref()
            .map(|tokens| tokens.complete(relative, latency, response.n_tokens, &self.faults));
        if self.logs && slot.logged.load(Ordering::Relaxed) {
            self.tap.take(&Answer {
                seq_id: response.id.0 - 1,
                qsl_idx: slot.index.load(Ordering::Relaxed),
                data: response.data,
                first_token: first_token.as_deref().unwrap_or_default(),
                token_count: response.n_tokens,
            });
        }
    }
}

/// Returns the state of a slot that waits for `id`. Ids that are too large to have been issued give a state that no slot has.
#[inline]
const fn waiting(id: ResponseId) -> u64 {
    match id.0.checked_mul(2) {
        Some(state) => state,
        None => u64::MAX,
    }
}

impl CompletionSink for StreamSink {
    #[inline]
    fn complete(&self, responses: &[QuerySampleResponse<'_>]) {
        let now = now_ns();
        if self.closed.load(Ordering::Relaxed) {
            return;
        }
        let mut answered = 0;
        for response in responses {
            let Some(position) = self.claim(response.id) else {
                continue;
            };
            self.slots[position].done_ns.store(now, Ordering::Relaxed);
            if self.logs || self.tokens.is_some() {
                self.log(response, position, now);
            }
            answered += 1;
        }
        if answered > 0 && self.unanswered.fetch_sub(answered, Ordering::SeqCst) == answered {
            self.waker.ring();
        }
    }

    fn first_token(&self, responses: &[QuerySampleResponse<'_>]) {
        let now = now_ns();
        let Some(tokens) = &self.tokens else { return };
        if self.closed.load(Ordering::Relaxed) {
            return;
        }
        for response in responses {
            let slot = &self.slots[self.position(response.id)];
            let found = slot.state.load(Ordering::Acquire);
            if found != waiting(response.id) {
                self.refuse(response.id, found >> 1);
                continue;
            }
            let latency = now - self.scheduled_ns.load(Ordering::Acquire);
            let relative = usize::try_from(response.id.0 - self.first_id).unwrap_or(usize::MAX);
            let logged = self.logs && slot.logged.load(Ordering::Relaxed);
            tokens.first(relative, latency, logged.then_some(response.data), &self.faults);
        }
    }

    fn fail(&self, error: SutError) {
        self.faults
            .give_up(|| format!("the SUT gave up: {}", ErrorChain(&*error)));
        self.waker.ring();
    }
}
