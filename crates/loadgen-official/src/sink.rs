//! Receiver of the SUT's responses: checks them, translates them to LoadGen's ids and passes them to LoadGen. It also records the faults
//! of a run.
//!
//! It does not know the SUT or the QSL. A SUT may hold it longer than a run; it then drops the responses.

use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use regatta_loadgen::sut::{CompletionSink, QuerySampleResponse, SutError};
use regatta_text::ErrorChain;

use crate::{
    answers::{Answers, NotOutstanding},
    ffi::{PluginFunctions, Refusal, Response},
    gate::Gate,
};

/// Largest number of responses that are translated and passed at a time. LoadGen stamps each part with one clock reading.
const PART: usize = 4096;

/// How a run's LoadGen thread ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LoadgenEnd {
    /// `StartTest` returned.
    Returned,
    /// LoadGen threw an exception; the logs are written.
    Threw(String),
}

/// Events for the thread that waits for a run's end.
#[derive(Debug, Default)]
pub(crate) struct Events {
    pub(crate) ended: Option<LoadgenEnd>,
    /// Set when the run is abandoned: the number of samples that will never get a response.
    pub(crate) lost_samples: Option<u64>,
    /// Whether LoadGen's thread is parked in the bridge.
    pub(crate) parked: bool,
    /// The faults of the run, in order.
    pub(crate) faults: Vec<String>,
}

/// One run's sink.
#[derive(Debug)]
pub(crate) struct Sink {
    functions: Arc<PluginFunctions>,
    pub(crate) gate: Gate,
    pub(crate) answers: Answers,
    unknown: AtomicU64,
    repeated: AtomicU64,
    events: Mutex<Events>,
    changed: Condvar,
}

impl Sink {
    pub(crate) fn new(functions: Arc<PluginFunctions>) -> Self {
        Self {
            functions,
            gate: Gate::default(),
            answers: Answers::new(),
            unknown: AtomicU64::new(0),
            repeated: AtomicU64::new(0),
            events: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    pub(crate) fn events(&self) -> MutexGuard<'_, Events> {
        // No update under this lock can leave the events inconsistent, so poisoning is harmless.
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the events and wakes the threads that wait for them.
    pub(crate) fn tell(&self, change: impl FnOnce(&mut Events)) {
        change(&mut self.events());
        self.changed.notify_all();
    }

    /// Waits for a change, at most for `at_most`.
    pub(crate) fn wait<'a>(
        &self,
        events: MutexGuard<'a, Events>,
        at_most: Duration,
    ) -> MutexGuard<'a, Events> {
        self.changed
            .wait_timeout(events, at_most)
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }

    /// Gives up the run and closes the gate.
    pub(crate) fn give_up(&self, reason: String) {
        let lost = self.gate.close();
        self.tell(|events| {
            events.faults.push(reason);
            events.lost_samples = events.lost_samples.or(lost);
        });
    }

    /// Returns messages about responses that were not passed to LoadGen.
    pub(crate) fn refused_answers(&self) -> Vec<String> {
        let sentence = |count: &AtomicU64, what: &str| match count.load(Ordering::Relaxed) {
            0 => None,
            n => Some(format!(
                "the system under test gave {n} answer{} {what}",
                if n == 1 { "" } else { "s" }
            )),
        };
        let unknown = sentence(&self.unknown, "to samples that were never issued");
        let repeated = sentence(&self.repeated, "to samples that were answered before");
        [unknown, repeated].into_iter().flatten().collect()
    }

    fn refuse(&self, why: NotOutstanding) {
        let count = match why {
            NotOutstanding::Unknown => &self.unknown,
            NotOutstanding::Answered => &self.repeated,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns a response with LoadGen's id, if its sample is outstanding.
    fn translate(&self, response: &QuerySampleResponse<'_>) -> Option<Response> {
        self.answers
            .take(response.id.0)
            .map_err(|why| self.refuse(why))
            .ok()
            .map(|id| foreign(id, response))
    }

    fn deliver(&self, responses: &[Response]) {
        if responses.is_empty() || !self.gate.answer(responses.len()) {
            return;
        }
        // SAFETY: every id has just been taken from the table, which returns each outstanding id once. LoadGen keeps a sample until it
        // gets its response. The open gate shows that the run has not been abandoned.
        if let Err(refusal) = unsafe { self.functions.samples_complete(responses) } {
            self.give_up(loadgen_threw(&refusal));
        }
    }

    fn deliver_first_token(&self, response: &QuerySampleResponse<'_>) {
        let id = match self.answers.hold(response.id.0) {
            Ok(id) => id,
            Err(why) => return self.refuse(why),
        };
        // SAFETY: the sample is outstanding and held: its final response waits until it is released.
        let result = unsafe { self.functions.first_token_complete(&[foreign(id, response)]) };
        self.answers.release(response.id.0, id);
        if let Err(refusal) = result {
            self.give_up(loadgen_threw(&refusal));
        }
    }
}

impl CompletionSink for Sink {
    fn complete(&self, responses: &[QuerySampleResponse<'_>]) {
        if let [response] = responses {
            if let Some(response) = self.translate(response) {
                self.deliver(&[response]);
            }
            return;
        }
        let mut part = Vec::with_capacity(responses.len().min(PART));
        for responses in responses.chunks(PART) {
            part.clear();
            part.extend(responses.iter().filter_map(|response| self.translate(response)));
            self.deliver(&part);
        }
    }

    fn first_token(&self, responses: &[QuerySampleResponse<'_>]) {
        for response in responses {
            self.deliver_first_token(response);
        }
    }

    fn fail(&self, error: SutError) {
        self.give_up(format!("the system under test failed: {}", ErrorChain(&*error)));
    }
}

fn foreign(id: u64, response: &QuerySampleResponse<'_>) -> Response {
    Response {
        id,
        data: response.data.as_ptr().cast(),
        size: response.data.len() as u64,
        n_tokens: response.n_tokens,
    }
}

fn loadgen_threw(refusal: &Refusal) -> String {
    format!("LoadGen failed while it took an answer: {}", refusal.words)
}
