//! `engine build`: finds the engine in the cache, or checks memory, builds it and keeps it.

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::Context as _;
use regatta_tensorrt::{BuildSettings, Cache, Dla, Entry, Manifest, Precision, TensorRt, sha256_of};

use super::{chip, memory, open, print};
use crate::{
    cli::{EngineBuildArgs, EnginePrecision},
    exit::{self, Failure},
};

/// Where a timing cache lies in a cache of engines: measured tactics, which make the next build quick.
const TIMINGS: &str = "timing.cache";

pub(super) fn build(args: &EngineBuildArgs) -> Result<u8, Failure> {
    let settings = settings(args)?;
    let onnx = fs::read(&args.onnx)
        .with_context(|| format!("the model {} cannot be read", args.onnx.display()))
        .map_err(Failure::usage)?;
    let tensorrt = open(args.tensorrt.as_deref())?;
    let cache = Cache::new(args.place.cache.clone());
    let manifest = Manifest::new(&settings, sha256_of(&onnx), tensorrt.version(), chip());
    if let Some((entry, _)) = cache.find(&manifest)? {
        say(&format!("found in {}", args.place.cache.display()));
        return show(args, &cache.place(&manifest), &entry);
    }
    if !args.ignore_memory {
        enough_memory(onnx.len() as u64, settings.workspace_bytes)?;
    }
    drop(onnx);
    let (place, entry) = build_new(&tensorrt, &settings, manifest, &cache, &args.place.cache)?;
    show(args, &place, &entry)
}

fn settings(args: &EngineBuildArgs) -> Result<BuildSettings, Failure> {
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
            "a DLA engine has one batch size: leave --min-batch out"
        )));
    }
    let calibration_cache = match &args.calibration_cache {
        None => Vec::new(),
        Some(path) => fs::read(path)
            .with_context(|| format!("the calibration cache {} cannot be read", path.display()))
            .map_err(Failure::usage)?,
    };
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
        dla: args.dla_core.map(|core| Dla {
            core,
            gpu_fallback: !args.no_fallback,
            sram_bytes: u64::from(args.dla_sram.unwrap_or(0)) << 10,
        }),
        timing_cache: fs::read(args.place.cache.join(TIMINGS)).unwrap_or_default(),
        calibration_cache,
    })
}

fn enough_memory(onnx_bytes: u64, workspace_bytes: u64) -> Result<(), Failure> {
    let needed = memory::needed(onnx_bytes, workspace_bytes);
    match memory::available() {
        Some(available) if available < needed => Err(Failure::could_not(anyhow::anyhow!(
            "about {} MiB are needed to build, but {} MiB are free: end other programs, add swap, or build with --ignore-memory",
            needed >> 20,
            available >> 20
        ))),
        _ => Ok(()),
    }
}

fn build_new(
    tensorrt: &TensorRt,
    settings: &BuildSettings,
    manifest: Manifest,
    cache: &Cache,
    directory: &Path,
) -> Result<(PathBuf, Entry), Failure> {
    say(&format!(
        "building with TensorRT {} for {}",
        tensorrt.version(),
        manifest.chip
    ));
    let begun = Instant::now();
    let mut progress = print::Progress::new();
    let built = tensorrt.build(settings, &mut |phase| progress.tell(phase));
    progress.end();
    let built = built?;
    // Without a GPU an engine can be built and not loaded: its tensors stay unknown then.
    let core = settings.dla.map(|dla| dla.core);
    let tensors = tensorrt
        .load(&built.plan, core)
        .and_then(|engine| engine.tensors());
    let entry = Entry {
        manifest,
        plan_sha256: sha256_of(&built.plan),
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
    let place = cache.keep(&entry, &built)?;
    // The next build is slower without it, and no worse.
    let _ = fs::write(directory.join(TIMINGS), &built.timing_cache);
    Ok((place, entry))
}

fn show(args: &EngineBuildArgs, place: &Path, entry: &Entry) -> Result<u8, Failure> {
    print::result(args.place.format, entry, |out| print::entry(out, place, entry))?;
    Ok(exit::OK)
}

/// A word on the way, beside the result.
fn say(words: &str) {
    // Nobody is left to tell when standard error is closed.
    let _ = writeln!(io::stderr(), "{words}");
}
