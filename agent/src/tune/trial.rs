//! A trial: `bench` in a separate process, with an engine that is built if it is missing. This module defines a
//! scenario's figure and how long LoadGen runs for it.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use regatta_types::{Scenario, engine_settings::EngineSettings};
use serde::Deserialize;

use super::{builder::Builder, process, search::TestBench, trial_failure::TrialFailure};

/// Time by which a trial may exceed the search's limit, besides three times its length. Large engines take long to
/// load.
const GRACE: Duration = Duration::from_secs(30);
/// Initial Offline rate in samples per second, if no rate is known.
const FIRST_RATE: f64 = 30.0;
/// Most runs to determine the Offline rate.
const PROBES: usize = 8;
/// Runs of a Server search.
const SERVER_RUNS: usize = 6;
/// The start of LoadGen's message when too many queries were late.
const TOO_LATE: &str = "Reduce target QPS";

/// The trials of one benchmark in one scenario.
pub(super) struct Trials {
    pub(super) program: PathBuf,
    /// Arguments of `bench` that all trials share.
    pub(super) words: Vec<String>,
    /// The model's name in conf files.
    pub(super) model: String,
    pub(super) scenario: Scenario,
    /// Settings of the user.
    pub(super) fixed: EngineSettings,
    /// The directory for confs and logs. Each trial overwrites those of the last.
    pub(super) directory: PathBuf,
    /// The start of the search.
    pub(super) begun: Instant,
    /// The time limit of the search.
    pub(super) limit: Duration,
    /// The engine's description, after its first run.
    pub(super) engine: Option<String>,
    /// The builder of missing engines. `None` if no engine is to be built.
    pub(super) builder: Option<Builder>,
}

/// The result of a `bench` whose engine is missing: the arguments that build the engine.
#[derive(Debug, Deserialize)]
struct Missing {
    missing_engine: Vec<String>,
}

/// The parts of `bench`'s report that are used.
#[derive(Debug, Deserialize)]
struct TrialReport {
    engine: String,
    reasons: Vec<String>,
    metric: Option<Metric>,
    performance: Option<PerformanceCounts>,
}

#[derive(Debug, Deserialize)]
struct Metric {
    value: f64,
}

#[derive(Debug, Deserialize)]
struct PerformanceCounts {
    samples: u64,
}

impl TestBench for Trials {
    fn measure(
        &mut self,
        settings: &EngineSettings,
        length: Duration,
        best: Option<f64>,
    ) -> Result<f64, TrialFailure> {
        match self.scenario {
            Scenario::SingleStream | Scenario::MultiStream => {
                // Half of the known latency, because LoadGen prepares as many queries as duration and latency need.
                let expected = best.map_or(0.05, |milliseconds| milliseconds / 2.0);
                let figure = self.run(settings, length, "target_latency", expected)?.0;
                Ok(figure / 1e6)
            }
            Scenario::Offline => self.offline(settings, length, best),
            Scenario::Server => self.server(settings, length, best),
        }
    }

    fn spent(&self) -> Duration {
        self.begun.elapsed()
    }
}

impl Trials {
    /// Returns Offline's samples per second, from a run of about the given length. The number of samples for that
    /// length is determined first.
    fn offline(
        &mut self,
        settings: &EngineSettings,
        length: Duration,
        best: Option<f64>,
    ) -> Result<f64, TrialFailure> {
        let mut expected = best.unwrap_or(FIRST_RATE);
        for _ in 0..PROBES {
            let (rate, report) = self.run(settings, length, "target_qps", expected)?;
            let samples = report.performance.map_or(0, |counts| counts.samples) as f64;
            // If a best rate is known, one run suffices: a faster choice only takes less time.
            if best.is_some() || samples / rate >= length.as_secs_f64() / 2.0 {
                return Ok(rate);
            }
            expected = rate;
        }
        Err("gets faster with every longer run".into())
    }

    /// Returns the highest rate that keeps the latency bound. The rate is doubled or halved until there is a bound on
    /// both sides, and then bisected.
    fn server(
        &mut self,
        settings: &EngineSettings,
        length: Duration,
        best: Option<f64>,
    ) -> Result<f64, TrialFailure> {
        let (mut kept, mut missed): (Option<f64>, Option<f64>) = (None, None);
        let mut rate = best.map_or(FIRST_RATE, |best| best * 1.02);
        for _ in 0..SERVER_RUNS {
            let (_, report) = self.run(settings, length, "target_qps", rate)?;
            if report.reasons.iter().any(|reason| reason.starts_with(TOO_LATE)) {
                missed = Some(rate);
            } else {
                kept = Some(rate);
            }
            rate = match (kept, missed) {
                (Some(kept), None) => kept * 2.0,
                (None, Some(missed)) => missed / 2.0,
                (Some(kept), Some(missed)) => f64::midpoint(kept, missed),
                (None, None) => rate,
            };
        }
        kept.ok_or_else(|| "does not keep the latency bound at any tried rate".into())
    }

    /// Runs LoadGen once in a separate process. Returns LoadGen's metric and the report.
    fn run(
        &mut self,
        settings: &EngineSettings,
        length: Duration,
        key: &str,
        expected: f64,
    ) -> Result<(f64, TrialReport), TrialFailure> {
        let conf = self.directory.join("user.conf");
        fs::write(&conf, self.conf(length, key, expected))
            .map_err(|error| TrialFailure(format!("cannot be started: {error}")))?;
        let mut words = self.words.clone();
        words.extend(["--user-conf".to_owned(), conf.display().to_string()]);
        for assignment in self.fixed.clone().or(settings.clone()).assignments() {
            words.extend(["--set".to_owned(), assignment]);
        }
        let report = self.report(&words, length)?;
        self.engine = Some(report.engine.clone());
        let figure = report.metric.as_ref().map(|metric| metric.value);
        match figure.filter(|figure| figure.is_finite() && *figure > 0.0) {
            Some(figure) => Ok((figure, report)),
            None => Err(report
                .reasons
                .first()
                .cloned()
                .map_or_else(|| "gave no figure".into(), TrialFailure)),
        }
    }

    /// Returns the report of a `bench`. Missing engines are built first, for one unit after the other.
    fn report(&mut self, words: &[String], length: Duration) -> Result<TrialReport, TrialFailure> {
        loop {
            let patience = self.left() + length * 3 + GRACE;
            let ended = process::run(&self.program, words, &self.directory, patience)?;
            if let Ok(report) = serde_json::from_slice(&ended.stdout) {
                return Ok(report);
            }
            let missing = serde_json::from_slice::<Missing>(&ended.stdout).ok();
            let patience = self.left() + GRACE;
            let is_built = match (missing, &mut self.builder) {
                (Some(missing), Some(builder)) => builder.build(&missing.missing_engine, patience)?,
                _ => false,
            };
            if !is_built {
                return Err(ended.failure());
            }
        }
    }

    /// Returns the time that is left for the search.
    fn left(&self) -> Duration {
        self.limit.saturating_sub(self.begun.elapsed())
    }

    /// Returns the `user.conf` of a short run.
    fn conf(&self, length: Duration, key: &str, expected: f64) -> String {
        let lines = [
            ("min_duration", length.as_millis().to_string()),
            ("min_query_count", "1".to_owned()),
            (key, expected.to_string()),
        ];
        let (model, scenario) = (&self.model, self.scenario);
        lines
            .map(|(key, value)| format!("{model}.{scenario}.{key} = {value}\n"))
            .concat()
    }
}
