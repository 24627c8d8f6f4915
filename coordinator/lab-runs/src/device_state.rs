//! Reads the device state of a plan, and resolves it for a run: a preset, published clocks, or the user's values. Only the board knows which
//! values it accepts. This module checks that the values can be parsed.

use std::{collections::BTreeMap, fmt};

use regatta_catalogue::known;
use regatta_device_state::state_request::{InvalidStateRequest, StateRequest};
use regatta_lab_store::{RequestedState, StatePreset};
use regatta_types::{Scenario, UnknownWord, documents::StateSpec};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};

/// The value that leaves a control as it is.
const AS_IS: &str = "as-is";

/// An error in a requested state.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error("{0}, and in a plan a table of values (docs/device-state.md)")]
    Preset(#[from] UnknownWord),
    /// A value cannot be parsed.
    #[error(
        "{0}; values such as `gpu = \"lock:max\"`, `cpu = \"cap:1190400000\"` and `fan = \"255\"` can be used"
    )]
    Control(InvalidStateRequest),
    /// The state sets nothing.
    #[error(
        "the state sets no value; hint: leave it out, or name a preset or a value such as `gpu = \"lock:max\"`"
    )]
    Empty,
    /// No MaxQ clocks are published.
    #[error(
        "no MaxQ clocks are published for {benchmark} {scenario} on {board}: name clocks in a plan (docs/device-state.md)"
    )]
    NotPublished {
        benchmark: String,
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
    source: String,
    board: Vec<Board>,
    clocks: Vec<Clocks>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Board {
    name: String,
    /// Parts of the name in the device tree.
    #[serde(default)]
    models: Vec<String>,
    /// Part numbers of modules.
    #[serde(default)]
    modules: Vec<String>,
}

/// What a device reports about its board.
#[derive(Debug, Clone, Copy)]
pub(super) struct BoardIdentity<'a> {
    /// The name in the device tree, which the carrier determines.
    pub(super) model: &'a str,
    /// The part number of the module.
    pub(super) module: Option<&'a str>,
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

/// Deserialises the state of a plan: `"MaxP"`, `"MaxQ"`, `"as-is"`, or a table of values such as `{ power-mode = "MAXN", gpu = "lock:max" }`.
/// With the key `preset`, values override those of a preset; `board` selects the board whose MaxQ applies.
///
/// # Errors
/// Returns the deserializer's error for anything else.
pub(super) fn optional<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<RequestedState>, D::Error> {
    StateInput::deserialize(deserializer).map(|input| Some(input.0))
}

/// Deserialises a list of states.
///
/// # Errors
/// Returns the deserializer's error for anything else.
pub fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<RequestedState>, D::Error> {
    let inputs = Vec::<StateInput>::deserialize(deserializer)?;
    Ok(inputs.into_iter().map(|input| input.0).collect())
}

struct StateInput(RequestedState);

impl<'de> Deserialize<'de> for StateInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StateVisitor).map(Self)
    }
}

struct StateVisitor;

impl<'de> Visitor<'de> for StateVisitor {
    type Value = RequestedState;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MaxP, MaxQ, as-is or a table of values")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<RequestedState, E> {
        Ok(preset(text).map_err(E::custom)?.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RequestedState, A::Error> {
        let mut values = BTreeMap::new();
        while let Some((name, value)) = map.next_entry::<String, String>()? {
            values.insert(name, value);
        }
        own(values).map_err(A::Error::custom)
    }
}

fn preset(text: &str) -> Result<StatePreset, StateError> {
    Ok(text.parse::<StatePreset>()?)
}

/// Returns the state of a table.
fn own(mut controls: BTreeMap<String, String>) -> Result<RequestedState, StateError> {
    let state = RequestedState {
        preset: controls.remove("preset").map(|text| preset(&text)).transpose()?,
        board: controls.remove("board"),
        controls,
    };
    for (name, value) in state.controls.iter().filter(|(_, value)| *value != AS_IS) {
        let text = format!("{name}={value}");
        if text.contains(char::is_whitespace) {
            return Err(StateError::Control(InvalidStateRequest(text)));
        }
        text.parse::<StateRequest>().map_err(StateError::Control)?;
    }
    if state.preset.is_none() && state.controls.values().all(|value| value == AS_IS) {
        return Err(StateError::Empty);
    }
    Ok(state)
}

/// Returns the state for one run, or `None` to leave the device's state unchanged.
///
/// # Errors
/// Returns [`StateError`] when no clocks are published for the run, or nothing is set.
pub(super) fn resolve(
    requested: &RequestedState,
    device: BoardIdentity<'_>,
    benchmark: &str,
    scenario: Scenario,
) -> Result<Option<StateSpec>, StateError> {
    let mut state = match requested.preset {
        Some(StatePreset::AsIs) => return Ok(None),
        Some(StatePreset::MaxP) => max_p(),
        Some(StatePreset::MaxQ) => max_q(requested.board.as_deref(), device, benchmark, scenario)?,
        None => StateSpec {
            name: "own".to_owned(),
            source: "the plan".to_owned(),
            controls: BTreeMap::new(),
        },
    };
    if !requested.controls.is_empty() && requested.preset.is_some() {
        state.source.push_str(", changed by the plan");
    }
    state.controls.extend(requested.controls.clone());
    // "as-is" removes a preset's value that this board does not have.
    state.controls.retain(|_, value| value != AS_IS);
    if state.controls.is_empty() {
        return Err(StateError::Empty);
    }
    Ok(Some(state))
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
    device: BoardIdentity<'_>,
    benchmark: &str,
    scenario: Scenario,
) -> Result<StateSpec, StateError> {
    let published: Published = toml::from_str(known::MAXQ)?;
    let is_meant = |known: &&Board| match board {
        Some(board) => known.name == board,
        None => {
            known.models.iter().any(|part| device.model.contains(part))
                || known
                    .modules
                    .iter()
                    .any(|module| device.module == Some(module.as_str()))
        }
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
        board: match board.unwrap_or(device.model) {
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
            "{}_{}, closed/NVIDIA/configs/{}/{scenario}: {}",
            published.source, row.round, row.benchmark, row.board
        ),
        controls: clocks.into_iter().flatten().collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGX_ORIN: BoardIdentity<'_> = BoardIdentity {
        model: "NVIDIA Jetson AGX Orin Developer Kit",
        module: Some("p3701-0005"),
    };

    fn resolve(toml: &str, benchmark: &str, scenario: Scenario) -> anyhow::Result<Option<StateSpec>> {
        #[derive(Deserialize)]
        struct File {
            #[serde(deserialize_with = "optional")]
            state: Option<RequestedState>,
        }
        let file: File = toml::from_str(&format!("state = {toml}"))?;
        Ok(super::resolve(
            &file.state.unwrap(),
            AGX_ORIN,
            benchmark,
            scenario,
        )?)
    }

    /// Returns the state MaxQ of a device and its source, or `None` if none is published.
    fn max_q_of(model: &str, module: &str, benchmark: &str, scenario: Scenario) -> Option<(String, String)> {
        let device = BoardIdentity {
            model,
            module: Some(module),
        };
        let state = super::resolve(&StatePreset::MaxQ.into(), device, benchmark, scenario);
        let state = state.ok()?.unwrap();
        Some((state.words(), state.source))
    }

    #[test]
    fn maxq_of_the_orin_nx_is_found_by_its_module_on_any_carrier() {
        for carrier in [
            "ConnectTech NGX007 Orin NX",
            "NVIDIA Jetson Orin NX Engineering Reference Developer Kit",
        ] {
            assert_eq!(
                max_q_of(carrier, "p3767-0000", "resnet50", Scenario::Offline),
                Some((
                    "cores=4 cpu=cap:652800000 dla=cap:1164200000 gpu=cap:510000000 memory=cap:2133000000"
                        .to_owned(),
                    "mlcommons/inference_results_v3.1, closed/NVIDIA/configs/resnet50/Offline: orin-nx"
                        .to_owned()
                ))
            );
        }
        let of_nx = |benchmark, scenario| max_q_of("", "p3767-0000", benchmark, scenario);
        let retinanet = of_nx("retinanet", Scenario::MultiStream).unwrap();
        assert!(retinanet.1.contains("results_v4.0"), "{}", retinanet.1);
        assert_eq!(
            of_nx("resnet50", Scenario::SingleStream),
            None,
            "its file was not found"
        );
        for (model, module) in [
            ("NVIDIA Jetson Orin NX 8GB", "p3767-0001"),
            ("NVIDIA Jetson Orin Nano Developer Kit", "p3767-0005"),
            ("NVIDIA Jetson AGX Thor Developer Kit", "p3834-0008"),
        ] {
            let found = max_q_of(model, module, "resnet50", Scenario::Offline);
            assert_eq!(found, None, "NVIDIA published none for {model}");
        }
    }

    #[test]
    fn maxq_takes_the_newest_published_clocks_of_board_benchmark_and_scenario() {
        let state = resolve("'MaxQ'", "resnet50", Scenario::Offline).unwrap().unwrap();
        assert_eq!(
            state.words(),
            "cores=4 cpu=cap:576000000 dla=cap:780200000 gpu=cap:612000000 memory=cap:2133000000"
        );
        assert_eq!(
            state.source,
            "mlcommons/inference_results_v3.1, closed/NVIDIA/configs/resnet50/Offline: agx-orin"
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
