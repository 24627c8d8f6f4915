//! A round of MLPerf Inference as its file under `configs/rounds/` describes it.
//!
//! A round is data: the code contains no round number. This module has the values for LoadGen. [`Submission`] has the requirements for a
//! submission.

mod benchmark;
mod checker;
mod conf;
mod endpoints;
mod power;
mod submission;
mod submitted;
mod system_category;

use std::collections::BTreeMap;

pub use benchmark::{AccuracyBound, BenchmarkRules, Scenarios, TokenLimits};
pub use checker::{Checker, CheckerKind, OfficialCheck, Trait};
pub use conf::{RoundConf, render_conf_lines};
pub use endpoints::{Endpoints, EndpointsField, PrescribedRun, ScoreCategory};
pub use power::{DurationRule, OWN_PROGRAM_PREFIX, PowerRules, SIMULATION_MARK};
use regatta_types::{Scenario, benchmark::Benchmark, documents::is_same_commit};
use serde::{Deserialize, Serialize};
pub use submission::{AccuracyForms, Inference, Layout, LowerAccuracy, ModelGuess, Submission};
pub use submitted::SubmittedScenario;
pub use system_category::SystemCategory;

use crate::{procedures::Audit, procedures::Truncation};

/// One round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// Schema number of the file.
    pub schema: u16,
    /// The round's name, for example `v6.1`.
    pub name: String,
    /// The commits of the official repository whose LoadGen a submission may use, newest first.
    pub accepted_loadgens: Vec<String>,
    /// The official conf of that round: `model.scenario.key` to value. Values are texts because seeds exceed 63 bits.
    pub mlperf_conf: BTreeMap<String, String>,
    /// Requirements for a submission of the round.
    pub submission: Submission,
    /// How accuracy logs are truncated for the submission.
    #[serde(default)]
    pub truncation: Option<Truncation>,
    /// How audits are executed and verified, by their name, for example `TEST01`.
    #[serde(default)]
    pub audits: BTreeMap<String, Audit>,
    /// Parameters of the power checker.
    #[serde(default)]
    pub power: Option<PowerRules>,
}

impl Round {
    /// Parses a round file.
    ///
    /// # Errors
    /// The parser's own message, with line and column.
    pub fn from_toml(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// Returns whether a submission may use the LoadGen of a commit.
    #[must_use]
    pub fn accepts_loadgen(&self, revision: &str) -> bool {
        let mut accepted = self.accepted_loadgens.iter();
        accepted.any(|accepted| is_same_commit(accepted, revision))
    }

    /// Returns the newest of the installed revisions of LoadGen that a submission may use.
    #[must_use]
    pub fn newest_accepted_loadgen<'a>(&self, installed: &'a [String]) -> Option<&'a str> {
        self.accepted_loadgens.iter().find_map(|accepted| {
            let mut installed = installed.iter();
            let found = installed.find(|revision| is_same_commit(accepted, revision));
            found.map(String::as_str)
        })
    }

    /// Returns the seeds of the round: query sample library, sample index and schedule.
    ///
    /// `None` when the conf does not contain all three as 64-bit numbers.
    #[must_use]
    pub fn seeds(&self) -> Option<Seeds> {
        self.seeds_under("")
    }

    /// Returns the run of the endpoints harness that the rules prescribe for a benchmark.
    #[must_use]
    pub fn prescribed_endpoints_run(&self, benchmark: &str) -> Option<&PrescribedRun> {
        self.submission.endpoints.as_ref()?.prescribed.get(benchmark)
    }

    /// Returns the seeds of TEST05, when the round has them.
    #[must_use]
    pub fn test05_seeds(&self) -> Option<Seeds> {
        self.submission
            .test05_seeds
            .or_else(|| self.seeds_under("test05_"))
    }

    /// Returns the round's rules for a benchmark and its official name. A name or an alias that is official decides. Otherwise the name of
    /// a benchmark without aliases is looked up as that of a directory is; when that only guesses, the target must be the round's.
    #[must_use]
    pub fn rules_of<'a>(&'a self, benchmark: &'a Benchmark) -> Option<(&'a str, &'a BenchmarkRules)> {
        let mut names = std::iter::once(&benchmark.name).chain(&benchmark.aliases);
        if let Some((name, rules)) = names.find_map(|name| self.submission.benchmarks.get_key_value(name)) {
            return Some((name, rules));
        }
        // Directories of old benchmarks are other ones in later rounds: `ssd-resnet34` is RetinaNet's in v2.1.
        if !benchmark.aliases.is_empty() {
            return None;
        }
        let target = benchmark.accuracy.target();
        let is_listed = self.submission.model_names.contains_key(&benchmark.name);
        self.submission.rules_of(&benchmark.name).filter(|(_, rules)| {
            let mut bounds = rules.accuracy.iter();
            is_listed || bounds.any(|bound| (bound.value() - target).abs() < f64::EPSILON)
        })
    }

    /// Returns the audits that the round requires of a benchmark. For a benchmark that is not in the round, returns all audits: none is
    /// required, and every one can be rehearsed.
    #[must_use]
    pub fn audits_of<'a>(&'a self, benchmark: &'a Benchmark) -> Vec<&'a str> {
        match self.rules_of(benchmark) {
            Some((_, rules)) => rules.tests.iter().map(String::as_str).collect(),
            None => self.audits.keys().map(String::as_str).collect(),
        }
    }

    /// Returns the scenarios that a system of a category must submit for a benchmark. For a benchmark that is not in the round, returns those of most
    /// edge benchmarks, so that a submission can be rehearsed. Returns `None` if the round does not have the benchmark in this category.
    #[must_use]
    pub fn required_scenarios<'a>(
        &'a self,
        benchmark: &'a Benchmark,
        category: SystemCategory,
    ) -> Option<&'a [Scenario]> {
        const REHEARSED: &[Scenario] = &[Scenario::SingleStream, Scenario::MultiStream, Scenario::Offline];
        match self.rules_of(benchmark) {
            Some((_, rules)) => rules.required(category.system_type()),
            None => Some(REHEARSED),
        }
    }

    fn seeds_under(&self, prefix: &str) -> Option<Seeds> {
        let seed = |name: &str| {
            self.mlperf_conf
                .get(&format!("*.*.{prefix}{name}_rng_seed"))?
                .parse()
                .ok()
        };
        Some(Seeds {
            qsl: seed("qsl")?,
            sample_index: seed("sample_index")?,
            schedule: seed("schedule")?,
        })
    }

    /// Renders the round's conf for Regatta's own LoadGen, followed by a benchmark's extra lines.
    ///
    /// The official LoadGen uses its own conf instead, because a submission requires it unmodified.
    #[must_use]
    pub fn render_mlperf_conf(&self, extra: &BTreeMap<String, String>) -> String {
        conf::render(&self.name, &self.mlperf_conf, extra)
    }
}

/// The three 64-bit seeds of LoadGen's random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seeds {
    /// Selects the samples that are loaded together.
    #[serde(with = "submission::decimal")]
    pub qsl: u64,
    /// Selects the sample of each query.
    #[serde(with = "submission::decimal")]
    pub sample_index: u64,
    /// Determines the arrival times of Server queries.
    #[serde(with = "submission::decimal")]
    pub schedule: u64,
}
