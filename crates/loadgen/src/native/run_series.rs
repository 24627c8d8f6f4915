//! One series within a run: planned, issued, and logged like LoadGen.

use std::sync::Arc;

use jiff::SignedDuration;
use regatta_types::Scenario;

use super::{
    clocks::stamp,
    offline,
    run::{PartFailed, Run},
    series::{EndedBy, Limits, Measured, SeriesInput},
    server, stream,
};
use crate::{
    effective::EffectiveSettings,
    generate::{AccuracyChoice, LoadableSet, Pass},
    load_gen::Phase,
    request::LogTiming,
    results::SeriesResult,
    timing::{Timing, TimingThread},
};

impl Run<'_> {
    /// Issues a series over a loaded set and writes the log lines that LoadGen writes.
    pub(super) fn series(
        &mut self,
        settings: &EffectiveSettings,
        set: &LoadableSet,
        pass: Pass,
        phase: Phase,
    ) -> Result<SeriesResult, PartFailed> {
        let plan = self
            .check
            .plan(settings, set, pass)
            .map_err(|error| self.fault("error_invalid_test_settings", &error.to_string()))?;
        self.log.info("generated_query_count", plan.queries);
        self.log
            .info("generated_samples_per_query", plan.samples_per_query as u64);
        self.log.info("generated_query_duration", plan.duration_ns);
        let (queries, samples) = (plan.queries, plan.samples());
        let at_once = pass == Pass::Accuracy || self.request.logs.timing == LogTiming::AtOnce;
        self.tap.write_at_once(at_once);
        let mut input = SeriesInput {
            sut: self.sut,
            issue: &self.request.issue,
            settings,
            limits: Limits::new(settings, pass),
            choice: match pass {
                Pass::Accuracy => AccuracyChoice::All,
                Pass::Performance => AccuracyChoice::for_performance(settings, &self.draws),
            },
            plan,
            tap: Arc::clone(&self.tap),
            first_query: self.next_query,
            first_sample: self.next_sample,
            coalesces: self.requested.server_coalesce_queries,
            traces: self.log.traces(),
        };
        self.next_query += queries;
        self.next_sample += samples;
        self.log.flush();
        let (thread, timing) = TimingThread::enter(&self.request.issue.timing);
        self.observer.on_window_begin(phase);
        let measured = match settings.scenario {
            Scenario::SingleStream | Scenario::MultiStream => stream::issue(&mut input),
            Scenario::Server => server::issue(&mut input, self.requested.server_num_issue_query_threads),
            Scenario::Offline => offline::issue(&mut input),
        };
        self.observer.on_window_end(phase);
        drop(thread);
        self.note_timing(timing);
        self.tap.write_kept();
        self.log_series(measured, pass)
    }

    fn log_series(&mut self, measured: Measured, pass: Pass) -> Result<SeriesResult, PartFailed> {
        let natural = EndedBy::NoMoreQueries;
        for ended in measured.ended.iter().filter(|&&ended| ended != natural) {
            self.log_end(*ended);
        }
        if pass == Pass::Performance && measured.ended.contains(&natural) {
            self.log.error(
                "error_runtime",
                "Ending early: Ran out of generated queries to issue before the minimum query count and test \
                 duration were reached. Please update the relevant expected latency or target qps in the \
                 TestSettings so they are more accurate.",
            );
        }
        for fault in &measured.faults {
            self.log.error("error_runtime", fault);
        }
        self.faults.extend(measured.faults);
        // The official log counts contention in its logger here. This LoadGen has no such logger, so the counters are 0.
        for counter in [
            "logger_swap_request_slots_retry_count",
            "logger_swap_request_slots_retry_retry_count",
            "logger_swap_request_slots_retry_reencounter_count",
            "logger_start_reading_entries_retry_count",
            "logger_tls_total_log_cas_fail_count",
            "logger_tls_total_swap_buffers_slot_retry_count",
        ] {
            self.log.info(counter, 0_u64);
        }
        let begin = measured.wall_start;
        let end = begin
            .saturating_add(SignedDuration::from_nanos(measured.active_ns))
            .unwrap_or(begin);
        self.log
            .info("power_begin", stamp(begin, "%m-%d-%Y %T.%3f").as_str());
        self.log.info("power_end", stamp(end, "%m-%d-%Y %T.%3f").as_str());
        self.log
            .trace(&measured.trace, self.effective.scenario == Scenario::Server);
        if measured.complete {
            Ok(measured.result)
        } else {
            Err(PartFailed)
        }
    }

    /// Records how the timing thread ran. Refused requests are reported once, not per series.
    fn note_timing(&mut self, timing: Timing) {
        if self.timing.is_some() {
            return;
        }
        for reason in &timing.refused {
            self.log.warning(reason);
            self.warnings.push(reason.clone());
        }
        self.timing = Some(timing);
    }

    fn log_end(&mut self, ended: EndedBy) {
        let text = match ended {
            EndedBy::NoMoreQueries => return,
            EndedBy::Minima => {
                let text = "Ending naturally: Minimum query count and test duration met.";
                return self.log.info("generic_message", text);
            }
            EndedBy::MaxQueries { thread, issued } => format!(
                "IssueQueryThread {thread} Ending early: Max query count reached. query_count {issued}"
            ),
            EndedBy::MaxDuration { thread, duration_ns } => format!(
                "IssueQueryThread {thread} Ending early: Max test duration reached. duration_ns {duration_ns}"
            ),
            EndedBy::TooManyOutstanding {
                thread,
                issued,
                outstanding,
            } => format!(
                "IssueQueryThread {thread} Ending early: Too many outstanding queries. issued {issued} \
                 outstanding {outstanding}"
            ),
        };
        self.log.error("error_runtime", &text);
    }
}
