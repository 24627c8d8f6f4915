//! A round of MLPerf Inference as its file under `configs/rounds/` describes it.
//!
//! A round is data: no round number stands in code. Here is what LoadGen is told; what a submission must hold is in
//! [`Submission`].

mod benchmark;
mod checker;
mod endpoints;
mod power;
mod submission;
mod submitted;

use std::{collections::BTreeMap, fmt::Write as _};

pub use benchmark::{AccuracyBound, BenchmarkRules, Scenarios, TokenLimits};
pub use checker::{Checker, Engine, OfficialCheck, Trait};
pub use endpoints::{Endpoints, EndpointsField};
pub use power::{DurationRule, PowerRules};
use regatta_types::benchmark::Benchmark;
use serde::{Deserialize, Serialize};
pub use submission::{AccuracyForms, Inference, Layout, LowerAccuracy, ModelGuess, Submission};
pub use submitted::SubmittedScenario;

use crate::{procedures::Audit, procedures::Truncation};

/// One round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// Schema number of the file.
    pub schema: u16,
    /// The round's name, such as `v6.1`.
    pub name: String,
    /// The official conf of that round: `model.scenario.key` to value, values as texts because seeds exceed 63 bits.
    pub mlperf_conf: BTreeMap<String, String>,
    /// What a submission of the round must hold.
    pub submission: Submission,
    /// How accuracy logs are cut for the submission.
    #[serde(default)]
    pub truncation: Option<Truncation>,
    /// How audits are run and judged, by their name, such as `TEST01`.
    #[serde(default)]
    pub audits: BTreeMap<String, Audit>,
    /// How a power measurement is judged.
    #[serde(default)]
    pub power: Option<PowerRules>,
}

impl Round {
    /// Reads a round file.
    ///
    /// # Errors
    /// The parser's own message, which names line and column.
    pub fn from_toml(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// The seeds of the round: of the query sample library, the sample index and the schedule.
    ///
    /// `None` when the conf does not give all three as 64-bit numbers.
    #[must_use]
    pub fn seeds(&self) -> Option<Seeds> {
        self.seeds_under("")
    }

    /// The seeds that TEST05 runs with, where the round has them.
    #[must_use]
    pub fn test05_seeds(&self) -> Option<Seeds> {
        self.submission
            .test05_seeds
            .or_else(|| self.seeds_under("test05_"))
    }

    /// The round's rules for a benchmark, by any of the names that a user may know it under, with its official name.
    #[must_use]
    pub fn rules_of<'a>(&'a self, benchmark: &'a Benchmark) -> Option<(&'a str, &'a BenchmarkRules)> {
        std::iter::once(&benchmark.name)
            .chain(&benchmark.aliases)
            .find_map(|name| self.submission.rules_of(name))
    }

    /// The audits that the round asks of a benchmark. One that the round does not have is asked none; it can rehearse all,
    /// and those are returned.
    #[must_use]
    pub fn audits_of<'a>(&'a self, benchmark: &'a Benchmark) -> Vec<&'a str> {
        match self.rules_of(benchmark) {
            Some((_, rules)) => rules.tests.iter().map(String::as_str).collect(),
            None => self.audits.keys().map(String::as_str).collect(),
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

    /// The round's conf for our own LoadGen, with a benchmark's extra lines behind it.
    ///
    /// A run by the official LoadGen uses that LoadGen's own conf instead: a submission wants it unmodified.
    #[must_use]
    pub fn render_mlperf_conf(&self, extra: &BTreeMap<String, String>) -> String {
        let mut text = format!(
            "# MLPerf Inference {}: values of the official mlperf.conf\n",
            self.name
        );
        render_conf_lines(&mut text, &self.mlperf_conf);
        if !extra.is_empty() {
            text.push_str("# Values of the benchmark's own file\n");
            render_conf_lines(&mut text, extra);
        }
        text
    }
}

/// The three seeds from which LoadGen draws, the full 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seeds {
    /// Which samples are loaded together.
    #[serde(with = "submission::decimal")]
    pub qsl: u64,
    /// Which sample a query asks for.
    #[serde(with = "submission::decimal")]
    pub sample_index: u64,
    /// When Server queries arrive.
    #[serde(with = "submission::decimal")]
    pub schedule: u64,
}

/// Appends `key = value` lines in LoadGen's conf syntax, sorted by key.
pub fn render_conf_lines(text: &mut String, values: &BTreeMap<String, String>) {
    for (key, value) in values {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{key} = {value}");
    }
}
