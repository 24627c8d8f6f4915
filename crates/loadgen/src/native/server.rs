//! Issues Server queries: each at its scheduled time, regardless of outstanding responses.

use std::{
    iter,
    num::NonZeroU64,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use rustix::thread::{current_timer_slack, set_current_timer_slack};

use super::{
    clock::now_ns,
    due_queue::{Due, DueQueue},
    offline::wait_for_answers,
    open_sink::{OpenSink, Words},
    series::{EndedBy, Measured, SeriesInput},
    time_waiter::TimeWaiter,
    tokens::TokenRecorder,
};
use crate::{
    generate::QuerySource,
    request::Wait,
    results::SeriesResult,
    sut::{Completer, Query, QuerySample, ResponseId},
    timing::TimingThread,
};

/// Issues a series from the calling thread (`threads` is 0) or from `threads` new threads. Of n threads, each takes every n-th query.
pub(super) fn issue(input: &mut SeriesInput<'_>, threads: u64) -> Measured {
    let samples = usize::try_from(input.plan.samples()).unwrap_or(usize::MAX);
    let sink = Arc::new(OpenSink::new(input.open_sink_parts(samples)));
    let completer = Completer::new(Arc::clone(&sink) as Arc<_>);
    let issued_by_all = AtomicU64::new(0);
    let input = &*input;
    let strand = |thread: u64, of: u64, start_ns: i64| Strand {
        input,
        sink: &sink,
        completer: &completer,
        issued_by_all: &issued_by_all,
        thread,
        of,
        start_ns,
    };

    let wall_start = jiff::Timestamp::now();
    let start_ns = sink.start();
    let ends: Vec<StrandEnd> = match threads {
        0 => vec![strand(0, 1, start_ns).run()],
        n => thread::scope(|scope| {
            let running: Vec<_> = (0..n)
                .map(|thread| {
                    scope.spawn(move || {
                        // A new thread does not inherit real-time priority from the thread that measures.
                        let _timing = TimingThread::enter(&input.issue.timing);
                        strand(thread, n, start_ns).run()
                    })
                })
                .collect();
            running
                .into_iter()
                .filter_map(|strand| strand.join().ok())
                .collect()
        }),
    };
    input.flush(&sink.faults);
    let issued: u64 = ends.iter().map(|end| end.issued).sum();
    sink.await_all(issued);
    wait_for_answers(input, &sink);
    measured(&sink, &ends, issued, wall_start, start_ns)
}

fn measured(
    sink: &OpenSink,
    ends: &[StrandEnd],
    issued: u64,
    wall_start: jiff::Timestamp,
    start_ns: i64,
) -> Measured {
    let last = ends
        .iter()
        .max_by_key(|end| end.last_position)
        .copied()
        .unwrap_or_default();
    let last_latency = sink.words().latency_ns(last.last_position).unwrap_or(0);
    let complete = !sink.faults.is_fatal();
    let latencies = sink.finish();
    let result = SeriesResult {
        queries_issued: issued,
        max_latency_s: super::seconds(latencies.max()),
        final_query_scheduled_s: super::seconds(last.last_due_ns),
        final_query_issued_s: super::seconds(last.last_issued_ns - start_ns),
        final_query_done_s: super::seconds(last.last_due_ns + last_latency),
        tokens: TokenRecorder::finish(sink.tokens.as_ref()),
        samples: latencies,
        ..SeriesResult::default()
    };
    Measured {
        result,
        complete,
        wall_start,
        active_ns: sink.last_answer_ns() - start_ns,
        ended: ends.iter().filter_map(|end| end.ended_by).collect(),
        faults: sink.faults.take(),
        trace: sink.trace(),
    }
}

/// One issuing thread's share of the queries.
struct Strand<'a, 'b> {
    input: &'a SeriesInput<'b>,
    sink: &'a OpenSink,
    completer: &'a Completer,
    issued_by_all: &'a AtomicU64,
    thread: u64,
    of: u64,
    start_ns: i64,
}

/// How a thread's share ended.
#[derive(Clone, Copy, Default)]
struct StrandEnd {
    issued: u64,
    last_position: usize,
    last_due_ns: i64,
    last_issued_ns: i64,
    ended_by: Option<EndedBy>,
}

impl Strand<'_, '_> {
    fn run(&self) -> StrandEnd {
        let slack = self.sharpen_sleep();
        // Regatta's own code does not panic here. If it did, the run must end instead of hanging.
        let end = catch_unwind(AssertUnwindSafe(|| self.issue_all())).unwrap_or_else(|_| {
            self.sink
                .faults
                .give_up(|| "an issuing thread panicked".to_owned());
            StrandEnd::default()
        });
        if slack.is_some() {
            // This only restores the thread's previous value; there is no remedy if the system refuses it.
            let _ = set_current_timer_slack(slack);
        }
        end
    }

    /// Sets the timer slack to 1 ns, because Linux otherwise lets sleeping threads oversleep by 50 us. Returns the value to restore.
    fn sharpen_sleep(&self) -> Option<NonZeroU64> {
        if self.input.issue.wait == Wait::Spin {
            return None;
        }
        let slack = current_timer_slack().ok().and_then(NonZeroU64::new)?;
        set_current_timer_slack(NonZeroU64::new(1)).ok()?;
        Some(slack)
    }

    fn issue_all(&self) -> StrandEnd {
        let mut waiter = TimeWaiter::new(self.input.issue);
        let mut dues = DueQueue::new(self.dues(self.input.plan.source()));
        let mut query = Vec::new();
        let mut end = StrandEnd::default();
        let start_ns = self.start_ns;
        while let Some(due) = dues.next() {
            let now = self.wait_for(due, &mut dues, &mut waiter);
            if self.sink.faults.is_fatal() {
                break;
            }
            query.clear();
            end.last_issued_ns = now;
            let words = self.sink.words();
            self.add(&words, &mut query, due, &mut end);
            if self.input.coalesces {
                while let Some(next) = dues.next_due_by(now - start_ns) {
                    self.add(&words, &mut query, next, &mut end);
                }
            }
            drop(words);
            self.input
                .hand_over(Query::Slice(&query), self.completer, &self.sink.faults);
            if self.sink.faults.is_fatal() {
                break;
            }
            end.issued += query.len() as u64;
            end.ended_by = self.ends(query.len() as u64, end.issued, now - start_ns);
            if end.ended_by.is_some() {
                break;
            }
        }
        end
    }

    /// Waits until `due` can be issued and returns the current time. One wake-up also serves the queries that are due soon after it. A
    /// wake-up costs more processor time than issuing a query.
    #[inline]
    fn wait_for(
        &self,
        due: Due,
        ahead: &mut DueQueue<impl Iterator<Item = Due>>,
        waiter: &mut TimeWaiter,
    ) -> i64 {
        let now = now_ns();
        if now >= self.start_ns + due.due_ns {
            return now;
        }
        let last_due_ns = ahead.last_due_by(due.due_ns + waiter.shared_wake_up_ns());
        let wake_ns = self.start_ns + last_due_ns.unwrap_or(due.due_ns);
        waiter.until(wake_ns, || self.sink.faults.is_fatal())
    }

    /// Returns the queries of this thread.
    fn dues<'s>(&self, mut source: QuerySource<'s>) -> impl Iterator<Item = Due> + 's {
        let (step, first) = (self.of, self.thread);
        let mut position = 0_usize;
        let all = iter::from_fn(move || {
            let (samples, due_ns) = source.next_query()?;
            let due = Due {
                position,
                index: samples[0],
                due_ns,
            };
            position += 1;
            Some(due)
        });
        let within = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        all.skip(within(first)).step_by(within(step))
    }

    #[inline]
    fn add(&self, words: &Words<'_>, query: &mut Vec<QuerySample>, due: Due, end: &mut StrandEnd) {
        let id = ResponseId(self.input.first_sample + due.position as u64 + 1);
        words.expect(due.position, due.due_ns, due.index, end.last_issued_ns);
        query.push(QuerySample { id, index: due.index });
        end.last_position = due.position;
        end.last_due_ns = due.due_ns;
    }

    fn ends(&self, just_issued: u64, issued: u64, duration_ns: i64) -> Option<EndedBy> {
        let limits = &self.input.limits;
        if limits.max_outstanding != 0 && !limits.accuracy {
            let total = self.issued_by_all.fetch_add(just_issued, Ordering::Relaxed) + just_issued;
            let outstanding = total.wrapping_sub(self.sink.answered());
            if outstanding > limits.max_outstanding {
                return Some(EndedBy::TooManyOutstanding {
                    thread: self.thread,
                    issued: total,
                    outstanding,
                });
            }
        }
        limits.share(self.thread, self.of).after(issued, duration_ns)
    }
}
