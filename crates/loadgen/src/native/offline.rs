//! Issues Offline: one query with all samples, computed as it is read.

use std::sync::Arc;

use super::{
    open_sink::OpenSink,
    series::{EndedBy, Measured, SeriesInput},
    tokens::TokenRecorder,
    wait::Waiter,
};
use crate::{
    generate::OfflineSamples,
    results::SeriesResult,
    sut::{Completer, Query, QuerySample, QuerySequence, ResponseId},
};

/// The single query.
struct OfflineQuery<'a> {
    samples: &'a OfflineSamples<'a>,
    first_id: u64,
}

impl QuerySequence for OfflineQuery<'_> {
    fn len(&self) -> usize {
        self.samples.len()
    }

    #[inline]
    fn sample(&self, position: usize) -> QuerySample {
        let id = ResponseId(self.first_id + position as u64);
        QuerySample {
            id,
            index: self.samples.index(position),
        }
    }
}

/// Issues a series from the calling thread.
pub(super) fn issue(input: &mut SeriesInput<'_>) -> Measured {
    let samples = input.plan.offline_samples();
    let sink = Arc::new(OpenSink::new(input.open_sink_parts(samples.len())));
    let prepared_ns = super::clock::now_ns();
    let words = sink.words();
    for position in 0..samples.len() {
        words.expect(position, 0, samples.index(position), prepared_ns);
    }
    drop(words);
    let completer = Completer::new(Arc::clone(&sink) as Arc<_>);
    let query = OfflineQuery {
        samples: &samples,
        first_id: input.first_sample + 1,
    };

    let wall_start = jiff::Timestamp::now();
    let start_ns = sink.start();
    let issued_ns = super::clock::now_ns();
    input.hand_over(Query::Lazy(&query), &completer, &sink.faults);
    let ended_by = input
        .limits
        .after(1, issued_ns - start_ns)
        .unwrap_or(EndedBy::NoMoreQueries);
    input.flush(&sink.faults);
    sink.await_all(samples.len() as u64);
    wait_for_answers(input, &sink);

    let complete = !sink.faults.is_fatal();
    let latencies = sink.finish();
    let done_ns = sink.last_answer_ns();
    let result = SeriesResult {
        queries_issued: 1,
        max_latency_s: super::seconds(latencies.max()),
        final_query_scheduled_s: 0.0,
        final_query_issued_s: super::seconds(issued_ns - start_ns),
        final_query_done_s: super::seconds(done_ns - start_ns),
        tokens: TokenRecorder::finish(sink.tokens.as_ref()),
        samples: latencies,
        ..SeriesResult::default()
    };
    Measured {
        result,
        complete,
        wall_start,
        active_ns: done_ns - start_ns,
        ended: vec![ended_by],
        faults: sink.faults.take(),
        trace: sink.trace(),
    }
}

/// Waits until every expected response has arrived, or the series stalls.
pub(super) fn wait_for_answers(input: &SeriesInput<'_>, sink: &OpenSink) {
    let waiter = Waiter::new(input.issue);
    if waiter
        .until(&sink.waker, || sink.is_answered(), || sink.answered())
        .is_err()
    {
        sink.faults.give_up(|| input.stalled());
    }
}
