//! The flags of `engine build`, converted to build settings and checked.

use std::path::Path;

use anyhow::Context as _;
use regatta_catalogue::catalogue::BenchmarkCatalogue;
use regatta_fsutil::regular_file::{self, MAX_TEXT};
use regatta_tensorrt::{
    BuildSettings, CalibrationMethod, DlaSettings, ElementType, InputShape, IoFormat, Model, Precision,
    Scale, Version,
};

use crate::{
    cli::{EngineBuildArgs, EnginePrecision},
    exit::Failure,
};

/// Returns the build settings.
///
/// # Errors
/// When flags contradict each other, or a file cannot be read.
pub(super) fn settings(args: &EngineBuildArgs) -> Result<BuildSettings, Failure> {
    let min_batch = args
        .min_batch
        .unwrap_or(if args.dla_core.is_some() { args.batch } else { 1 });
    if min_batch > args.batch {
        return Err(Failure::usage(anyhow::anyhow!(
            "--min-batch {min_batch} is above --batch {}",
            args.batch
        )));
    }
    if args.dla_core.is_some() && min_batch != args.batch {
        return Err(Failure::usage(anyhow::anyhow!(
            "a DLA engine has one batch size; hint: leave out --min-batch"
        )));
    }
    let sram_bytes = args.dla_sram.map(|kib| u64::from(kib) << 10);
    if let Some(bytes) = sram_bytes
        && !DlaSettings::is_sram_size(bytes)
    {
        return Err(Failure::usage(anyhow::anyhow!(
            "DLA's managed SRAM cannot be {bytes} bytes: use a power of two of at least 4096, or 0 for TensorRT's choice"
        )));
    }
    if args.calibration_cache.is_some() && args.precision != EnginePrecision::Int8 {
        return Err(Failure::usage(anyhow::anyhow!(
            "--calibration-cache needs --precision int8"
        )));
    }
    let calibration_cache = match &args.calibration_cache {
        None => Vec::new(),
        Some(path) => regular_file::read(path, MAX_TEXT)
            .with_context(|| format!("the calibration cache {} cannot be read", path.display()))
            .map_err(Failure::usage)?,
    };
    let calibration_method = method(args, &calibration_cache)?;
    Ok(BuildSettings {
        onnx: args.onnx.clone(),
        precision: match args.precision {
            EnginePrecision::AsInNetwork => Precision::AsInNetwork,
            EnginePrecision::Fp16 => Precision::Fp16,
            EnginePrecision::Int8 => Precision::Int8,
        },
        batch: args.batch,
        min_batch,
        profiles: args.profiles,
        workspace_bytes: u64::from(args.workspace.unwrap_or(0)) << 20,
        optimization_level: args.level,
        dla: args.dla_core.map(|core| DlaSettings {
            core,
            gpu_fallback: !args.no_fallback,
            sram_bytes: sram_bytes.unwrap_or(DlaSettings::USUAL_SRAM_BYTES),
        }),
        input_shapes: shapes(args)?,
        input: IoFormat {
            element: args.input_dtype,
            format: args.input_format,
        },
        output: IoFormat {
            element: args.output_dtype,
            format: args.output_format,
        },
        // Read later, while the cache is locked.
        timing_cache: Vec::new(),
        calibration_cache,
        calibration_method,
    })
}

/// Returns the requested method of calibration, or that of the calibration cache.
fn method(args: &EngineBuildArgs, cache: &[u8]) -> Result<CalibrationMethod, Failure> {
    let of_cache = CalibrationMethod::of_cache(cache);
    let Some(requested) = args.calibration_method else {
        return Ok(of_cache.unwrap_or_default());
    };
    if args.calibration_cache.is_none() && args.calibration_samples.is_none() {
        return Err(Failure::usage(anyhow::anyhow!(
            "--calibration-method needs --calibration-samples or --calibration-cache"
        )));
    }
    match of_cache {
        Some(made) if made != requested => Err(Failure::usage(anyhow::anyhow!(
            "the scales in {} were found with {}, but {} was requested; hint: leave out --calibration-method, or calibrate with \
             --calibration-samples",
            args.calibration_cache
                .as_deref()
                .unwrap_or(Path::new(""))
                .display(),
            made.as_str(),
            requested.as_str()
        ))),
        _ => Ok(requested),
    }
}

/// Returns the input shapes for free dimensions, from the flags or from a benchmark's file.
fn shapes(args: &EngineBuildArgs) -> Result<Vec<InputShape>, Failure> {
    let Some(file) = &args.benchmark_file else {
        return Ok(args.input_shapes.clone());
    };
    let model = BenchmarkCatalogue::read_file(file)?.model;
    if model.networks().len() > 1 {
        return Err(Failure::usage(anyhow::anyhow!(
            "{} has the shapes of samples, and its model has several networks; hint: use --input-shape for the dynamic dimensions of a network",
            file.display()
        )));
    }
    let shapes = model.inputs().map(|input| {
        let dims: Vec<String> = input.shape.iter().map(ToString::to_string).collect();
        let name = input.name.map(|name| format!("{name}=")).unwrap_or_default();
        let shape = format!("{name}{}", dims.join(","));
        let parsed = shape.parse::<InputShape>();
        parsed.map_err(|_| {
            Failure::usage(anyhow::anyhow!(
                "{} has an input of the impossible shape {shape}",
                file.display()
            ))
        })
    });
    shapes.collect()
}

/// Returns the int8 input whose samples have a scale of their own, and that scale, if the flags name one.
///
/// # Errors
/// Fails when inputs do not have the type int8, when the network has no input of that name, or when the flags name none of several.
pub(super) fn scaled_input<'a>(
    args: &'a EngineBuildArgs,
    model: &'a Model,
) -> Result<Option<(&'a str, Scale)>, Failure> {
    let Some(requested) = &args.input_scale else {
        return Ok(None);
    };
    if args.input_dtype != Some(ElementType::Int8) {
        return Err(Failure::usage(anyhow::anyhow!(
            "--input-scale needs --input-dtype int8"
        )));
    }
    let mut inputs = model.inputs().peekable();
    match requested.name.as_deref().or(model.only_input()) {
        // The inputs of a file that cannot be read are unknown. TensorRT reports what is wrong with it.
        Some(name) if inputs.peek().is_none() || model.inputs().any(|input| input == name) => {
            Ok(Some((name, requested.scale)))
        }
        Some(name) => Err(Failure::usage(anyhow::anyhow!(
            "{} has no input {name}, which --input-scale names; its inputs are {}",
            args.onnx.display(),
            inputs.collect::<Vec<_>>().join(", ")
        ))),
        None => Err(Failure::usage(anyhow::anyhow!(
            "--input-scale does not name the input of {}; hint: --input-scale NAME={}",
            args.onnx.display(),
            requested.scale
        ))),
    }
}

/// Rejects an int8 build without scales. TensorRT would use other types for such layers, or fail after a long build.
///
/// # Errors
/// Fails when neither the calibration nor the network provides scales.
pub(super) fn check_scales(args: &EngineBuildArgs, model: &Model, version: Version) -> Result<(), Failure> {
    let has_calibration = args.calibration_cache.is_some() || args.calibration_samples.is_some();
    let needs_scales = args.precision == EnginePrecision::Int8 && version.has_precision_flags();
    if !needs_scales || has_calibration || model.is_quantised() != Some(false) {
        return Ok(());
    }
    Err(Failure::usage(anyhow::anyhow!(
        "int8 needs scales, and {} has no Q/DQ layers; hint: calibrate with --calibration-samples DIR, which `regatta prep BENCHMARK \
         --calibration LIST` makes, or take the scales of --calibration-cache FILE; --precision fp16 needs none",
        args.onnx.display()
    )))
}

/// Rejects a DLA build of a network of 32-bit floats. DLA computes in 16-bit floats and 8-bit integers, so the complete network
/// would run on the GPU.
///
/// # Errors
/// When no type of DLA is allowed, and the network has none itself.
pub(super) fn check_dla_types(
    settings: &BuildSettings,
    model: &Model,
    version: Version,
) -> Result<(), Failure> {
    let own = version.is_strongly_typed() && model.reduced_precision() != Some(false);
    if settings.dla.is_none() || settings.precision != Precision::AsInNetwork || own {
        return Ok(());
    }
    let way = if version.has_precision_flags() {
        "use --precision fp16 or int8"
    } else {
        "use an ONNX file in fp16 or with Q/DQ layers"
    };
    Err(Failure::usage(anyhow::anyhow!(
        "DLA only computes in fp16 and int8, so the network would run completely on the GPU; hint: {way}"
    )))
}
