//! Resolves the input of a command line or plan to drafts. It stores nothing, so that a plan with an error requests no run.

use std::str::FromStr;

use regatta_config::{
    catalogue::Catalogue,
    engine_settings::EngineSettings,
    system::{SystemRequest, SystemValues},
};
use regatta_text::HumanDuration;
use regatta_types::{
    Mode, Scenario,
    benchmark::Benchmark,
    documents::{
        Delivery, DeviceFacts, EngineKind, EngineSpec, LoadgenChoice, PowerSetting, RunLength, StateSpec,
    },
};

use super::lookup;
use crate::{
    exit::Failure,
    runs::{Request, Words},
    store::{DeviceRow, RunDraft, Store},
};

/// Resolves the input to drafts, one per mode and scenario. Modes are the outer loop: the short accuracy runs come first and give the
/// later runs an estimate of the device's speed.
pub(crate) fn resolve(words: &Words, catalogue: &Catalogue, store: &Store) -> Result<Vec<RunDraft>, Failure> {
    let benchmark = catalogue.benchmark(&words.benchmark).map_err(Failure::usage)?;
    let round = catalogue.round(words.round.as_deref()).map_err(Failure::usage)?;
    let engine: EngineKind = words
        .engine
        .as_deref()
        .unwrap_or("tract")
        .parse()
        .map_err(Failure::usage)?;
    let loadgen: LoadgenChoice = words
        .loadgen
        .as_deref()
        .unwrap_or("native")
        .parse()
        .map_err(Failure::usage)?;
    let modes = match words.mode.as_slice() {
        [] => vec![Mode::PerformanceOnly],
        modes => each(modes)?,
    };
    let scenarios: Vec<Scenario> = each(&words.scenario)?;
    if scenarios.is_empty() {
        return Err(Failure::misuse(
            "no scenario is named; known are SingleStream, MultiStream, Server, Offline",
        ));
    }
    check_settings(engine, words)?;
    // The device is checked last: a wrong word is an error for every device, and also without any.
    let device = lookup::device(store, words.device.as_deref())?;
    check_engine(&device, engine)?;
    let facts = reported_facts(&device)?;
    let mut drafts = Vec::new();
    for &mode in &modes {
        for &scenario in &scenarios {
            let state = state(words, &facts, benchmark, scenario)?;
            let requested = SystemRequest {
                benchmark,
                scenario,
                power: match &state {
                    Some(state) if state.name == PowerSetting::MaxQ.as_str() => PowerSetting::MaxQ,
                    _ => PowerSetting::MaxP,
                },
                engine,
            };
            let request = Request {
                device: device.id.clone(),
                benchmark,
                round,
                scenario,
                mode,
                engine: EngineSpec {
                    kind: engine,
                    settings: words.set.clone(),
                },
                loadgen: loadgen.clone(),
                length: length(words)?,
                delivery: delivery(words)?,
                system: system(words, catalogue, &facts, &requested)?,
                conf: words.conf.clone(),
                state,
            };
            drafts.push(request.draft().map_err(Failure::usage)?);
        }
    }
    Ok(drafts)
}

/// Parses a device's own description. How the device runs follows from it, so an unreadable description is an error.
fn reported_facts(device: &DeviceRow) -> Result<DeviceFacts, Failure> {
    device.reported_facts().map_err(|error| {
        Failure::could_not(format!(
            "the description that {} (agent {}) sent cannot be read: {error}",
            device.name, device.agent
        ))
        .hint("`regatta device deploy` brings it the agent of this version")
    })
}

/// Rejects engine settings that the device would reject.
fn check_settings(engine: EngineKind, words: &Words) -> Result<(), Failure> {
    EngineSettings::read(engine, &words.set)
        .map(drop)
        .map_err(|error| {
            Failure::usage(error).hint(format!(
                "`regatta settings list --engine {engine}` shows them all"
            ))
        })
}

fn check_engine(device: &DeviceRow, engine: EngineKind) -> Result<(), Failure> {
    if device.engines.contains(&engine) {
        return Ok(());
    }
    let has: Vec<_> = device.engines.iter().map(|engine| engine.as_str()).collect();
    Err(Failure::misuse(format!(
        "{} has no engine `{engine}`; it has {}",
        device.name,
        if has.is_empty() {
            "none".to_owned()
        } else {
            has.join(", ")
        }
    )))
}

fn each<T>(words: &[String]) -> Result<Vec<T>, Failure>
where
    T: FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    words
        .iter()
        .map(|word| word.parse().map_err(Failure::usage))
        .collect()
}

fn length(words: &Words) -> Result<RunLength, Failure> {
    match (words.test_run, &words.duration) {
        (true, Some(_)) => Err(Failure::misuse(
            "a run has either the test-run length or a duration, not both",
        )),
        (true, None) => Ok(RunLength::TestRun),
        (false, Some(text)) => {
            let duration: HumanDuration = text.parse().map_err(Failure::usage)?;
            Ok(RunLength::Duration(duration.millis()))
        }
        (false, None) => Ok(RunLength::Full),
    }
}

/// Returns the values of the named system, or of the device's own system by default.
fn system(
    words: &Words,
    catalogue: &Catalogue,
    facts: &DeviceFacts,
    requested: &SystemRequest<'_>,
) -> Result<Option<SystemValues>, Failure> {
    /// The name that selects no system's values.
    const NONE: &str = "none";
    /// The name that selects the device's own system.
    const AUTO: &str = "auto";
    let systems = catalogue.systems();
    let own = || systems.of_device(facts.module.as_deref(), || facts.clone(), requested);
    match words.system.as_deref() {
        Some(NONE) => Ok(None),
        Some(AUTO) => own().map(Some).ok_or_else(|| {
            Failure::misuse(format!(
                "no system file is for this device and {}, and the generic rule is only for tensorrt",
                requested.benchmark.name
            ))
            .hint("leave out --system, or name one that `regatta system list` shows")
        }),
        Some(name) => {
            let chosen = systems.named(name, &format!("`{AUTO}`, `{NONE}`"), requested);
            chosen.map(Some).map_err(Failure::usage)
        }
        None => Ok(own()),
    }
}

fn state(
    words: &Words,
    facts: &DeviceFacts,
    benchmark: &Benchmark,
    scenario: Scenario,
) -> Result<Option<StateSpec>, Failure> {
    let Some(words) = &words.state else {
        return Ok(None);
    };
    words
        .resolve(&facts.model, &benchmark.name, scenario)
        .map_err(Failure::usage)
}

fn delivery(words: &Words) -> Result<Delivery, Failure> {
    match words.stream.as_deref() {
        None | Some("after") => Ok(Delivery::After),
        Some("live") => Ok(Delivery::Live),
        Some(other) => Err(Failure::misuse(format!(
            "unknown delivery `{other}`; known are after, live"
        ))),
    }
}
