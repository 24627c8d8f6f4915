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
//! set = { batch_size = 16 }
//! state = "MaxP"
//! ```

use regatta_types::documents::RunTask;
use serde::Deserialize;

use super::{
    RunRequestInput,
    plan_toml::{self, PlanTomlError},
};

/// The newest schema number that this program reads.
const SCHEMA: u16 = 1;

/// An error in a plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The text is not TOML, or has unknown, missing or invalid keys.
    #[error("{}", found.first().filter(|_| found.len() == 1).map_or_else(|| format!("{} errors", found.len()), ToString::to_string))]
    Toml { found: Vec<PlanTomlError> },
    /// It is the plan of a campaign.
    #[error("this is a campaign's plan: it has [[cells]]")]
    Campaign,
    /// The plan is written for a newer program.
    #[error("the plan has schema {0}; this program reads up to {SCHEMA}: update it")]
    TooNew(u16),
    /// The plan has no `[[run]]`.
    #[error("the plan has no [[run]]")]
    Empty,
    /// Nothing would measure the server, or end it.
    #[error("a plan cannot start a model server: `regatta endpoints run` starts one, and measures it")]
    ModelServer,
}

impl PlanError {
    /// Returns what helps: the places of the errors, or the command for the plan.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Toml { found } => Some(PlanTomlError::list(found)),
            Self::Campaign => Some("`regatta campaign plan FILE` shows what it would run".to_owned()),
            Self::TooNew(_) | Self::Empty | Self::ModelServer => None,
        }
    }
}

/// Returns whether a text is a campaign's plan.
fn has_cells(text: &str) -> bool {
    toml::from_str::<toml::Table>(text).is_ok_and(|table| table.contains_key("cells"))
}

/// A plan.
#[derive(Debug)]
pub struct Plan {
    /// The requests, in order.
    pub run: Vec<RunRequestInput>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: u16,
    #[serde(default)]
    run: Vec<RunRequestInput>,
}

impl Plan {
    /// Parses a plan.
    ///
    /// # Errors
    /// Returns `PlanError`. The parser's message has line and column.
    pub fn from_toml(text: &str) -> Result<Self, PlanError> {
        let file: File = plan_toml::read(text).map_err(|found| match has_cells(text) {
            true => PlanError::Campaign,
            false => PlanError::Toml { found },
        })?;
        if file.schema > SCHEMA {
            return Err(PlanError::TooNew(file.schema));
        }
        if file.run.is_empty() {
            return Err(PlanError::Empty);
        }
        if file.run.iter().any(|input| input.task == RunTask::ModelServer) {
            return Err(PlanError::ModelServer);
        }
        Ok(Self { run: file.run })
    }
}

#[cfg(test)]
mod tests {
    use regatta_text::ErrorChain;
    use regatta_types::{Mode, Scenario, documents::RunLength};

    use super::*;

    #[test]
    fn a_plan_has_the_values_of_the_command_line() {
        let plan = Plan::from_toml(
            "schema = 1\n[[run]]\nbenchmark = 'digits'\nscenario = ['offline']\ntest_run = true\nset = { batch_size = 16 }",
        )
        .unwrap();
        let requests = plan.run[0].requests().unwrap();
        assert_eq!(requests.len(), 1);
        assert_eq!(requests[0].scenario, Scenario::Offline);
        assert_eq!(requests[0].length, RunLength::TestRun);
        assert_eq!(requests[0].engine.settings.batch_size, Some(16));
    }

    #[test]
    fn single_value_needs_no_list_in_a_plan() {
        let plan = Plan::from_toml(
            "schema = 1\n[[run]]\nbenchmark = 'digits'\nscenario = 'Offline'\nmode = 'AccuracyOnly'",
        )
        .unwrap();
        assert_eq!(
            (&plan.run[0].scenario[..], &plan.run[0].mode[..]),
            (&[Scenario::Offline][..], &[Mode::AccuracyOnly][..])
        );
    }

    #[test]
    fn the_plan_that_comes_along_is_of_full_length_and_resolves() {
        let plan = Plan::from_toml(include_str!("../../../configs/plans/digits-full.toml")).unwrap();
        let catalogue = regatta_catalogue::catalogue::Catalogue::read(None).unwrap();
        for input in &plan.run {
            assert!(catalogue.benchmark(&input.benchmark).is_ok());
            assert_eq!(
                input.scenario,
                [Scenario::SingleStream, Scenario::MultiStream, Scenario::Offline]
            );
            assert_eq!(input.mode, [Mode::AccuracyOnly, Mode::PerformanceOnly]);
            let requests = input.requests().unwrap();
            assert!(requests.iter().all(|request| request.length == RunLength::Full));
        }
    }

    #[test]
    fn an_invalid_key_or_value_is_located() {
        for (line, reported) in [
            ("benchmrk = 'digits'", "benchmrk"),
            ("scenario = 7", "expected a string or a list of strings"),
            (
                "scenario = ['Offline', 'Onlin']",
                "unknown scenario `Onlin`; known are",
            ),
            (
                "mode = 'Accuracy Only'",
                "unknown mode `Accuracy Only`; known are",
            ),
            ("engine = 'cuda'", "unknown engine `cuda`; known are"),
            ("loadgen = 'newest'", "unknown LoadGen `newest`; known are"),
            ("duration = '3'", "`3` is not a duration"),
            ("limit = '2'", "`2` is not a duration"),
            ("stream = 'later'", "expected `after` or `live`"),
            ("task = 'build'", "unknown variant `build`"),
            ("set = { batch_sise = 8 }", "did you mean `batch_size`?"),
            ("set = { batch_size = 0 }", "must be an integer from 1"),
            (
                "set = { batch_size = '8' }",
                "batch_size is `\"8\"`, but must be an integer",
            ),
            (
                "state = 'fast'",
                "unknown state `fast`; known are MaxP, MaxQ, as-is",
            ),
            (
                "state = { gpu = '7' }",
                "`7` is not a valid part of a state request",
            ),
            ("gate = { max_temperature = '60' }", "`60` is not a temperature"),
        ] {
            let text = format!("schema = 1\n[[run]]\nround = 'v6.1'\n{line}\n");
            let printed = ErrorChain(&Plan::from_toml(&text).unwrap_err()).to_string();
            assert!(
                printed.contains("line 4") && printed.contains(reported),
                "{line}: {printed}"
            );
        }
        assert!(matches!(Plan::from_toml("schema = 1"), Err(PlanError::Empty)));
        assert!(matches!(Plan::from_toml("schema = 9"), Err(PlanError::TooNew(9))));
    }
}
