//! Which engine of the cache a run takes: the one that was named, or the only one that fits best. Never any of several.

use std::path::Path;

use regatta_rules::documents::EngineKind;
use regatta_tensorrt::{Cache, Entry, Precision, Version};

use super::{UnitWish, inputs};
use crate::engines::{EngineError, LoadRequest};

/// What an engine must have been made of and for.
pub(super) struct Here {
    /// The model's SHA-256, hexadecimal.
    pub(super) onnx_sha256: String,
    /// The installed TensorRT.
    pub(super) tensorrt: Version,
    /// This machine's chip.
    pub(super) chip: String,
}

/// The engine and its plan.
///
/// # Errors
/// [`EngineError::NoPlan`] when there is none or more than one, with the command that makes one.
pub(super) fn choose(
    request: &LoadRequest<'_>,
    here: &Here,
    wish: &UnitWish,
    dla: bool,
) -> Result<(Entry, Vec<u8>), EngineError> {
    let cache = &request.tensorrt.cache;
    let batch = wish.batch.unwrap_or(wanted_batch(request));
    let none = |reason: String| no_plan(request, reason, batch, wish.streams, dla);
    if let Some(named) = &wish.engine {
        let named = Path::new(named);
        let place = if named.is_dir() {
            named.to_owned()
        } else {
            cache.join(named)
        };
        let (entry, plan) = Entry::read(&place).map_err(super::unavailable)?;
        entry
            .manifest
            .fits(here.tensorrt, &here.chip)
            .map_err(|refusal| none(refusal.to_string()))?;
        if entry.manifest.onnx_sha256 != here.onnx_sha256 {
            return Err(none(format!("{} was built from another model", place.display())));
        }
        if entry.manifest.dla.is_some() != dla {
            let unit = if dla { "the GPU" } else { "DLA" };
            return Err(none(format!("{} was built for {unit}", place.display())));
        }
        if !inputs::are_wished(&entry, request.tensorrt, dla) {
            return Err(none(format!(
                "{} does not take the input that the settings ask for",
                place.display()
            )));
        }
        return Ok((entry, plan));
    }
    let listed = Cache::new(cache.clone()).list().map_err(super::unavailable)?;
    let mut refusal = None;
    let mut entries = Vec::new();
    for (place, entry) in listed {
        match entry {
            Ok(entry) => entries.push((place, entry)),
            // It may have been the one.
            Err(damaged) => refusal = Some(format!("{:#}", anyhow::Error::from(damaged))),
        }
    }
    entries.retain(|(_, entry)| {
        let manifest = &entry.manifest;
        let precision = request.tensorrt.precision;
        manifest.onnx_sha256 == here.onnx_sha256
            && manifest.dla.is_some() == dla
            && precision.is_none_or(|wanted| wanted == manifest.precision)
    });
    let before = entries.len();
    entries.retain(|(_, entry)| inputs::are_wished(entry, request.tensorrt, dla));
    if entries.len() < before {
        refusal = Some(format!(
            "none of {before} takes the input that the settings ask for"
        ));
    }
    // Engines of other samples stand beside those of these; alone, one is refused with both sides named when it is loaded.
    let takes = |entry: &Entry| inputs::take_samples(entry, &request.benchmark.model);
    if entries.iter().any(|(_, entry)| takes(entry)) {
        entries.retain(|(_, entry)| takes(entry));
    }
    let mut fitting = Vec::new();
    for (place, entry) in entries {
        match entry.manifest.fits(here.tensorrt, &here.chip) {
            Ok(()) => fitting.push((place, entry)),
            Err(error) => refusal = Some(error.to_string()),
        }
    }
    if fitting.is_empty() {
        let unit = if dla { "DLA" } else { "the GPU" };
        let reason = refusal.unwrap_or_else(|| format!("there is none for this model on {unit}"));
        return Err(none(reason));
    }
    let size = |entry: &Entry| entry.manifest.batch as usize;
    // What a DLA core does not take at once, it or the GPU takes next.
    let free = wish.batch.is_none() && (dla || request.takes_any_batch);
    let best = if free {
        fitting.iter().map(|(_, entry)| size(entry)).max()
    } else {
        let large_enough = fitting.iter().map(|(_, entry)| size(entry));
        large_enough.filter(|&size| size >= batch).min()
    };
    let Some(best) = best else {
        return Err(none(format!("none of {} has a batch of {batch}", fitting.len())));
    };
    fitting.retain(|(_, entry)| size(entry) == best);
    match fitting.as_slice() {
        [(place, _)] => Entry::read(place).map_err(super::unavailable),
        several => {
            let keys: Vec<_> = several.iter().map(|(_, entry)| entry.manifest.key()).collect();
            let name = if dla { "dla_engine" } else { "gpu_engine" };
            Err(none(format!(
                "{} fit; name one of them by the setting {name}, or leave fewer",
                keys.join(", ")
            )))
        }
    }
}

/// An engine that has fewer profiles than streams are wanted.
pub(super) fn too_few_profiles(
    request: &LoadRequest<'_>,
    entry: &Entry,
    streams: usize,
    profiles: usize,
) -> EngineError {
    let manifest = &entry.manifest;
    let reason = format!(
        "{} has {profiles} optimisation profile(s), but {streams} contexts are to run at once",
        manifest.key()
    );
    no_plan(
        request,
        reason,
        manifest.batch as usize,
        streams,
        manifest.dla.is_some(),
    )
}

fn wanted_batch(request: &LoadRequest<'_>) -> usize {
    request.batch_sizes.iter().copied().fold(1, usize::max)
}

fn no_plan(
    request: &LoadRequest<'_>,
    reason: String,
    batch: usize,
    streams: usize,
    dla: bool,
) -> EngineError {
    let precision = match request.tensorrt.precision {
        Some(Precision::Fp16) => " --precision fp16",
        Some(Precision::Int8) => " --precision int8",
        Some(Precision::AsInNetwork) | None => "",
    };
    let profiles = if streams > 1 && !dla {
        format!(" --profiles {streams}")
    } else {
        String::new()
    };
    let shapes = inputs::shape_flags(&request.benchmark.model);
    let input = inputs::flags(request.tensorrt, dla);
    let core = if dla { " --dla-core 0" } else { "" };
    EngineError::NoPlan {
        engine: EngineKind::Tensorrt,
        cache: request.tensorrt.cache.clone(),
        reason,
        command: format!(
            "regatta-agent engine build --onnx {} --batch {batch}{profiles}{precision}{shapes}{input}{core} --cache {}",
            request.model_file.display(),
            request.tensorrt.cache.display()
        ),
    }
}
