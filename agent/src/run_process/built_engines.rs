//! The files of runs that build, inspect or remove engines: the scales of the device's calibrations, and TensorRT's description of the engines of the
//! run's model. The engines stay in their cache.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, anyhow};
use regatta_engines::tensorrt::{calibration, calibration_path, engine_cache, plugin_libraries};
use regatta_fsutil::regular_file::{self, MAX_TEXT};
use regatta_tensorrt::{CacheEntry, EngineCache, Model};
use serde_json::Value;

use super::{prepared_run::RunPlan, run_output::RunOutput};
use crate::exit::Failure;

const DESCRIPTIONS: &str = "engines.json";
/// The file that lists the keys of the removed engines.
const REMOVED: &str = "removed-engines.json";

/// Copies the calibration cache that this device made of the requested samples to the run's files. Other builds use it as an asset.
///
/// # Errors
/// [`Failure`] when a file cannot be read or written, or the cache of these samples is gone.
pub(super) fn keep_calibrations(plan: &RunPlan, run_output: &RunOutput) -> Result<(), Failure> {
    let Some(path) = calibration_path(&plan.engine.settings, plan.scratch.as_deref()) else {
        return Ok(());
    };
    if calibration::has_scales(&path) {
        // They are the run's asset already.
        return Ok(());
    }
    let requested = Some(calibration::sha256_of(&path).map_err(Failure::could_not)?);
    let (cache, engines) = engines_of_model(plan)?;
    let of_samples = |(_, entry): &&(PathBuf, CacheEntry)| entry.manifest.calibration_sha256 == requested;
    for (directory, entry) in engines.iter().filter(of_samples) {
        let name = entry.manifest.calibration_file();
        let made = cache.join(&name);
        let scales = regular_file::read(&made, MAX_TEXT).with_context(|| {
            format!(
                "cannot read {}; hint: remove {}, and calibrate again",
                made.display(),
                directory.display()
            )
        })?;
        write(&run_output.files().join(&name), &scales)?;
    }
    Ok(())
}

/// Removes the engines that were calibrated with the requested samples, so that the run builds its engines with new scales.
///
/// # Errors
/// [`Failure`] when the settings name no samples, or an engine cannot be removed.
pub(super) fn remove_calibrated(plan: &RunPlan) -> Result<(), Failure> {
    let path = calibration_path(&plan.engine.settings, plan.scratch.as_deref());
    let samples = path
        .filter(|path| !calibration::has_scales(path))
        .ok_or_else(|| {
            Failure::usage(anyhow!(
                "engine_build=recalibrate needs samples; hint: name them with the setting calibration"
            ))
        })?;
    let requested = Some(calibration::sha256_of(&samples).map_err(Failure::could_not)?);
    let (cache, mut engines) = engines_of_model(plan)?;
    engines.retain(|(_, entry)| entry.manifest.calibration_sha256 == requested);
    let keys: Vec<String> = engines.iter().map(|(_, entry)| entry.manifest.key()).collect();
    EngineCache::new(cache).remove(&keys).map_err(Failure::could_not)
}

/// Removes the engines whose keys the settings name, and writes the list of their keys.
///
/// # Errors
/// Returns a [`Failure`] when an engine is not in the cache or cannot be removed.
pub(super) fn remove(plan: &RunPlan, run_output: &RunOutput) -> Result<(), Failure> {
    let named = plan.engine.settings.gpu_engine.as_deref().unwrap_or_default();
    let keys: Vec<String> = named.split(',').map(|key| key.trim().to_owned()).collect();
    let cache = EngineCache::new(engine_cache(plan.scratch.as_deref()));
    cache.remove(&keys).map_err(Failure::could_not)?;
    let text = serde_json::to_vec(&keys).context("the removed engines cannot be written as JSON")?;
    write(&run_output.files().join(REMOVED), &text)
}

/// Describes every engine of the run's model, as `engine inspect` does.
///
/// # Errors
/// [`Failure`] when there is none, or when TensorRT is missing.
pub(super) fn inspect(plan: &RunPlan, run_output: &RunOutput) -> Result<(), Failure> {
    let (cache, engines) = engines_of_model(plan)?;
    let settings = &plan.engine.settings;
    let plugins = plugin_libraries(settings, &plan.benchmark.model, plan.scratch.as_deref());
    let mut descriptions = Vec::with_capacity(engines.len());
    for (directory, _) in &engines {
        descriptions.push(description(directory, &cache, &plugins)?);
    }
    if descriptions.is_empty() {
        return Err(Failure::could_not(anyhow!(
            "no engine of {} is in {}; hint: `regatta engine build` builds them",
            plan.benchmark.model.file,
            cache.display()
        )));
    }
    let text =
        serde_json::to_vec_pretty(&descriptions).context("the descriptions cannot be written as JSON")?;
    write(&run_output.files().join(DESCRIPTIONS), &text)
}

/// Returns the cache, and the directories and entries of the engines of the model's networks in it. Damaged engines are left out.
fn engines_of_model(plan: &RunPlan) -> Result<(PathBuf, Vec<(PathBuf, CacheEntry)>), Failure> {
    let scratch = plan.scratch.as_deref();
    let networks = plan.benchmark.model.networks().into_iter().map(|network| {
        let model = Model::read(&scratch.unwrap_or(Path::new("")).join(network));
        model.and_then(|model| model.sha256())
    });
    let networks = networks
        .collect::<Result<Vec<String>, _>>()
        .map_err(Failure::could_not)?;
    let cache = engine_cache(scratch);
    let listed = EngineCache::new(cache.clone())
        .list()
        .map_err(Failure::could_not)?;
    let engines = listed
        .into_iter()
        .filter_map(|(directory, entry)| Some((directory, entry.ok()?)))
        .filter(|(_, entry)| networks.contains(&entry.manifest.onnx_sha256));
    Ok((cache, engines.collect()))
}

/// Returns what `engine inspect` prints of an engine, or an object with the `error` for which it cannot be read. Its code 1 means that the engine does not run here; the
/// description says why.
fn description(directory: &Path, cache: &Path, plugins: &[PathBuf]) -> Result<Value, Failure> {
    let output = Command::new("/proc/self/exe")
        .args(["engine", "inspect", "--format", "json", "--cache"])
        .arg(cache)
        .arg(directory)
        .args(
            plugins
                .iter()
                .flat_map(|path| ["--plugins".as_ref(), path.as_os_str()]),
        )
        .stdin(Stdio::null())
        .output()
        .context("`regatta-agent engine inspect` does not start")?;
    // The run's log may be on a full disk.
    let _ = io::stderr().write_all(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stderr);
    let description = serde_json::from_slice(&output.stdout);
    Ok(description.unwrap_or_else(|_| {
        let error = format!("{} ({})", printed.trim(), output.status);
        serde_json::json!({ "engine": directory, "error": error })
    }))
}

fn write(file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let written = fs::write(file, bytes).with_context(|| format!("cannot write {}", file.display()));
    Ok(written?)
}
