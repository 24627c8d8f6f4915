//! `PLAN.toml`: several run requests in one file, with the command line's terms.
//!
//! ```toml
//! schema = 1
//!
//! [[run]]
//! device = "boat-1"
//! benchmark = "digits"
//! scenario = ["SingleStream", "Offline"]
//! mode = ["AccuracyOnly", "PerformanceOnly"]
//! engine = "tract"
//! test_run = true
//! set = { batch_size = "16" }
//! state = "MaxP"
//! ```

use std::collections::BTreeMap;

use regatta_types::documents::RunTask;
use serde::{Deserialize, Serialize};

use super::{GateWords, StateWords, word_list::words};

/// The newest schema number that this program reads.
const SCHEMA: u16 = 1;

/// An error in a plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The text is not TOML, or has an unknown or missing key.
    #[error("not a valid plan")]
    Toml(#[from] toml::de::Error),
    /// The plan is written for a newer program.
    #[error("the plan has schema {0}; this program reads up to {SCHEMA}: update it")]
    TooNew(u16),
    /// The plan has no `[[run]]`.
    #[error("the plan has no [[run]]")]
    Empty,
}

/// One `[[run]]`: a run for each scenario and mode.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Words {
    /// The device's name or id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The benchmark's name or alias.
    pub benchmark: String,
    /// Scenarios.
    #[serde(deserialize_with = "words")]
    pub scenario: Vec<String>,
    /// Modes. The default is PerformanceOnly.
    #[serde(default, deserialize_with = "words", skip_serializing_if = "Vec::is_empty")]
    pub mode: Vec<String>,
    /// The round. The default is the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<String>,
    /// The engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// `native`, `official` or `official:REVISION`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loadgen: Option<String>,
    /// Whether each run lasts 60 s only.
    #[serde(default)]
    pub test_run: bool,
    /// The duration, for example `3s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// The time of the logs' delivery: `after` or `live`. The default is `after`, and `live` for accuracy runs of many samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// The system whose values apply: a name, a file that ends in `.toml`, or `none`. The default is the device's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Engine settings.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
    /// Lines for `user.conf`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub conf: BTreeMap<String, String>,
    /// The requested device state. By default the state is not changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateWords>,
    /// The conditions that the device must meet before the run starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateWords>,
    /// The time that a device may have the run, for example `2h`. The default is without a limit, and in campaigns a multiple of its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Assets that the run needs besides its benchmark's files.
    #[serde(default, deserialize_with = "words", skip_serializing_if = "Vec::is_empty")]
    pub asset: Vec<String>,
    /// The work of the device. `engine-build` builds the engines that its runs would lack, `asset-fetch` downloads their files, and `tune`
    /// searches for engine settings for as long as `duration` says.
    #[serde(default, skip_serializing_if = "RunTask::is_measurement")]
    pub task: RunTask,
}

/// A plan.
#[derive(Debug)]
pub struct Plan {
    /// The requests, in order.
    pub run: Vec<Words>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: u16,
    #[serde(default)]
    run: Vec<Words>,
}

impl Plan {
    /// Parses a plan.
    ///
    /// # Errors
    /// Returns `PlanError`. The parser's message has line and column.
    pub fn from_toml(text: &str) -> Result<Self, PlanError> {
        let file: File = toml::from_str(text)?;
        if file.schema > SCHEMA {
            return Err(PlanError::TooNew(file.schema));
        }
        if file.run.is_empty() {
            return Err(PlanError::Empty);
        }
        Ok(Self { run: file.run })
    }
}

#[cfg(test)]
mod tests {
    use regatta_types::{Mode, Scenario};

    use super::*;

    #[test]
    fn a_plan_speaks_the_command_lines_words() {
        let plan = Plan::from_toml(
            "schema = 1\n[[run]]\nbenchmark = 'digits'\nscenario = ['Offline']\ntest_run = true\nset = { batch_size = '16' }",
        )
        .unwrap();
        assert_eq!(plan.run[0].scenario, ["Offline"]);
        assert!(plan.run[0].test_run);
        assert_eq!(plan.run[0].set["batch_size"], "16");
    }

    #[test]
    fn single_value_needs_no_list_in_a_plan() {
        let read = |scenario: &str| {
            let text = format!(
                "schema = 1\n[[run]]\nbenchmark = 'digits'\nscenario = {scenario}\nmode = 'AccuracyOnly'"
            );
            Plan::from_toml(&text).map_err(|error| format!("{:#}", anyhow::Error::from(error)))
        };
        let plan = read("'Offline'").unwrap();
        assert_eq!(
            (&plan.run[0].scenario[..], &plan.run[0].mode[..]),
            (&["Offline".to_owned()][..], &["AccuracyOnly".to_owned()][..])
        );
        let refused = read("7").unwrap_err();
        assert!(
            refused.contains("line 4") && refused.contains("expected a word or a list of words"),
            "{refused}"
        );
    }

    #[test]
    fn the_plan_that_comes_along_is_of_full_length_and_resolves() {
        let plan = Plan::from_toml(include_str!("../../../configs/plans/digits-full.toml")).unwrap();
        let catalogue = regatta_config::catalogue::Catalogue::read(None).unwrap();
        for words in &plan.run {
            assert!(catalogue.benchmark(&words.benchmark).is_ok());
            assert!(!words.test_run && words.duration.is_none(), "full length");
            let scenarios: Vec<Scenario> = words.scenario.iter().map(|word| word.parse().unwrap()).collect();
            assert_eq!(
                scenarios,
                [Scenario::SingleStream, Scenario::MultiStream, Scenario::Offline]
            );
            let modes: Vec<Mode> = words.mode.iter().map(|word| word.parse().unwrap()).collect();
            assert_eq!(modes, [Mode::AccuracyOnly, Mode::PerformanceOnly]);
        }
    }

    #[test]
    fn a_misspelt_key_is_located() {
        let error = Plan::from_toml("schema = 1\n[[run]]\nbenchmrk = 'digits'\nscenario = []").unwrap_err();
        let printed = format!("{:#}", anyhow::Error::from(error));
        assert!(
            printed.contains("line 3") && printed.contains("benchmrk"),
            "{printed}"
        );
        assert!(matches!(Plan::from_toml("schema = 1"), Err(PlanError::Empty)));
        assert!(matches!(Plan::from_toml("schema = 9"), Err(PlanError::TooNew(9))));
    }
}
