//! One series of queries: its input, its end condition and its result.

use std::sync::Arc;

use regatta_mllog::trace::SampleTrace;
use regatta_types::Scenario;

use super::{
    faults::Faults,
    guard,
    open_sink::{Logged, OpenSinkParts},
    tap::AccuracyTap,
    tokens::TokenRecorder,
};
use crate::{
    effective::EffectiveSettings,
    generate::{AccuracyChoice, Pass, QueryPlan},
    request::IssueSettings,
    results::SeriesResult,
    sut::{Completer, Query, SystemUnderTest},
};

/// Input for issuing a series.
pub(super) struct SeriesInput<'a> {
    pub(super) sut: &'a dyn SystemUnderTest,
    pub(super) issue: &'a IssueSettings,
    pub(super) settings: &'a EffectiveSettings,
    pub(super) plan: QueryPlan<'a>,
    pub(super) limits: Limits,
    pub(super) choice: AccuracyChoice,
    pub(super) tap: Arc<AccuracyTap>,
    pub(super) first_query: u64,
    pub(super) first_sample: u64,
    pub(super) coalesces: bool,
    pub(super) traces: bool,
}

impl SeriesInput<'_> {
    pub(super) fn is_multi_stream(&self) -> bool {
        self.settings.scenario == Scenario::MultiStream
    }

    pub(super) fn token_recorder(&self) -> Option<TokenRecorder> {
        self.settings
            .use_token_latencies
            .then(|| TokenRecorder::new(self.settings.scenario != Scenario::Offline))
    }

    /// Returns the parts of a sink for a series of `samples`.
    pub(super) fn open_sink_parts(&mut self, samples: usize) -> OpenSinkParts {
        let first = self.first_sample;
        let traces = self.traces;
        let logs = traces || !matches!(self.choice, AccuracyChoice::None);
        let choice = &mut self.choice;
        OpenSinkParts {
            samples,
            first_sample: first,
            logged: logs.then(|| {
                Logged::new(samples, traces, |position| {
                    choice.includes(first + position as u64)
                })
            }),
            tokens: self.token_recorder(),
            tap: Arc::clone(&self.tap),
            traces,
        }
    }

    /// Passes a query to the SUT. An error or a panic of the SUT ends the run.
    #[inline]
    pub(super) fn hand_over(&self, query: Query<'_>, completer: &Completer, faults: &Faults) {
        let issue = || self.sut.issue_query(query, completer);
        if let Err(error) = guard::call("the SUT's issue_query", issue) {
            faults.give_up(|| error.fault());
        }
    }

    /// Signals the SUT that the series has no more queries.
    pub(super) fn flush(&self, faults: &Faults) {
        if let Err(error) = guard::call("the SUT's flush_queries", || self.sut.flush_queries()) {
            faults.give_up(|| error.fault());
        }
    }

    /// Returns the fault of a run that stalled.
    pub(super) fn stalled(&self) -> String {
        let after = self.issue.stall_timeout.unwrap_or_default();
        format!(
            "stalled: responses are due, and none arrived for {} s; the run was abandoned",
            after.as_secs_f64()
        )
    }
}

/// Limits at which a series ends before its queries do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Whether this is an accuracy pass, which has no limits.
    pub(super) accuracy: bool,
    /// Whether the series ends when both minima are met. Server issues its complete schedule instead.
    ends_naturally: bool,
    min_queries: u64,
    target_ns: i64,
    max_queries: Option<u64>,
    max_ns: Option<i64>,
    /// Server: largest number of outstanding queries; 0 for no limit.
    pub(super) max_outstanding: u64,
    thread: u64,
}

impl Limits {
    pub(super) fn new(settings: &EffectiveSettings, pass: Pass) -> Self {
        const NS_PER_MS: i64 = 1_000_000;
        let (max_queries, max_ms) = (settings.max_query_count, settings.max_duration_ms);
        Self {
            accuracy: pass == Pass::Accuracy,
            ends_naturally: settings.scenario != Scenario::Server,
            min_queries: settings.min_query_count,
            target_ns: settings.target_duration_ms.saturating_mul(NS_PER_MS),
            max_queries: (max_queries != 0).then_some(max_queries),
            max_ns: (max_ms != 0).then_some(max_ms.saturating_mul(NS_PER_MS)),
            max_outstanding: settings.max_async_queries,
            thread: 0,
        }
    }

    /// Returns the limits of one of several issuing threads.
    pub(super) fn share(&self, thread: u64, of: u64) -> Self {
        let share = |count: u64| count / of + u64::from(thread < count % of);
        Self {
            min_queries: share(self.min_queries),
            max_queries: self.max_queries.map(share),
            thread,
            ..*self
        }
    }

    /// Returns why the series ends after `issued` queries, the last of which was issued `duration_ns` after the start. `None` if it
    /// continues.
    #[inline]
    pub(super) fn after(&self, issued: u64, duration_ns: i64) -> Option<EndedBy> {
        let thread = self.thread;
        if self.accuracy {
            None
        } else if self.ends_naturally && issued >= self.min_queries && duration_ns >= self.target_ns {
            Some(EndedBy::Minima)
        } else if self.max_queries.is_some_and(|max| issued >= max) {
            Some(EndedBy::MaxQueries { thread, issued })
        } else if self.max_ns.is_some_and(|max| duration_ns > max) {
            Some(EndedBy::MaxDuration { thread, duration_ns })
        } else {
            None
        }
    }
}

/// Why a series ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndedBy {
    /// Minimum query count and duration are met.
    Minima,
    /// All generated queries are issued.
    NoMoreQueries,
    MaxQueries {
        thread: u64,
        issued: u64,
    },
    MaxDuration {
        thread: u64,
        duration_ns: i64,
    },
    TooManyOutstanding {
        thread: u64,
        issued: u64,
        outstanding: u64,
    },
}

/// The result of a series.
pub(super) struct Measured {
    pub(super) result: SeriesResult,
    /// Whether every issued sample has a response.
    pub(super) complete: bool,
    pub(super) wall_start: jiff::Timestamp,
    /// Time from the start to the last response.
    pub(super) active_ns: i64,
    /// Why each issuing thread ended; empty for a Server schedule that was issued completely.
    pub(super) ended: Vec<EndedBy>,
    pub(super) faults: Vec<String>,
    pub(super) trace: Vec<SampleTrace>,
}
