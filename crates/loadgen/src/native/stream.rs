//! Issues SingleStream and MultiStream: each query follows the completion of the previous one.

use std::sync::Arc;

use regatta_mllog::trace::SampleTrace;

use super::{
    clock::now_ns,
    series::{EndedBy, Measured, SeriesInput},
    stream_sink::StreamSink,
    tokens::TokenRecorder,
    wait::Waiter,
};
use crate::{
    generate::{AccuracyChoice, QuerySource},
    results::{LatencyRecorder, SeriesResult},
    sut::{Completer, Query, QuerySample, ResponseId},
};

/// Issues a series from the calling thread.
pub(super) fn issue(input: &mut SeriesInput<'_>) -> Measured {
    let logs = !matches!(input.choice, AccuracyChoice::None);
    let sink = Arc::new(StreamSink::new(
        input.plan.samples_per_query,
        input.first_sample,
        logs || input.traces,
        input.token_recorder(),
        Arc::clone(&input.tap),
    ));
    let completer = Completer::new(Arc::clone(&sink) as Arc<_>);
    let measured = Stream::new(input, &sink).run(&completer);
    sink.close();
    measured
}

/// The issuing thread's state in a series.
struct Stream<'a, 'b> {
    input: &'a mut SeriesInput<'b>,
    sink: &'a StreamSink,
    source: QuerySource<'b>,
    waiter: Waiter,
    /// The next query, prepared while the previous one is outstanding.
    next: Prepared,
    samples: LatencyRecorder,
    /// MultiStream only; in SingleStream they would equal the samples' latencies.
    queries: Option<LatencyRecorder>,
    last: Last,
    max_latency_ns: i64,
    trace: Vec<SampleTrace>,
}

/// A query that is prepared but not issued.
struct Prepared {
    samples: Vec<QuerySample>,
    logged: Vec<bool>,
    due_ns: i64,
}

/// The last issued query.
#[derive(Default)]
struct Last {
    issued_ns: i64,
    done_ns: i64,
    due_ns: i64,
}

impl<'a, 'b> Stream<'a, 'b> {
    fn new(input: &'a mut SeriesInput<'b>, sink: &'a StreamSink) -> Self {
        let per_query = input.plan.samples_per_query;
        Self {
            source: input.plan.source(),
            waiter: Waiter::new(input.issue),
            next: Prepared {
                samples: vec![
                    QuerySample {
                        id: ResponseId(0),
                        index: 0
                    };
                    per_query
                ],
                logged: vec![false; per_query],
                due_ns: 0,
            },
            samples: LatencyRecorder::with_capacity(input.plan.samples()),
            queries: input
                .is_multi_stream()
                .then(|| LatencyRecorder::with_capacity(input.plan.queries)),
            last: Last::default(),
            max_latency_ns: 0,
            trace: Vec::new(),
            sink,
            input,
        }
    }

    fn run(mut self, completer: &Completer) -> Measured {
        let mut issued = 0;
        let mut ready = self.prepare(issued);
        let (wall, start_ns) = (jiff::Timestamp::now(), now_ns());
        let mut ended_by = EndedBy::NoMoreQueries;
        while ready {
            self.expect_answers();
            self.last.issued_ns = self.sink.arm();
            self.last.due_ns = self.next.due_ns;
            let query = Query::Slice(&self.next.samples);
            self.input.hand_over(query, completer, &self.sink.faults);
            issued += 1;
            let end = self.input.limits.after(issued, self.last.issued_ns - start_ns);
            ready = end.is_none() && self.prepare(issued);
            ended_by = end.unwrap_or(ended_by);
            if !ready {
                self.input.flush(&self.sink.faults);
            }
            if !self.collect(issued - 1) {
                break;
            }
        }
        self.finish(issued, wall, start_ns, ended_by)
    }

    /// Prepares the next query, while the previous one is outstanding. Returns false if there is none.
    #[inline]
    fn prepare(&mut self, issued: u64) -> bool {
        let Some((indices, due_ns)) = self.source.next_query() else {
            return false;
        };
        let first = self.input.first_sample + issued * indices.len() as u64;
        self.next.due_ns = due_ns;
        for (seq, (sample, &index)) in (first..).zip(self.next.samples.iter_mut().zip(indices)) {
            *sample = QuerySample {
                id: ResponseId(seq + 1),
                index,
            };
        }
        if !matches!(self.input.choice, AccuracyChoice::None) {
            for (seq, logged) in (first..).zip(&mut self.next.logged) {
                *logged = self.input.choice.includes(seq);
            }
        }
        true
    }

    #[inline]
    fn expect_answers(&self) {
        for (position, sample) in self.next.samples.iter().enumerate() {
            self.sink
                .expect(position, sample.id, sample.index, self.next.logged[position]);
        }
    }

    /// Waits for the outstanding query and records it. Returns false if the run must end.
    #[inline]
    fn collect(&mut self, query: u64) -> bool {
        let progress = || self.sink.unanswered() as u64;
        if self
            .waiter
            .until(&self.sink.waker, || self.sink.is_answered(), progress)
            .is_err()
        {
            self.sink.faults.give_up(|| self.input.stalled());
        }
        if self.sink.faults.is_fatal() {
            return false;
        }
        let scheduled = self.last.issued_ns;
        let mut done = scheduled;
        for position in 0..self.input.plan.samples_per_query {
            let sample_done = self.sink.done_ns(position);
            self.samples.record(sample_done - scheduled);
            done = done.max(sample_done);
        }
        self.last.done_ns = done;
        self.max_latency_ns = self.max_latency_ns.max(done - scheduled);
        if let Some(queries) = &mut self.queries {
            queries.record(done - scheduled);
        }
        if self.input.traces {
            self.trace_query(query);
        }
        true
    }

    fn trace_query(&mut self, query: u64) {
        let per_query = self.input.plan.samples_per_query;
        let first = self.input.first_sample + query * per_query as u64;
        for (position, sample_seq) in (0..per_query).zip(first..) {
            self.trace.push(SampleTrace {
                sample_seq,
                query_seq: self.input.first_query + query,
                sample_idx: self.sink.index(position),
                scheduled_ns: self.last.issued_ns,
                issued_ns: self.last.issued_ns,
                completed_ns: self.sink.done_ns(position),
            });
        }
    }

    fn finish(self, issued: u64, wall: jiff::Timestamp, start_ns: i64, ended_by: EndedBy) -> Measured {
        let complete = !self.sink.faults.is_fatal();
        let samples = self.samples.finish();
        let result = SeriesResult {
            queries_issued: issued,
            max_latency_s: super::seconds(self.max_latency_ns),
            final_query_scheduled_s: super::seconds(self.last.due_ns),
            final_query_issued_s: super::seconds(self.last.issued_ns - start_ns),
            final_query_done_s: super::seconds(self.last.done_ns - start_ns),
            tokens: TokenRecorder::finish(self.sink.tokens.as_ref()),
            queries: self.queries.map(LatencyRecorder::finish).unwrap_or_default(),
            samples,
        };
        Measured {
            result,
            complete,
            wall_start: wall,
            active_ns: self.last.done_ns - start_ns,
            ended: vec![ended_by],
            faults: self.sink.faults.take(),
            trace: self.trace,
        }
    }
}
