//! Checks whether this device accepts a run's spec. The spec must parse, and be for this run and device. Its paths must
//! stay inside their directories, and its engine must be available. The run process checks what the benchmark needs.

use std::path::{Component, Path};

use regatta_device_state::state_request::StateRequest;
use regatta_types::{
    DeviceId, RunId,
    assets::{is_inner_path, is_sha256},
    documents::{Document as _, DocumentError, EngineKind, RunSpec},
};

/// Longest name of a benchmark, round, model or state, in bytes.
const MAX_NAME: usize = 64;

/// Why a spec is rejected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpecError {
    /// The spec does not parse.
    #[error("the spec cannot be used")]
    Document(#[source] DocumentError),
    /// The spec is for another run than the command.
    #[error("the spec is of run {found}, the command of run {expected}")]
    OtherRun {
        /// The spec's run.
        found: RunId,
        /// The command's run.
        expected: RunId,
    },
    /// The spec is for another device.
    #[error("the spec is for device {0}, not for this one")]
    OtherDevice(DeviceId),
    /// A name or path is not allowed.
    #[error("{what} `{value}` {why}")]
    Name {
        /// What the name is for.
        what: &'static str,
        /// The name, truncated to 64 characters.
        value: String,
        /// The problem.
        why: &'static str,
    },
    /// The requested device state does not parse.
    #[error("the device's state cannot be read")]
    State(#[source] regatta_device_state::state_request::InvalidStateRequest),
    /// This build does not have the engine.
    #[error("this agent has no {requested} engine; it has {available}")]
    Engine {
        requested: EngineKind,
        /// The available engines.
        available: String,
    },
}

/// Parses and checks a spec.
pub(crate) fn check(
    bytes: &[u8],
    run: RunId,
    device: &DeviceId,
    engines: &[EngineKind],
) -> Result<RunSpec, SpecError> {
    let spec = RunSpec::from_json(bytes).map_err(SpecError::Document)?;
    if spec.run != run {
        return Err(SpecError::OtherRun {
            found: spec.run,
            expected: run,
        });
    }
    if spec.device != *device {
        return Err(SpecError::OtherDevice(spec.device));
    }
    name("benchmark", &spec.benchmark.name)?;
    name("LoadGen model", &spec.benchmark.loadgen_model)?;
    name("round", &spec.round)?;
    for file in spec.benchmark.model.files() {
        inner_path("model file", &file)?;
    }
    inner_path("dataset directory", &spec.benchmark.dataset.dir)?;
    inner_path("dataset map", &spec.benchmark.dataset.map)?;
    // The samples of several inputs are in files with these names.
    for input in spec.benchmark.model.inputs().filter_map(|input| input.name) {
        inner_path("input", input)?;
    }
    if let Some(state) = &spec.state {
        name("state", &state.name)?;
        state.words().parse::<StateRequest>().map_err(SpecError::State)?;
    }
    for asset in spec.assets.iter().flat_map(|assets| &assets.needed) {
        inner_path("asset", &asset.path)?;
        if !is_inner_path(&asset.path) || !is_sha256(&asset.sha256) {
            return Err(SpecError::Name {
                what: "asset",
                value: asset.path.chars().take(MAX_NAME).collect(),
                why: "has no place below a scratch directory, or no SHA-256",
            });
        }
    }
    if !engines.contains(&spec.engine.kind) {
        let available: Vec<&str> = engines.iter().map(|engine| engine.as_str()).collect();
        return Err(SpecError::Engine {
            requested: spec.engine.kind,
            available: available.join(", "),
        });
    }
    Ok(spec)
}

fn name(what: &'static str, value: &str) -> Result<(), SpecError> {
    let refuse = |why| SpecError::Name {
        what,
        value: value.chars().take(MAX_NAME).collect(),
        why,
    };
    if value.is_empty() || value.len() > MAX_NAME {
        return Err(refuse("is not of 1 to 64 bytes"));
    }
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    if value.starts_with('.') || !value.bytes().all(allowed) {
        return Err(refuse(
            "contains characters other than letters, digits, `.`, `_` and `-`, or begins with a dot",
        ));
    }
    Ok(())
}

/// Checks that a path stays inside the scratch directory.
fn inner_path(what: &'static str, value: &str) -> Result<(), SpecError> {
    let refuse = |why| SpecError::Name {
        what,
        value: value.chars().take(MAX_NAME).collect(),
        why,
    };
    if value.len() > 4096 || value.contains('\0') {
        return Err(refuse("is not a path"));
    }
    if !Path::new(value)
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
    {
        return Err(refuse("leads out of the scratch directory"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_paths_stay_inside() {
        for good in ["resnet50", "3d-unet-99.9", "v6.1", "bert_99"] {
            name("benchmark", good).unwrap();
        }
        for bad in ["", "..", ".hidden", "a/b", "a b", "a\0b", &"x".repeat(10_000)] {
            assert!(name("benchmark", bad).is_err(), "{bad:?}");
        }
        for good in ["models/digits.onnx", "./a/b.npy", ""] {
            inner_path("model file", good).unwrap();
        }
        for bad in [
            "../secret",
            "/etc/passwd",
            "models/../../x",
            "a\0b",
            &"x/".repeat(10_000),
        ] {
            assert!(inner_path("model file", bad).is_err(), "{bad:?}");
        }
    }
}
