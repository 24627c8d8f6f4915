//! Checks the numbers of requests of a run, and the duration and rates that follow from them.

use serde_json::Value;

use super::{EndpointsJudge, prescribed::at};
use crate::check::{
    finding::{Findings, Severity},
    rules,
};

/// The allowed relative deviation of a recomputed figure.
const SLACK: f64 = 1e-6;
/// The share of the minimum duration that suffices, because the clock may be adjusted during a run.
const CLOCK: f64 = 0.99;
/// The share of responses cut at the limit of tokens from which the model's reasoning was probably left on.
const MANY_CUT: f64 = 0.05;
const NANOSECONDS: f64 = 1e9;
const FIX: &str = "put the harness's documents of one complete run there";

impl EndpointsJudge<'_> {
    fn summary(&self, path: &str) -> Option<f64> {
        at(&self.documents.summary.value, path)?.as_f64()
    }

    fn wrong(&self, text: String, findings: &mut Findings) {
        findings.error(rules::ENDPOINTS_FIGURES, &self.documents.summary.path, text, FIX);
    }

    fn dubious(&self, text: &str, fix: &str, findings: &mut Findings) {
        let path = &self.documents.summary.path;
        findings.add(Severity::Warning, rules::ENDPOINTS_FIGURES, path, text, fix);
    }

    /// Checks that every request of the benchmark was issued and completed, and that none failed.
    pub(super) fn requests(&self, findings: &mut Findings) {
        if self.documents.summary.fault.is_some() {
            return;
        }
        let expected = self.prescribed.map(|run| run.requests as f64);
        for (name, expected) in [
            ("n_samples_issued", expected),
            ("n_samples_completed", expected),
            ("n_samples_failed", Some(0.0)),
        ] {
            match (self.summary(name), expected) {
                (None, _) => self.wrong(format!("{name} is missing"), findings),
                (Some(found), Some(expected)) if found != expected => {
                    let path = &self.documents.summary.path;
                    let text = format!("{name} is {found}, the benchmark has {expected}");
                    findings.error(
                        rules::VALID,
                        path,
                        text,
                        "repeat the run until every request is answered",
                    );
                }
                _ => {}
            }
        }
        self.finish_reasons(findings);
        if self.summary("latency.total").is_some()
            && self.summary("tpot.total").is_none()
            && self.prescribed.is_some()
        {
            let fix = "name the tokenizer in model_params.tokenizer_name";
            self.dubious("tpot and output_sequence_lengths are empty", fix, findings);
        }
        if at(&self.documents.summary.value, "git_sha").is_none() {
            let fix = "run the client from a git checkout, or be prepared to name its revision";
            self.dubious(
                "git_sha is missing: the client's revision is unknown",
                fix,
                findings,
            );
        }
    }

    fn finish_reasons(&self, findings: &mut Findings) {
        let Some(Value::Object(reasons)) = self.documents.summary.value.get("finish_reason_counts") else {
            return;
        };
        let Some(completed) = self.summary("n_samples_completed") else {
            return;
        };
        let sum: f64 = reasons.values().filter_map(Value::as_f64).sum();
        if sum != completed {
            self.wrong(
                format!("finish_reason_counts are of {sum} responses, {completed} were completed"),
                findings,
            );
        }
        let cut = reasons.get("length").and_then(Value::as_f64).unwrap_or_default();
        if cut > completed * MANY_CUT {
            let text = format!("{cut} of {completed} responses were cut at the limit of tokens");
            self.dubious(&text, "see that the model's reasoning is off", findings);
        }
    }

    /// Checks the run's duration, and the rates and latencies against it.
    pub(super) fn duration(&self, findings: &mut Findings) {
        if self.documents.summary.fault.is_some() {
            return;
        }
        let Some(duration) = self.summary("duration_ns").filter(|duration| *duration > 0.0) else {
            return self.wrong("duration_ns is missing or not positive".to_owned(), findings);
        };
        let seconds = duration / NANOSECONDS;
        let needed = self.case.context.round.submission.min_duration_ms as f64 / 1e3;
        if self.case.bound() && !self.case.rules.any_duration && seconds < needed * CLOCK {
            let text = format!("the run lasted {seconds:.1} s, at least {needed} s are needed");
            let fix = "repeat the run at its full length";
            findings.error(rules::DURATION, &self.documents.summary.path, text, fix);
        }
        // A legacy window has rates of its own.
        if self.summary("legacy_loadgen_window_duration_ns").is_none() {
            for (rate, count) in [
                ("qps", "n_samples_completed"),
                ("tps", "output_sequence_lengths.total"),
            ] {
                let (Some(found), Some(count)) = (self.summary(rate), self.summary(count)) else {
                    continue;
                };
                let made = count / seconds;
                if (found - made).abs() > made.abs() * SLACK {
                    self.wrong(
                        format!("{rate} is {found}, {count} in {seconds:.3} s are {made:.6}"),
                        findings,
                    );
                }
            }
        }
        let at_a_time = self.summary("run_config.load_pattern.target_concurrency");
        if let (Some(total), Some(at_a_time)) = (self.summary("latency.total"), at_a_time)
            && total > duration * at_a_time * (1.0 + SLACK)
        {
            let sum = total / NANOSECONDS;
            self.wrong(
                format!("the latencies are {sum:.3} s in all, {at_a_time} at a time took {seconds:.3} s"),
                findings,
            );
        }
        if let (Some(first), Some(all)) = (self.summary("ttft.total"), self.summary("latency.total"))
            && first > all
        {
            self.wrong(
                "the first tokens took longer than the complete responses".to_owned(),
                findings,
            );
        }
    }
}
