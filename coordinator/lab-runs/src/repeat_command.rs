//! The command that requests a run again, with the settings that the user chose. Rates are estimated anew from what the device has shown by
//! then. This module requests nothing.

use regatta_text::quote_for_shell_if_needed;
use regatta_types::documents::{Delivery, PowerSetting, RunLength, RunTask, celsius};

use super::early_accuracy::usual_delivery;
use regatta_lab_store::{RunDraft, RunRow};

/// The name of the system file for boards that do not have one.
const GENERIC: &str = "generic";

/// Why no command line requests a run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotRepeatable {
    /// The run's plan sets single clocks.
    #[error("its plan sets single clocks, which no option does: repeat it with the plan")]
    SingleClocks,
    /// A client on another machine measured the run's model server.
    #[error("`regatta endpoints run` starts the server of its client")]
    ModelServer,
    /// The run removed engines.
    #[error("engines are removed once")]
    EngineRemoval,
}

/// Returns the command.
///
/// # Errors
/// Returns [`NotRepeatable`] when no command line requests such a run.
pub fn repeat_command(row: &RunRow) -> Result<String, NotRepeatable> {
    let spec = &row.draft.spec;
    let device = row.device_name.as_deref().unwrap_or(row.device.as_str());
    let mut words: Vec<String> = Vec::new();
    let mut add =
        |option: &str, value: &str| words.push(format!("{option} {}", quote_for_shell_if_needed(value)));
    if let Some(audit) = &spec.audit {
        add("--benchmark", &spec.benchmark.name);
        add("--scenario", spec.scenario.as_str());
        add("--device", device);
        let test = quote_for_shell_if_needed(&audit.test);
        return Ok(format!("regatta audit run {test} {}", words.join(" ")));
    }
    add("--device", device);
    add("--benchmark", &spec.benchmark.name);
    add("--scenario", spec.scenario.as_str());
    let is_measurement = spec.task.is_measurement();
    if is_measurement {
        add("--mode", spec.mode.as_str());
    }
    add("--round", &spec.round);
    if !matches!(spec.task, RunTask::EngineBuild | RunTask::EngineInspection) {
        add("--engine", spec.engine.kind.as_str());
    }
    if is_measurement {
        add("--loadgen", &spec.loadgen.to_string());
    }
    let system = spec.system.as_ref();
    add(
        "--system",
        system.map_or("none", |system| match system.file.as_str() {
            GENERIC => "auto",
            file => file,
        }),
    );
    for (setting, value) in spec.engine.settings.iter() {
        let name = setting.name;
        if system.is_none_or(|system| !system.settings.iter().any(|used| used == name)) {
            add("--set", &format!("{name}={value}"));
        }
    }
    match &spec.state {
        None => {}
        Some(state)
            if [PowerSetting::MaxP, PowerSetting::MaxQ]
                .map(PowerSetting::as_str)
                .contains(&state.name.as_str()) =>
        {
            add("--state", &state.name);
        }
        Some(_) => return Err(NotRepeatable::SingleClocks),
    }
    if let Some(limit) = row.draft.limit_s {
        add("--limit", &format!("{limit}s"));
    }
    match spec.task {
        RunTask::Measurement => {}
        RunTask::EngineBuild => return Ok(format!("regatta engine build {}", words.join(" "))),
        RunTask::EngineInspection => return Ok(format!("regatta engine inspect {}", words.join(" "))),
        RunTask::ModelServer => return Err(NotRepeatable::ModelServer),
        RunTask::EngineRemoval => return Err(NotRepeatable::EngineRemoval),
        RunTask::AssetFetch => return Ok(format!("regatta asset fetch {}", words.join(" "))),
        RunTask::Tune => {
            if let RunLength::Duration(length) = spec.length {
                words.push(format!("--time {length}ms"));
            }
            return Ok(format!("regatta tune {}", words.join(" ")));
        }
    }
    if let Some(gate) = &spec.gate {
        if let Some(most) = gate.max_millicelsius {
            add("--max-temperature", &celsius(most).replace(' ', ""));
        }
        for (option, bytes) in [
            ("--min-memory", gate.min_memory_bytes),
            ("--min-disk", gate.min_disk_bytes),
        ] {
            if let Some(bytes) = bytes {
                add(option, &format!("{}MiB", bytes >> 20));
            }
        }
        add("--gate-wait", &format!("{}s", gate.wait_s));
    }
    if spec.delivery != usual_delivery(spec.mode, spec.engine.kind, spec.task, &spec.benchmark) {
        add(
            "--stream",
            match spec.delivery {
                Delivery::After => "after",
                Delivery::Live => "live",
            },
        );
    }
    let length = length(&row.draft);
    for (key, value) in &row.draft.user_settings {
        if length.as_ref().is_none_or(|(_, of_length)| of_length != key) {
            add("--conf", &format!("{key}={value}"));
        }
    }
    words.extend(length.map(|(option, _)| option));
    Ok(format!("regatta run {}", words.join(" ")))
}

/// Returns the option of a run's length, and the setting that it makes, if the setting is still the option's.
fn length(draft: &RunDraft) -> Option<(String, String)> {
    let (spec, settings) = (&draft.spec, &draft.user_settings);
    let key = format!("{}.{}.min_duration", spec.benchmark.loadgen_model, spec.scenario);
    let milliseconds: u64 = settings.get(&key)?.parse().ok()?;
    match spec.length {
        RunLength::TestRun => Some(("--test-run".to_owned(), key)),
        RunLength::Duration(length) if length == milliseconds => {
            Some((format!("--duration {length}ms"), key))
        }
        _ => None,
    }
}
