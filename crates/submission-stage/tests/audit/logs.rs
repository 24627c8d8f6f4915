//! Synthetic logs for tests.

use std::{fs, path::Path};

use regatta_mllog::accuracy::{AccuracyWriter, Entry};
use regatta_random::SplitMix64;
use regatta_test_support::tree::put;

/// Writes an accuracy log with these samples and responses, in LoadGen's form.
pub(crate) fn put_accuracy(path: &Path, entries: &[(usize, Vec<u8>)]) {
    let mut log = Vec::new();
    let mut writer = AccuracyWriter::new(&mut log).unwrap();
    for (seq_id, (qsl_idx, data)) in (0..).zip(entries) {
        writer
            .entry(&Entry {
                seq_id,
                qsl_idx: *qsl_idx,
                data,
                tokens: None,
            })
            .unwrap();
    }
    writer.finish().unwrap();
    put(path, log);
}

/// A performance run as far as audits look at it.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) scenario: &'static str,
    /// Nanoseconds, or samples per second.
    pub(crate) score: String,
    pub(crate) valid: bool,
    pub(crate) errors: u32,
    /// Whether percentiles are spelled as LoadGen prints them since round v5.1.
    pub(crate) newer: bool,
    /// Further records of the detail log.
    pub(crate) facts: Vec<(&'static str, String)>,
}

impl Run {
    pub(crate) fn new(scenario: &'static str, score: &str) -> Self {
        Self {
            scenario,
            score: score.to_owned(),
            valid: true,
            errors: 0,
            newer: false,
            facts: Vec::new(),
        }
    }

    pub(crate) fn put(&self, directory: &Path) {
        put(&directory.join("mlperf_log_summary.txt"), self.summary());
        put(&directory.join("mlperf_log_detail.txt"), self.detail());
    }

    fn summary(&self) -> String {
        let line = match self.scenario {
            "SingleStream" if self.newer => " * Early stopping 90.0th percentile estimate: ",
            "MultiStream" if self.newer => " * Early stopping 99.0th percentile estimate: ",
            "SingleStream" => " * Early stopping 90th percentile estimate: ",
            "MultiStream" => " * Early stopping 99th percentile estimate: ",
            "Offline" => "Samples per second: ",
            _ => "Completed samples per second    : ",
        };
        let verdict = if self.valid { "VALID" } else { "INVALID" };
        let errors = match self.errors {
            0 => "No errors encountered during test.".to_owned(),
            count => format!("{count} ERRORS encountered. See detailed log."),
        };
        let (before, after) = match self.scenario {
            "SingleStream" | "MultiStream" => (
                String::new(),
                format!("Early Stopping Result:\n{line}{}\n", self.score),
            ),
            _ => (format!("{line}{}\n", self.score), String::new()),
        };
        format!(
            "================================================\nMLPerf Results Summary\n\
             ================================================\nSUT name : Test\nScenario : {}\n\
             Mode     : PerformanceOnly\n{before}Result is : {verdict}\n  Min duration satisfied : Yes\n{after}\n\
             No warnings encountered during test.\n\n{errors}\n",
            self.scenario
        )
    }

    fn detail(&self) -> String {
        let key = match self.scenario {
            "SingleStream" => "early_stopping_latency_ss",
            "MultiStream" => "early_stopping_latency_ms",
            "Offline" => "result_samples_per_second",
            _ => "result_completed_samples_per_sec",
        };
        let verdict = if self.valid { "\"VALID\"" } else { "\"INVALID\"" };
        let mut facts = vec![
            ("loadgen_version", "\"5.1 @ 0123456789\"".to_owned()),
            ("effective_scenario", format!("\"{}\"", self.scenario)),
            ("effective_test_mode", "\"PerformanceOnly\"".to_owned()),
            ("effective_qsl_rng_seed", "1780908523862526354".to_owned()),
            ("effective_accuracy_log_rng_seed", "720381539243781796".to_owned()),
            ("effective_target_latency_ns", "15000000".to_owned()),
            (key, self.score.clone()),
            ("result_validity", verdict.to_owned()),
        ];
        for (key, value) in &self.facts {
            facts.retain(|(known, _)| known != key);
            facts.push((key, value.clone()));
        }
        facts.push(("num_errors", self.errors.to_string()));
        facts
            .iter()
            .map(|(key, value)| {
                format!(
                    ":::MLLOG {{\"key\": \"{key}\", \"value\": {value}, \"time_ms\": 0.1, \"namespace\": \"mlperf::logging\", \
                     \"event_type\": \"POINT_IN_TIME\", \"metadata\": {{\"is_error\": false, \"is_warning\": false, \
                     \"file\": \"a.cc\", \"line_no\": 1, \"pid\": 1, \"tid\": 1}}}}\n"
                )
            })
            .collect()
    }
}

/// A small generator with the same numbers in every run.
pub(crate) struct Numbers(SplitMix64);

impl Numbers {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0.bits()
    }

    pub(crate) const fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// Little-endian bytes of that many 4-byte elements, a NaN or a zero of either sign among them at times.
    pub(crate) fn elements(&mut self, count: u64) -> Vec<u8> {
        let element = |numbers: &mut Self| match numbers.below(20) {
            0 => f32::NAN.to_le_bytes(),
            1 => (-0.0_f32).to_le_bytes(),
            2 => 0.0_f32.to_le_bytes(),
            _ => (numbers.next() as u32).to_le_bytes(),
        };
        (0..count).flat_map(|_| element(self)).collect()
    }
}

/// The text of a file in a verified audit's directory.
pub(crate) fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
