//! Receives responses in Server and Offline, with any number of samples outstanding.
//!
//! Each sample has one word. It holds the due time until the response arrives, and the latency afterwards. This is the recording, and it
//! detects repeated and unknown responses. A SUT may keep its completer, and with it the sink, for ever. The words are therefore behind a
//! lock, which is only taken for writing at the end of the series. The words are then converted to the list of latencies in place, without
//! a second copy.

use std::sync::{
    Arc, Mutex, PoisonError, RwLock, RwLockReadGuard,
    atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering},
};

use regatta_mllog::trace::SampleTrace;
use regatta_text::ErrorChain;

use super::{
    clock::now_ns,
    faults::{Faults, lock},
    tap::{AccuracyTap, Answer},
    tokens::TokenRecorder,
    wait::IssuerWaker,
};
use crate::{
    results::Latencies,
    sut::{CompletionSink, QuerySampleResponse, ResponseId, SutError},
};

/// Flag of a sample that has its response; the other bits are then the latency. Without the flag they are the due time after the start
/// plus one. They are 0 for a sample that is not issued yet.
const ANSWERED: u64 = 1 << 63;

/// Bytes per sample.
pub(super) const PER_SAMPLE: u64 = size_of::<AtomicU64>() as u64;
/// Additional bytes per sample when responses are logged: its index, and a bit in whole words.
pub(super) const PER_LOGGED: u64 = size_of::<AtomicU32>() as u64 + 1;
/// Additional bytes per sample when samples are traced.
pub(super) const PER_TRACED: u64 = size_of::<AtomicI64>() as u64;

/// The responses to a series of queries.
pub(super) struct OpenSink {
    /// Empty when the series is over.
    words: RwLock<Vec<AtomicU64>>,
    samples: usize,
    first_id: u64,
    start_ns: AtomicI64,
    answered: AtomicU64,
    /// Number of responses that LoadGen waits for; `u64::MAX` while it still issues.
    awaited: AtomicU64,
    last_answer_ns: AtomicI64,
    closed: AtomicBool,
    /// Data for the accuracy log and the trace, when one of them is written.
    logged: Option<Logged>,
    pub(super) faults: Faults,
    pub(super) waker: IssuerWaker,
    pub(super) tokens: Option<TokenRecorder>,
    tap: Arc<AccuracyTap>,
    trace: Option<Mutex<Vec<SampleTrace>>>,
}

/// The responses that go to the accuracy log, and the indices of their samples.
pub(super) struct Logged {
    indices: Box<[AtomicU32]>,
    /// One bit per sample.
    chosen: Box<[u64]>,
    /// When each sample's query was issued; only for traces.
    issued_ns: Option<Box<[AtomicI64]>>,
}

impl Logged {
    /// Allocates entries for `samples`; `chosen` selects the logged ones.
    pub(super) fn new(samples: usize, traces: bool, mut chosen: impl FnMut(usize) -> bool) -> Self {
        let mut bits = vec![0_u64; samples.div_ceil(64)];
        for position in (0..samples).filter(|&position| chosen(position)) {
            bits[position / 64] |= 1 << (position % 64);
        }
        Self {
            indices: (0..samples).map(|_| AtomicU32::new(0)).collect(),
            chosen: bits.into(),
            issued_ns: traces.then(|| (0..samples).map(|_| AtomicI64::new(0)).collect()),
        }
    }

    fn is_chosen(&self, position: usize) -> bool {
        self.chosen[position / 64] >> (position % 64) & 1 == 1
    }
}

/// The parts of a new sink.
pub(super) struct OpenSinkParts {
    pub(super) samples: usize,
    pub(super) first_sample: u64,
    pub(super) logged: Option<Logged>,
    pub(super) tokens: Option<TokenRecorder>,
    pub(super) tap: Arc<AccuracyTap>,
    pub(super) traces: bool,
}

/// The words of a series that is in progress.
pub(super) struct Words<'a> {
    words: RwLockReadGuard<'a, Vec<AtomicU64>>,
    logged: Option<&'a Logged>,
}

impl Words<'_> {
    /// Marks a sample as outstanding. `due_ns` counts from the start; `issued_ns` is a clock reading.
    #[inline]
    pub(super) fn expect(&self, position: usize, due_ns: i64, index: usize, issued_ns: i64) {
        if let Some(logged) = self.logged {
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            logged.indices[position].store(index, Ordering::Relaxed);
            if let Some(times) = &logged.issued_ns {
                times[position].store(issued_ns, Ordering::Relaxed);
            }
        }
        self.words[position].store(due_ns.cast_unsigned() + 1, Ordering::Release);
    }

    /// Returns the latency of a sample that has its response.
    pub(super) fn latency_ns(&self, position: usize) -> Option<i64> {
        latency(self.words.get(position)?.load(Ordering::Acquire))
    }
}

impl OpenSink {
    pub(super) fn new(parts: OpenSinkParts) -> Self {
        Self {
            words: RwLock::new((0..parts.samples).map(|_| AtomicU64::new(0)).collect()),
            samples: parts.samples,
            first_id: parts.first_sample + 1,
            start_ns: AtomicI64::new(0),
            answered: AtomicU64::new(0),
            awaited: AtomicU64::new(u64::MAX),
            last_answer_ns: AtomicI64::new(0),
            closed: AtomicBool::new(false),
            logged: parts.logged,
            faults: Faults::default(),
            waker: IssuerWaker::for_this_thread(),
            tokens: parts.tokens,
            tap: parts.tap,
            trace: parts.traces.then(Mutex::default),
        }
    }

    /// Starts the series and returns its start time.
    pub(super) fn start(&self) -> i64 {
        let now = now_ns();
        self.start_ns.store(now, Ordering::SeqCst);
        now
    }

    /// Returns the words, for marking samples as outstanding. Do not hold them while calling the SUT.
    #[inline]
    pub(super) fn words(&self) -> Words<'_> {
        Words {
            words: self.words.read().unwrap_or_else(PoisonError::into_inner),
            logged: self.logged.as_ref(),
        }
    }

    /// Returns the number of responses so far.
    #[inline]
    pub(super) fn answered(&self) -> u64 {
        self.answered.load(Ordering::SeqCst)
    }

    /// Sets the number of responses to wait for. The last of them wakes the issuing thread.
    pub(super) fn await_all(&self, samples: u64) {
        self.awaited.store(samples, Ordering::SeqCst);
    }

    /// Whether all expected responses have arrived, or the run must end.
    pub(super) fn is_answered(&self) -> bool {
        self.answered() >= self.awaited.load(Ordering::SeqCst) || self.faults.is_fatal()
    }

    /// Returns when the last response arrived.
    pub(super) fn last_answer_ns(&self) -> i64 {
        self.last_answer_ns.load(Ordering::SeqCst)
    }

    /// Returns all latencies, sorted. Later responses are dropped.
    pub(super) fn finish(&self) -> Latencies {
        self.closed.store(true, Ordering::SeqCst);
        let words = std::mem::take(&mut *self.words.write().unwrap_or_else(PoisonError::into_inner));
        // Words and latencies have the same size, so this collects into the words' own memory.
        let latencies = words.into_iter().filter_map(|word| latency(word.into_inner()));
        Latencies::from_values(latencies.collect())
    }

    /// Returns the traced samples.
    pub(super) fn trace(&self) -> Vec<SampleTrace> {
        self.trace
            .as_ref()
            .map(|trace| std::mem::take(&mut *lock(trace)))
            .unwrap_or_default()
    }

    #[inline]
    fn position(&self, id: ResponseId) -> Option<usize> {
        let position = usize::try_from(id.0.wrapping_sub(self.first_id)).ok()?;
        (position < self.samples).then_some(position)
    }

    /// Claims a sample for a response at `now_ns` after the start. Returns its position and latency.
    #[inline]
    fn claim(&self, words: &Words<'_>, id: ResponseId, now_ns: i64) -> Option<(usize, i64)> {
        let Some(position) = self.position(id) else {
            self.refuse(id, 0);
            return None;
        };
        let word = words.words.get(position)?;
        let found = word.load(Ordering::Acquire);
        if found == 0 || found & ANSWERED != 0 {
            self.refuse(id, found);
            return None;
        }
        let latency = (now_ns - (found - 1).cast_signed()).max(0);
        let answered = latency.cast_unsigned() | ANSWERED;
        match word.compare_exchange(found, answered, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Some((position, latency)),
            Err(found) => {
                self.refuse(id, found);
                None
            }
        }
    }

    #[cold]
    fn refuse(&self, id: ResponseId, found: u64) {
        self.faults.note(|| {
            if found & ANSWERED != 0 {
                "Attempted to complete a sample twice.".to_owned()
            } else if (1..self.first_id).contains(&id.0) {
                let (first, id) = (self.first_id, id.0);
                format!("Received completion for an old sample. Min expected id: {first} Actual id: {id}")
            } else {
                format!(
                    "Received completion for a sample that was never issued: id {}",
                    id.0
                )
            }
        });
    }

    fn log(&self, response: &QuerySampleResponse<'_>, position: usize, latency: i64, now: i64) {
        let first_token = self
            .tokens
            .as_ref()
            .map(|tokens| tokens.complete(position, latency, response.n_tokens, &self.faults));
        let Some(logged) = &self.logged else { return };
        let qsl_idx = logged.indices[position].load(Ordering::Relaxed) as usize;
        let seq_id = response.id.0 - 1;
        if logged.is_chosen(position) {
            self.tap.take(&Answer {
                seq_id,
                qsl_idx,
                data: response.data,
                first_token: first_token.as_deref().unwrap_or_default(),
                token_count: response.n_tokens,
            });
        }
        if let Some(trace) = &self.trace {
            let scheduled_ns = now - latency;
            lock(trace).push(SampleTrace {
                sample_seq: seq_id,
                query_seq: seq_id,
                sample_idx: qsl_idx,
                scheduled_ns,
                issued_ns: logged
                    .issued_ns
                    .as_ref()
                    .map_or(scheduled_ns, |times| times[position].load(Ordering::Relaxed)),
                completed_ns: now,
            });
        }
    }
}

fn latency(word: u64) -> Option<i64> {
    (word & ANSWERED != 0).then_some((word & !ANSWERED).cast_signed())
}

impl CompletionSink for OpenSink {
    #[inline]
    fn complete(&self, responses: &[QuerySampleResponse<'_>]) {
        let now = now_ns();
        if self.closed.load(Ordering::Relaxed) {
            return;
        }
        let since_start = now - self.start_ns.load(Ordering::Acquire);
        let looks = self.logged.is_some() || self.tokens.is_some();
        let words = self.words();
        let mut claimed = 0;
        for response in responses {
            let Some((position, latency)) = self.claim(&words, response.id, since_start) else {
                continue;
            };
            claimed += 1;
            if looks {
                self.log(response, position, latency, now);
            }
        }
        drop(words);
        if claimed == 0 {
            return;
        }
        self.last_answer_ns.fetch_max(now, Ordering::SeqCst);
        let answered = self.answered.fetch_add(claimed, Ordering::SeqCst) + claimed;
        if answered >= self.awaited.load(Ordering::SeqCst) {
            self.waker.ring();
        }
    }

    fn first_token(&self, responses: &[QuerySampleResponse<'_>]) {
        let since_start = now_ns() - self.start_ns.load(Ordering::Acquire);
        let Some(tokens) = &self.tokens else { return };
        if self.closed.load(Ordering::Relaxed) {
            return;
        }
        let words = self.words();
        for response in responses {
            let position = self.position(response.id);
            let word = position.and_then(|position| words.words.get(position));
            let found = word.map_or(0, |word| word.load(Ordering::Acquire));
            let Some(position) = position.filter(|_| found != 0 && found & ANSWERED == 0) else {
                self.refuse(response.id, found);
                continue;
            };
            let latency = since_start - (found - 1).cast_signed();
            let logged = self
                .logged
                .as_ref()
                .is_some_and(|logged| logged.is_chosen(position));
            tokens.first(position, latency, logged.then_some(response.data), &self.faults);
        }
    }

    fn fail(&self, error: SutError) {
        self.faults
            .give_up(|| format!("the SUT gave up: {}", ErrorChain(&*error)));
        self.waker.ring();
    }
}
