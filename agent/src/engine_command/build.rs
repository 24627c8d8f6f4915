//! `engine build`: finds the engine in the cache, or checks memory, builds the engine and stores it.

use std::{
    io,
    io::Write as _,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::Context as _;
use regatta_engines::{
    chip::this_chip,
    tensorrt::{
        bounded_workspace,
        calibration::{OnDevice, Samples},
    },
};
use regatta_fsutil::{
    hash::sha256_hex,
    regular_file::{self, MAX_TEXT},
};
use regatta_tensorrt::{
    BuildSettings, CacheEntry, CacheError, Calibrator, EngineCache, EngineManifest, InputShape, IoFormat,
    Model, TensorRt, Version, plugin_hashes,
};
use regatta_text::EscapedText;
use regatta_types::ExitCode;

use super::{
    installation::open,
    memory, print,
    settings::{check_dla_types, check_scales, settings},
    watch::watched,
};
use crate::{
    cli::{EngineBuildArgs, EnginePrecision},
    exit::Failure,
};

pub(super) fn build(args: &EngineBuildArgs) -> Result<ExitCode, Failure> {
    let mut settings = settings(args)?;
    let model = Model::read(&args.onnx).map_err(Failure::usage)?;
    let model_bytes = model.bytes().map_err(Failure::usage)?;
    let onnx_sha256 = model.sha256().map_err(Failure::usage)?;
    let tensorrt = open(args.tensorrt.as_deref(), &args.plugins)?;
    if let Some(dla) = settings.dla {
        tensorrt.check_dla(dla.core)?;
    }
    check_dla_types(&settings, &model, tensorrt.version())?;
    check_scales(args, &model, tensorrt.version())?;
    let cache = EngineCache::new(args.place.cache.clone());
    bound_workspace(&mut settings);
    let samples = calibration_samples(args, tensorrt.version())?;
    let mut manifest = EngineManifest::new(&settings, onnx_sha256, tensorrt.version(), this_chip());
    manifest.plugins_sha256 = plugin_hashes(&args.plugins).map_err(Failure::usage)?;
    if let Some(samples) = &samples {
        manifest.calibration_sha256 = Some(samples.sha256().to_owned());
    }
    let place = &args.place.cache;
    let _held_until_the_end = cache.lock(|| {
        say(&format!("waiting for another build into {}", place.display()));
    })?;
    if !args.force_calibration
        && let Some(entry) = found(&cache, &manifest)?
    {
        say(&format!("found in {}", place.display()));
        return show(args, &cache.engine_dir(&manifest), &entry);
    }
    if !args.ignore_memory {
        memory::check(model_bytes, settings.workspace_bytes)?;
    }
    settings.timing_cache = cache.timing_cache(&manifest);
    let Some(samples) = &samples else {
        let (place, entry) = build_new(&tensorrt, &settings, None, manifest, args, None)?;
        return show(args, &place, &entry);
    };
    let scales = manifest.calibration_file();
    let kept = args.place.cache.join(&scales);
    settings.calibration_cache = match regular_file::read(&kept, MAX_TEXT) {
        _ if args.force_calibration => Vec::new(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        found => {
            found.with_context(|| format!("the calibration scales in {} cannot be read", kept.display()))?
        }
    };
    let mut on_device = None;
    if !settings.calibration_cache.is_empty() {
        say(&format!("calibration scales found in {}", kept.display()));
    } else if let Some(plain) = for_scales(&settings) {
        settings.calibration_cache = calibrated(&tensorrt, &plain, samples)?;
        cache.store_file(&scales, &settings.calibration_cache)?;
    } else {
        say(&calibrating(samples.count(), settings.batch as usize));
        on_device = Some(OnDevice::new(samples, settings.batch as usize).map_err(Failure::could_not)?);
    }
    let calibration = on_device.as_mut().map(|samples| samples as &mut dyn Calibrator);
    let (place, entry) = build_new(&tensorrt, &settings, calibration, manifest, args, Some(&scales))?;
    show(args, &place, &entry)
}

/// Limits the workspace to a share of this machine's memory.
fn bound_workspace(settings: &mut BuildSettings) {
    let requested = settings.workspace_bytes;
    settings.workspace_bytes = bounded_workspace(requested);
    if settings.workspace_bytes < requested {
        say(&format!(
            "the workspace of {} MiB is bounded to {} MiB, half of this machine's memory",
            requested >> 20,
            settings.workspace_bytes >> 20
        ));
    }
}

/// Returns the engine, if it was built before and is intact.
fn found(cache: &EngineCache, manifest: &EngineManifest) -> Result<Option<CacheEntry>, Failure> {
    match cache.find(manifest) {
        Ok(found) => Ok(found.map(|(entry, _)| entry)),
        // A full disk or a power cut damaged the entry, or a directory was copied by hand. It can be rebuilt, because the manifest defines
        // its contents.
        Err(
            damaged @ (CacheError::Manifest { .. }
            | CacheError::Changed { .. }
            | CacheError::OtherManifest { .. }),
        ) => {
            say(&format!("{damaged}; building it again"));
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the settings of a build for its scales alone, if the samples do not have the type, layout or shape of the engine's input.
fn for_scales(settings: &BuildSettings) -> Option<BuildSettings> {
    let size = |shape: &InputShape| shape.dims.iter().map(|&dim| u64::from(dim)).product::<u64>();
    // Samples have the largest of an input's shapes.
    let is_largest = |shape: &&InputShape| {
        let mut same = settings
            .input_shapes
            .iter()
            .filter(|other| other.name == shape.name);
        same.all(|other| size(other) <= size(shape))
    };
    let plain = BuildSettings {
        profiles: 1,
        dla: None,
        input_shapes: settings.input_shapes.iter().filter(is_largest).cloned().collect(),
        input: IoFormat::default(),
        output: IoFormat::default(),
        ..settings.clone()
    };
    let differs = plain.input != settings.input || plain.input_shapes != settings.input_shapes;
    differs.then_some(plain)
}

/// Returns the calibration cache of a build that does not keep its engine.
fn calibrated(tensorrt: &TensorRt, settings: &BuildSettings, samples: &Samples) -> Result<Vec<u8>, Failure> {
    let batch = settings.batch as usize;
    say(&format!(
        "{}, with the network's own input",
        calibrating(samples.count(), batch)
    ));
    let mut on_device = OnDevice::new(samples, batch).map_err(Failure::could_not)?;
    let built = watched(tensorrt.shim_version().reports_progress(), |tell| {
        tensorrt.build(settings, tell, Some(&mut on_device))
    })
    .map_err(Failure::could_not)??;
    Ok(built.calibration_cache)
}

/// Describes how many samples are used, and how many are left out because they do not fill a batch.
fn calibrating(samples: usize, batch: usize) -> String {
    match samples % batch {
        0 => format!("calibrating over {samples} samples"),
        rest => format!(
            "calibrating over {} of {samples} samples: the last {rest} do not fill a batch of {batch}",
            samples - rest
        ),
    }
}

/// Returns the samples for INT8 calibration, if any are named. Fails if this TensorRT has no calibrator.
fn calibration_samples(args: &EngineBuildArgs, version: Version) -> Result<Option<Samples>, Failure> {
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
    if samples.count() < args.batch as usize {
        let reason = anyhow::anyhow!(
            "{} calibration samples do not fill one batch of {}",
            samples.count(),
            args.batch
        );
        return Err(Failure::usage(reason));
    }
    Ok(Some(samples))
}

fn build_new(
    tensorrt: &TensorRt,
    settings: &BuildSettings,
    calibration: Option<&mut dyn Calibrator>,
    manifest: EngineManifest,
    args: &EngineBuildArgs,
    scales: Option<&str>,
) -> Result<(PathBuf, CacheEntry), Failure> {
    let directory = &args.place.cache;
    let begun = Instant::now();
    let built = watched(tensorrt.shim_version().reports_progress(), |tell| {
        say(&format!(
            "building with TensorRT {}, through the shim of {}, for {}",
            tensorrt.version(),
            tensorrt.shim_version(),
            manifest.chip
        ));
        tensorrt.build(settings, tell, calibration)
    })
    .map_err(Failure::could_not)??;
    // Without a GPU, an engine can be built but not loaded. Its tensors are then unknown.
    let core = settings.dla.map(|dla| dla.core);
    let tensors = tensorrt
        .load(&built.plan, core)
        .and_then(|engine| engine.tensors());
    let entry = CacheEntry {
        manifest,
        plan_sha256: sha256_hex(&built.plan),
        plan_bytes: built.plan.len() as u64,
        build_seconds: begun.elapsed().as_secs_f64(),
        tensors: match tensors {
            Ok(tensors) => tensors,
            Err(error) => {
                say(&format!("built, but not loaded here: {error}"));
                Vec::new()
            }
        },
        placement: built.placement.clone(),
    };
    let cache = EngineCache::new(directory.clone());
    let place = cache.store(&entry, &built)?;
    // Without the timing cache, the next build is only slower.
    let _ = cache.store_timing_cache(&entry.manifest, &built.timing_cache);
    if let Some(scales) = scales.filter(|_| !built.calibration_cache.is_empty()) {
        let kept = cache.store_file(scales, &built.calibration_cache)?;
        say(&format!("calibration cache kept in {}", kept.display()));
    }
    Ok((place, entry))
}

fn show(args: &EngineBuildArgs, place: &Path, entry: &CacheEntry) -> Result<ExitCode, Failure> {
    print::result(args.place.format, entry, |out| print::entry(out, place, entry))?;
    Ok(ExitCode::Success)
}

/// Prints a progress message to standard error.
fn say(words: &str) {
    // Standard error may be closed.
    let _ = writeln!(EscapedText(io::stderr()), "{words}");
}
