//! Calibration of `engine build`: finds the samples, and finds scales in a separate build where the engine's own build cannot use every sample
//! once. Reading samples is a task of `regatta_engines`, and finding scales one of TensorRT.

use std::{io, path::Path};

use anyhow::Context as _;
use regatta_engines::tensorrt::calibration::{OnDevice, Samples};
use regatta_fsutil::regular_file::{self, MAX_TEXT};
use regatta_tensorrt::{BuildSettings, EngineCache, InputShape, IoFormat, Model, TensorRt, Version};

use super::{print::say, watch::watched};
use crate::{
    cli::{EngineBuildArgs, EnginePrecision},
    exit::Failure,
};

/// Returns the samples for INT8 calibration, if any are named. Fails if this TensorRT has no calibrator.
pub(super) fn find_samples(args: &EngineBuildArgs, version: Version) -> Result<Option<Samples>, Failure> {
    let Some(path) = &args.calibration_samples else {
        return Ok(None);
    };
    if args.precision != EnginePrecision::Int8 {
        let reason = anyhow::anyhow!("--calibration-samples needs --precision int8");
        return Err(Failure::usage(reason));
    }
    if !version.has_calibration() {
        let reason = anyhow::anyhow!(
            "TensorRT {version} has no calibrator, neither entropy nor min-max; hint: leave out --calibration-samples and use an ONNX file with Q/DQ layers"
        );
        return Err(Failure::usage(reason));
    }
    let samples = Samples::find(path, args.calibration_list.as_deref()).map_err(Failure::usage)?;
    Ok(Some(samples))
}

/// The file of scales that an earlier build kept in the engine cache.
pub(super) struct KeptScales<'a> {
    pub(super) cache: &'a EngineCache,
    pub(super) directory: &'a Path,
    pub(super) name: &'a str,
    pub(super) is_ignored: bool,
}

/// Fills in the settings' calibration cache from an earlier build, or from a build for the scales alone. Returns the samples instead if the
/// engine's own build is to find the scales.
///
/// # Errors
/// Fails when the kept scales or the samples cannot be read, or when the calibration fails.
pub(super) fn find_scales<'a>(
    tensorrt: &TensorRt,
    settings: &mut BuildSettings,
    model: &Model,
    samples: &'a Samples,
    kept: &KeptScales<'_>,
) -> Result<Option<OnDevice<'a>>, Failure> {
    let file = kept.directory.join(kept.name);
    settings.calibration_cache = match regular_file::read(&file, MAX_TEXT) {
        _ if kept.is_ignored => Vec::new(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        found => {
            found.with_context(|| format!("the calibration scales in {} cannot be read", file.display()))?
        }
    };
    if !settings.calibration_cache.is_empty() {
        say(&format!("calibration scales found in {}", file.display()));
    } else if let Some(plain) = for_scales(settings, model, samples) {
        say_calibrating(settings, &plain, samples);
        settings.calibration_cache = calibrated(tensorrt, &plain, samples)?;
        kept.cache.store_file(kept.name, &settings.calibration_cache)?;
    } else {
        say_calibrating(settings, settings, samples);
        return Ok(Some(
            OnDevice::new(samples, settings.batch).map_err(Failure::could_not)?,
        ));
    }
    Ok(None)
}

/// Returns the settings of a build for its scales alone, if the samples do not have the type, layout or shape of the engine's input, or do not
/// fill its batches. A network with a fixed batch takes no other: its samples are repeated until they fill the batches.
fn for_scales(settings: &BuildSettings, model: &Model, samples: &Samples) -> Option<BuildSettings> {
    let size = |shape: &InputShape| shape.dims.iter().map(|&dim| u64::from(dim)).product::<u64>();
    // Samples have the largest of an input's shapes.
    let is_largest = |shape: &&InputShape| {
        let mut same = settings
            .input_shapes
            .iter()
            .filter(|other| other.name == shape.name);
        same.all(|other| size(other) <= size(shape))
    };
    let batch = if model.has_fixed_batch() {
        settings.batch
    } else {
        samples.batch_up_to(settings.batch)
    };
    let plain = BuildSettings {
        batch,
        min_batch: settings.min_batch.min(batch),
        profiles: 1,
        dla: None,
        input_shapes: settings.input_shapes.iter().filter(is_largest).cloned().collect(),
        input: IoFormat::default(),
        output: IoFormat::default(),
        ..settings.clone()
    };
    let differs = plain.input != settings.input
        || plain.input_shapes != settings.input_shapes
        || plain.batch != settings.batch;
    differs.then_some(plain)
}

/// Says that a build calibrates, in which batches, and with which input, if these are not the engine's own.
fn say_calibrating(settings: &BuildSettings, calibrating: &BuildSettings, samples: &Samples) {
    let (batch, count) = (calibrating.batch, samples.count());
    let mut line = match samples.repetitions(batch) {
        1 => format!("calibrating over {count} samples"),
        times => format!("calibrating {times} times over the {count} samples"),
    };
    if batch != settings.batch {
        line.push_str(&format!(" in batches of {batch}"));
    }
    if calibrating.input != settings.input || calibrating.input_shapes != settings.input_shapes {
        line.push_str(", with the network's own input");
    }
    say(&line);
}

/// Returns the calibration cache of a build that does not keep its engine.
fn calibrated(tensorrt: &TensorRt, settings: &BuildSettings, samples: &Samples) -> Result<Vec<u8>, Failure> {
    let mut on_device = OnDevice::new(samples, settings.batch).map_err(Failure::could_not)?;
    let built = watched(tensorrt.shim_version().reports_progress(), |tell| {
        tensorrt.build(settings, tell, Some(&mut on_device))
    })
    .map_err(Failure::could_not)??;
    Ok(built.calibration_cache)
}
