//! `engine build`: finds the engine in the cache, or checks memory, builds the engine and stores it.

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use regatta_engines::{chip::this_chip, tensorrt::bounded_workspace};
use regatta_fsutil::hash::sha256_hex;
use regatta_tensorrt::{
    BuildSettings, CacheEntry, CacheError, Calibrator, EngineCache, EngineManifest, Model, Scale, TensorRt,
    plugin_hashes,
};
use regatta_types::ExitCode;

use super::{
    calibration::{KeptScales, find_samples, find_scales},
    installation::open,
    memory,
    print::{self, say},
    settings::{check_dla_types, check_scales, scaled_input, settings},
    watch::watched,
};
use crate::{cli::EngineBuildArgs, exit::Failure};

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
    let scaled_input = scaled_input(args, &model)?;
    let cache = EngineCache::new(args.place.cache.clone());
    bound_workspace(&mut settings);
    let samples = find_samples(args, tensorrt.version())?;
    let mut manifest = EngineManifest::new(&settings, onnx_sha256, tensorrt.version(), this_chip());
    manifest.plugins_sha256 = plugin_hashes(&args.plugins).map_err(Failure::usage)?;
    manifest.input_scale = scaled_input.map(|(_, scale)| scale);
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
    let scales = manifest.calibration_file();
    let mut on_device = match &samples {
        None => None,
        Some(samples) => find_scales(
            &tensorrt,
            &mut settings,
            &model,
            samples,
            &KeptScales {
                cache: &cache,
                directory: place,
                name: &scales,
                is_ignored: args.force_calibration,
            },
        )?,
    };
    if let Some((input, scale)) = scaled_input {
        set_input_scale(&mut settings, input, scale);
    }
    // The cache of another build is kept already, without the samples' scale.
    let kept_as = on_device.is_some().then_some(&*scales);
    let calibration = on_device.as_mut().map(|samples| samples as &mut dyn Calibrator);
    let (place, entry) = build_new(&tensorrt, &settings, calibration, manifest, args, kept_as)?;
    show(args, &place, &entry)
}

/// Gives an input the scale of its samples, whatever the calibration found for it.
fn set_input_scale(settings: &mut BuildSettings, input: &str, scale: Scale) {
    if settings.calibration_cache.is_empty() {
        say(&format!(
            "warning: without calibration, the scales are those of the network's Q/DQ layers; the first one after {input} must have {scale}"
        ));
    } else {
        settings.calibration_cache = scale.in_cache(&settings.calibration_cache, input);
    }
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
