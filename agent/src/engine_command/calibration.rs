//! Calibration of `engine build`: finds the samples, and finds scales in a separate build where the engine's own build cannot use every sample
//! once. Reading samples is a task of `regatta_engines`, and finding scales one of TensorRT.

use regatta_engines::tensorrt::calibration::{OnDevice, Samples};
use regatta_tensorrt::{BuildError, BuildSettings, InputShape, IoFormat, TensorRt, Version};

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

/// Returns the settings of a build for its scales alone, if the samples do not have the type, layout or shape of the engine's input, or do not
/// fill its batches.
pub(super) fn for_scales(settings: &BuildSettings, samples: &Samples) -> Option<BuildSettings> {
    let size = |shape: &InputShape| shape.dims.iter().map(|&dim| u64::from(dim)).product::<u64>();
    // Samples have the largest of an input's shapes.
    let is_largest = |shape: &&InputShape| {
        let mut same = settings
            .input_shapes
            .iter()
            .filter(|other| other.name == shape.name);
        same.all(|other| size(other) <= size(shape))
    };
    let batch = samples.batch_up_to(settings.batch);
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

/// Returns the calibration cache of a build that does not keep its engine. A network that has a fixed batch does not take the batch of `plain`;
/// then the samples are repeated until they fill the batches of the engine itself.
pub(super) fn calibrated(
    tensorrt: &TensorRt,
    settings: &BuildSettings,
    plain: &BuildSettings,
    samples: &Samples,
) -> Result<Vec<u8>, Failure> {
    let input = match plain.input == settings.input && plain.input_shapes == settings.input_shapes {
        true => "",
        false => ", with the network's own input",
    };
    let batches = match plain.batch == settings.batch {
        true => String::new(),
        false => format!(" in batches of {}", plain.batch),
    };
    say(&format!(
        "calibrating over {} samples{batches}{input}",
        samples.count()
    ));
    match scales(tensorrt, plain, samples)? {
        Err(BuildError::Model(reason)) if plain.batch != settings.batch => {
            let own = BuildSettings {
                batch: settings.batch,
                min_batch: settings.min_batch,
                ..plain.clone()
            };
            say(&format!(
                "{reason}; calibrating {} times over the {} samples{input}",
                samples.repetitions(settings.batch),
                samples.count()
            ));
            Ok(scales(tensorrt, &own, samples)??)
        }
        found => Ok(found?),
    }
}

fn scales(
    tensorrt: &TensorRt,
    settings: &BuildSettings,
    samples: &Samples,
) -> Result<Result<Vec<u8>, BuildError>, Failure> {
    let mut on_device = OnDevice::new(samples, settings.batch).map_err(Failure::could_not)?;
    let built = watched(tensorrt.shim_version().reports_progress(), |tell| {
        tensorrt.build(settings, tell, Some(&mut on_device))
    })
    .map_err(Failure::could_not)?;
    Ok(built.map(|built| built.calibration_cache))
}
