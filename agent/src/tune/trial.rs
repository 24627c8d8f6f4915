//! One trial: `bench` in a process of its own, over an engine that is built for it where there is none. What a scenario's figure
//! is, and how long LoadGen must run for it, is decided here.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use regatta_types::Scenario;
use serde::Deserialize;

use super::{builder::Builder, process, search::Stand};

/// What a trial may overrun the search's limit by, beside three times its length: large engines take their time to load.
const GRACE: Duration = Duration::from_secs(30);
/// Samples per second that Offline begins with where nothing is known.
const FIRST_RATE: f64 = 30.0;
/// Runs until Offline's rate is known.
const PROBES: usize = 8;
/// Runs of a Server search.
const SERVER_RUNS: usize = 6;
/// LoadGen's words where too many queries were late.
const TOO_LATE: &str = "Reduce target QPS";

/// Trials of one benchmark in one scenario.
pub(super) struct Trials {
    /// The program's own file.
    pub(super) program: PathBuf,
    /// Words of `bench` that are the same for every trial.
    pub(super) words: Vec<String>,
    /// The name in conf files.
    pub(super) model: String,
    /// The scenario.
    pub(super) scenario: Scenario,
    /// Settings that the user gave.
    pub(super) fixed: BTreeMap<String, String>,
    /// Where confs and logs of trials lie; each trial replaces the last one's.
    pub(super) directory: PathBuf,
    /// When the search began.
    pub(super) begun: Instant,
    /// How long it may take.
    pub(super) limit: Duration,
    /// The engine in its own words, once it has run.
    pub(super) engine: Option<String>,
    /// Builds what is missing; none where nothing is to be built.
    pub(super) builder: Option<Builder>,
}

/// What a `bench` prints that lacks an engine: the arguments that build it.
#[derive(Debug, Deserialize)]
struct Missing {
    missing_engine: Vec<String>,
}

/// What is read of a `bench`'s report.
#[derive(Debug, Deserialize)]
struct Report {
    engine: String,
    reasons: Vec<String>,
    metric: Option<Metric>,
    performance: Option<Counts>,
}

#[derive(Debug, Deserialize)]
struct Metric {
    value: f64,
}

#[derive(Debug, Deserialize)]
struct Counts {
    samples: u64,
}

impl Stand for Trials {
    fn measure(
        &mut self,
        settings: &BTreeMap<String, String>,
        length: Duration,
        best: Option<f64>,
    ) -> Result<f64, String> {
        match self.scenario {
            Scenario::SingleStream | Scenario::MultiStream => {
                // Half of what is known: LoadGen prepares as many queries as the time and this latency call for.
                let expected = best.map_or(0.05, |milliseconds| milliseconds / 2.0);
                let figure = self.run(settings, length, ("target_latency", expected))?.0;
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
    /// Samples per second, of as many samples as take the length: how many that is must first be found out.
    fn offline(
        &mut self,
        settings: &BTreeMap<String, String>,
        length: Duration,
        best: Option<f64>,
    ) -> Result<f64, String> {
        let mut expected = best.unwrap_or(FIRST_RATE);
        for _ in 0..PROBES {
            let (rate, report) = self.run(settings, length, ("target_qps", expected))?;
            let samples = report.performance.map_or(0, |counts| counts.samples) as f64;
            // With a best to go by one run will do: whoever is quicker is so in less time.
            if best.is_some() || samples / rate >= length.as_secs_f64() / 2.0 {
                return Ok(rate);
            }
            expected = rate;
        }
        Err("gets quicker with every longer run".to_owned())
    }

    /// The highest rate at which the latency bound is kept: doubled or halved until it is known from both sides, then
    /// halved in between.
    fn server(
        &mut self,
        settings: &BTreeMap<String, String>,
        length: Duration,
        best: Option<f64>,
    ) -> Result<f64, String> {
        let (mut kept, mut missed): (Option<f64>, Option<f64>) = (None, None);
        let mut rate = best.map_or(FIRST_RATE, |best| best * 1.02);
        for _ in 0..SERVER_RUNS {
            let (_, report) = self.run(settings, length, ("target_qps", rate))?;
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
        kept.ok_or_else(|| "keeps the latency bound at no rate that was tried".to_owned())
    }

    /// One run of LoadGen in a process of its own: the metric as LoadGen has it.
    fn run(
        &mut self,
        settings: &BTreeMap<String, String>,
        length: Duration,
        (key, expected): (&str, f64),
    ) -> Result<(f64, Report), String> {
        let conf = self.directory.join("user.conf");
        fs::write(&conf, self.conf(length, key, expected))
            .map_err(|error| format!("cannot be started: {error}"))?;
        let mut words = self.words.clone();
        words.extend(["--user-conf".to_owned(), conf.display().to_string()]);
        for (name, value) in self.fixed.iter().chain(settings) {
            words.extend(["--setting".to_owned(), format!("{name}={value}")]);
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
                .unwrap_or_else(|| "gave no figure".to_owned())),
        }
    }

    /// A `bench`'s report. Where it lacks an engine, that is built first, and where it lacks one for another unit, that next.
    fn report(&mut self, words: &[String], length: Duration) -> Result<Report, String> {
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
                return Err(ended.why());
            }
        }
    }

    /// What is left of the search's time.
    fn left(&self) -> Duration {
        self.limit.saturating_sub(self.begun.elapsed())
    }

    /// A short run's `user.conf`.
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
