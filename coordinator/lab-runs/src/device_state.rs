//! Resolves a plan's device state to a request: a preset, published clocks, or the user's values. Only the board knows which values it
//! accepts. This module checks that the values can be parsed.

use std::collections::BTreeMap;

use regatta_config::known;
use regatta_state::state_request::{InvalidStateRequest, StateRequest};
use regatta_types::{Scenario, documents::StateSpec};
use serde::{Deserialize, Serialize};

/// The state in a plan: `"MaxP"`, `"MaxQ"`, `"as-is"`, or a table of values such as `{ power-mode = "MAXN", gpu =
/// "lock:max" }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StateWords {
    /// A preset's name.
    Preset(String),
    /// The user's values. With the key `preset`, they override a preset's values. `board` selects the board whose MaxQ applies.
    Own(BTreeMap<String, String>),
}

/// An error in a requested state.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The preset is unknown.
    #[error(
        "unknown state `{0}`; known are MaxP, MaxQ, as-is, and in a plan a table of values (docs/device-state.md)"
    )]
    Preset(String),
    /// A value cannot be parsed.
    #[error(
        "the state's values cannot be read; `gpu = \"lock:max\"`, `cpu = \"cap:1190400000\"` and `fan = \"255\"` can"
    )]
    Words(#[source] InvalidStateRequest),
    /// No MaxQ clocks are published.
    #[error(
        "no MaxQ clocks are published for {benchmark} {scenario} on {board}: name your own in a plan (docs/device-state.md)"
    )]
    NotPublished {
        /// The benchmark.
        benchmark: String,
        /// The scenario.
        scenario: Scenario,
        /// The board in words: its name from the plan or the device.
        board: String,
    },
    /// The built-in file cannot be parsed.
    #[error("the built-in file maxq.toml cannot be read")]
    BuiltIn(#[from] toml::de::Error),
}

/// The published clocks.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Published {
    #[expect(dead_code, reason = "there is one so far, and the file says it")]
    schema: u16,
    source: String,
    board: Vec<Board>,
    clocks: Vec<Clocks>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Board {
    name: String,
    models: Vec<String>,
}

/// Clocks of one benchmark, scenario, board and round, in Hz.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Clocks {
    round: String,
    board: String,
    benchmark: String,
    scenario: Scenario,
    how: String,
    gpu: Option<u64>,
    dla: Option<u64>,
    cpu: Option<u64>,
    memory: Option<u64>,
    cores: Option<u32>,
}

impl StateWords {
    /// Returns the state for one run, or `None` to leave the device's state unchanged. `model` is the device's own model name.
    ///
    /// # Errors
    /// Returns `StateError` with the valid alternatives.
    pub fn resolve(
        &self,
        model: &str,
        benchmark: &str,
        scenario: Scenario,
    ) -> Result<Option<StateSpec>, StateError> {
        let (preset, mut own) = match self {
            Self::Preset(preset) => (Some(preset.clone()), BTreeMap::new()),
            Self::Own(own) => {
                let mut own = own.clone();
                (own.remove("preset"), own)
            }
        };
        let board = own.remove("board");
        let state = match preset.as_deref() {
            Some(word) if word.eq_ignore_ascii_case("as-is") => None,
            Some(word) if word.eq_ignore_ascii_case("MaxP") => Some(max_p()),
            Some(word) if word.eq_ignore_ascii_case("MaxQ") => {
                Some(max_q(board.as_deref(), model, benchmark, scenario)?)
            }
            Some(other) => return Err(StateError::Preset(other.to_owned())),
            None => Some(StateSpec {
                name: "own".to_owned(),
                source: "the plan".to_owned(),
                controls: BTreeMap::new(),
            }),
        };
        let Some(mut state) = state else { return Ok(None) };
        if !own.is_empty() && preset.is_some() {
            state.source.push_str(", changed by the plan");
        }
        state.controls.extend(own);
        // "as-is" removes a preset's value that this board does not have.
        state.controls.retain(|_, value| value != "as-is");
        let request: StateRequest = state.words().parse().map_err(StateError::Words)?;
        if request == StateRequest::default() {
            return Err(StateError::Words(InvalidStateRequest(String::new())));
        }
        Ok(Some(state))
    }
}

/// Returns NVIDIA's steps for MaxP: the power mode without limits, then `jetson_clocks --fan`.
fn max_p() -> StateSpec {
    let controls = [
        ("power-mode", "MAXN"),
        ("fan", "255"),
        ("cpu", "lock:max"),
        ("gpu", "lock:max"),
        ("memory", "lock:max"),
    ];
    StateSpec {
        name: "MaxP".to_owned(),
        source: "nvpmodel's MAXN and all clocks at their highest, as `jetson_clocks --fan` sets them"
            .to_owned(),
        controls: controls
            .map(|(what, value)| (what.to_owned(), value.to_owned()))
            .into(),
    }
}

/// Returns the newest published clocks. A benchmark's variants (for example `bert-99`) use the clocks of the benchmark.
fn max_q(
    board: Option<&str>,
    model: &str,
    benchmark: &str,
    scenario: Scenario,
) -> Result<StateSpec, StateError> {
    let published: Published = toml::from_str(known::MAXQ)?;
    let is_meant = |known: &&Board| match board {
        Some(board) => known.name == board,
        None => known.models.iter().any(|part| model.contains(part)),
    };
    let named = published
        .board
        .iter()
        .find(is_meant)
        .map(|known| known.name.as_str());
    let is_variant = |of: &str| {
        let rest = benchmark.strip_prefix(of);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let found = published
        .clocks
        .iter()
        .filter(|row| {
            Some(row.board.as_str()) == named && row.scenario == scenario && is_variant(&row.benchmark)
        })
        // Names of these rounds sort by age.
        .max_by_key(|row| row.round.clone());
    let row = found.ok_or_else(|| StateError::NotPublished {
        benchmark: benchmark.to_owned(),
        scenario,
        board: match board.unwrap_or(model) {
            "" => "a device that does not report its board".to_owned(),
            name => format!("`{name}`"),
        },
    })?;
    let clock = |what: &str, hz: Option<u64>| Some((what.to_owned(), format!("{}:{}", row.how, hz?)));
    let clocks = [
        clock("gpu", row.gpu),
        clock("dla", row.dla),
        clock("cpu", row.cpu),
        clock("memory", row.memory),
        row.cores.map(|cores| ("cores".to_owned(), cores.to_string())),
    ];
    Ok(StateSpec {
        name: "MaxQ".to_owned(),
        source: format!(
            "{}, round {}: {} {scenario} on {}",
            published.source, row.round, row.benchmark, row.board
        ),
        controls: clocks.into_iter().flatten().collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIN: &str = "NVIDIA Jetson AGX Orin Developer Kit";

    fn resolve(toml: &str, benchmark: &str, scenario: Scenario) -> Result<Option<StateSpec>, StateError> {
        #[derive(Deserialize)]
        struct File {
            state: StateWords,
        }
        let file: File = toml::from_str(&format!("state = {toml}")).unwrap();
        file.state.resolve(ORIN, benchmark, scenario)
    }

    #[test]
    fn maxq_takes_the_newest_published_clocks_of_board_benchmark_and_scenario() {
        let state = resolve("'MaxQ'", "resnet50", Scenario::Offline).unwrap().unwrap();
        assert_eq!(
            state.words(),
            "cores=4 cpu=cap:576000000 dla=cap:883200000 gpu=cap:624750000 memory=cap:2133000000"
        );
        assert!(
            state.source.ends_with("round v3.0: resnet50 Offline on agx-orin"),
            "{}",
            state.source
        );
        let state = resolve(
            "{ preset = 'MaxQ', board = 'xavier-nx', fan = '80' }",
            "bert-99",
            Scenario::SingleStream,
        );
        let state = state.unwrap().unwrap();
        assert_eq!(
            state.words(),
            "cpu=lock:1190400000 dla=lock:115200000 fan=80 gpu=lock:854250000 memory=lock:1600000000"
        );
        assert!(state.source.ends_with("changed by the plan"));
        let error = resolve("'MaxQ'", "digits", Scenario::Offline).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("digits Offline on `NVIDIA Jetson AGX Orin"),
            "{error}"
        );
    }

    #[test]
    fn presets_own_values_and_as_is() {
        let state = resolve("'maxp'", "digits", Scenario::Server).unwrap().unwrap();
        assert_eq!(
            state.words(),
            "cpu=lock:max fan=255 gpu=lock:max memory=lock:max power-mode=MAXN"
        );
        let state = resolve(
            "{ power-mode = 'MODE_30W', gpu = 'cap:612000000' }",
            "digits",
            Scenario::Offline,
        );
        assert_eq!(state.unwrap().unwrap().name, "own");
        let state = resolve("{ preset = 'MaxP', fan = 'as-is' }", "digits", Scenario::Offline)
            .unwrap()
            .unwrap();
        assert_eq!(
            state.words(),
            "cpu=lock:max gpu=lock:max memory=lock:max power-mode=MAXN"
        );
        assert_eq!(resolve("'as-is'", "digits", Scenario::Offline).unwrap(), None);
        for wrong in [
            "'fast'",
            "{ gpu = '7' }",
            "{ path = '/etc' }",
            "{ }",
            "{ fan = '256' }",
        ] {
            assert!(resolve(wrong, "digits", Scenario::Offline).is_err(), "{wrong}");
        }
    }
}
