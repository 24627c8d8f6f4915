//! The driver's SUT and library, in Rust: answers within `issue_query` with the sample's index.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard},
    thread::{self, ThreadId},
    time::Duration,
};

use regatta_loadgen::sut::{Completer, Query, QuerySample, QuerySampleResponse, SutError, SystemUnderTest};

use crate::cases::Case;

/// A SUT that answers at once up to its capacity, and records the issued samples.
pub(crate) struct EchoSut {
    first_tokens: bool,
    /// Queries of a series that are answered at once; 0 for all. The others are answered late, after the flush.
    capacity: u64,
    late: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    queries_in_series: u64,
    held: Vec<QuerySample>,
    completer: Option<Completer>,
    /// In the present series, by thread.
    by_thread: HashMap<ThreadId, Vec<u64>>,
    issued: Vec<u64>,
}

impl EchoSut {
    pub(crate) fn new(first_tokens: bool, case: &Case) -> Self {
        Self {
            first_tokens,
            capacity: case.capacity,
            late: Duration::from_millis(case.late_ms),
            state: Mutex::default(),
        }
    }

    /// Sample indices, with a mark after each query: series by series what each thread issued, in an order that does not
    /// depend on which was first.
    pub(crate) fn issued(self) -> Vec<u64> {
        self.state.into_inner().unwrap().issued
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn answer(&self, samples: &[QuerySample], completer: &Completer) {
        let data: Vec<[u8; 8]> = samples
            .iter()
            .map(|sample| (sample.index as u64).to_le_bytes())
            .collect();
        let responses: Vec<_> = samples
            .iter()
            .zip(&data)
            .map(|(sample, data)| QuerySampleResponse {
                id: sample.id,
                data,
                n_tokens: i64::try_from(2 + sample.index % 7).unwrap(),
            })
            .collect();
        if self.first_tokens {
            completer.first_token(&responses);
        }
        completer.complete(&responses);
    }
}

impl SystemUnderTest for EchoSut {
    fn name(&self) -> &str {
        "EchoSUT"
    }

    fn issue_query(&self, query: Query<'_>, completer: &Completer) -> Result<(), SutError> {
        let samples: Vec<_> = query.iter().collect();
        let mut state = self.state();
        let issued = state.by_thread.entry(thread::current().id()).or_default();
        issued.extend(samples.iter().map(|sample| sample.index as u64));
        issued.push(u64::MAX);
        state.queries_in_series += 1;
        if self.capacity == 0 || state.queries_in_series <= self.capacity {
            self.answer(&samples, completer);
        } else {
            state.held.extend(samples);
            state.completer.get_or_insert_with(|| completer.clone());
        }
        Ok(())
    }

    fn flush_queries(&self) -> Result<(), SutError> {
        let mut state = self.state();
        state.queries_in_series = 0;
        let mut by_thread: Vec<_> = state.by_thread.drain().map(|(_, words)| words).collect();
        by_thread.sort_unstable();
        state.issued.extend(by_thread.concat());
        let held = std::mem::take(&mut state.held);
        if let Some(completer) = state.completer.take() {
            thread::sleep(self.late);
            self.answer(&held, &completer);
        }
        Ok(())
    }
}
