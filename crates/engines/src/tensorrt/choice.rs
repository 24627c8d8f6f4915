//! Selection of an engine from the cache: the named engine, or the best one that is compatible. If several are equally
//! good, the selection fails.

use std::path::{Path, PathBuf};

use regatta_tensorrt::{CacheEntry, ElementType, EngineCache, InputScale, Precision, Scale, Version};
use regatta_types::{benchmark::Benchmark, documents::EngineKind, samples::SampleSet};

use super::{UnitRequest, inputs, profiles, request::TensorRtLoad, sequences};
use crate::{EngineError, LoadRequest, MissingEngine};

/// The model and the machine that an engine must have been built for.
pub(super) struct Here {
    /// The model's SHA-256, hexadecimal.
    pub(super) onnx_sha256: String,
    /// The batch of the network, if it is not free.
    pub(super) fixed_batch: Option<usize>,
    /// Whether the input of the samples has other free dimensions, which a build fixes.
    pub(super) has_free_dims: bool,
    /// The SHA-256 of each library with plug-ins, hexadecimal.
    pub(super) plugins: Vec<String>,
    /// The SHA-256 of the requested calibration, hexadecimal. `None` accepts any engine.
    pub(super) calibration: Option<String>,
    /// The scale of the samples, if they are 8-bit integers.
    pub(super) input_scale: Option<Scale>,
    /// The installed TensorRT.
    pub(super) tensorrt: Version,
    /// This machine's chip.
    pub(super) chip: String,
}

/// An engine of the cache: its directory and its entry.
type CachedEngine = (PathBuf, CacheEntry);

/// The requirements for the engine of one unit.
struct EngineQuery<'a> {
    request: TensorRtLoad<'a>,
    here: &'a Here,
    unit_request: &'a UnitRequest,
    dla: bool,
    /// The largest batch that the run gives to the unit, or the network's own.
    batch: usize,
}

/// Returns the selected engine and its plan.
///
/// # Errors
/// [`EngineError::NotBuilt`] when no engine or more than one is suitable. It states the differences and the engine that
/// would be.
pub(super) fn choose(
    request: TensorRtLoad<'_>,
    here: &Here,
    unit_request: &UnitRequest,
    dla: bool,
) -> Result<(CacheEntry, Vec<u8>), EngineError> {
    let query = EngineQuery {
        request,
        here,
        unit_request,
        dla,
        batch: here
            .fixed_batch
            .unwrap_or_else(|| requested_batch(request.load, unit_request)),
    };
    match &unit_request.engine {
        Some(names) => query.named(query.name_of_model(names)?),
        None => query.best(query.candidates()?),
    }
}

impl EngineQuery<'_> {
    /// Returns the name of this model's engine, of several names separated by commas. A single name is returned whatever it names.
    fn name_of_model<'n>(&self, names: &'n str) -> Result<&'n Path, EngineError> {
        if !names.contains(',') {
            return Ok(Path::new(names));
        }
        let is_of_model = |name: &&Path| {
            CacheEntry::read(&self.place(name))
                .is_ok_and(|(entry, _)| entry.manifest.onnx_sha256 == self.here.onnx_sha256)
        };
        let mut paths = names.split(',').map(|name| Path::new(name.trim()));
        paths
            .find(is_of_model)
            .ok_or_else(|| self.none(format!("none of {names} was built from this model")))
    }

    /// Returns the directory of an engine that is named by key or directory.
    fn place(&self, name: &Path) -> PathBuf {
        if name.is_dir() {
            name.to_owned()
        } else {
            self.request.tensorrt.cache.join(name)
        }
    }

    /// Returns the engine with a key or directory, if it meets the requirements.
    fn named(&self, name: &Path) -> Result<(CacheEntry, Vec<u8>), EngineError> {
        let place = self.place(name);
        let (entry, plan) = CacheEntry::read(&place).map_err(EngineError::tensorrt_unavailable)?;
        let manifest = &entry.manifest;
        manifest
            .check_compatible(self.here.tensorrt, &self.here.chip)
            .map_err(|refusal| self.none(refusal.to_string()))?;
        let differs = if manifest.onnx_sha256 != self.here.onnx_sha256 {
            "was built from another model".to_owned()
        } else if manifest.dla.is_some() != self.dla {
            format!("was built for {}", unit(!self.dla))
        } else if let Some(requested) = self.other_precision(&entry) {
            format!(
                "is in {}, but {} was requested",
                precision(manifest.precision),
                precision(requested)
            )
        } else if !inputs::are_requested(&entry, self.request.tensorrt, self.dla) {
            "does not accept the input that the settings request".to_owned()
        } else if manifest.plugins_sha256 != self.here.plugins {
            "was built with other plug-in libraries than the run has".to_owned()
        } else if !self.has_lengths(&entry) {
            "was built for other lengths of sequences than sequence_lengths requests".to_owned()
        } else if !self.has_calibration(&entry) {
            "was built without the calibration that the settings request".to_owned()
        } else if !self.has_scale(&entry) {
            "reads int8 samples with another scale than these have".to_owned()
        } else if let Some(setting) = self.other_option(&entry) {
            format!("was built with another {setting} than the settings request")
        } else {
            return Ok((entry, plan));
        };
        Err(self.none(format!("{} {differs}", place.display())))
    }

    /// Returns all suitable engines of the cache.
    fn candidates(&self) -> Result<Vec<CachedEngine>, EngineError> {
        let cache = EngineCache::new(self.request.tensorrt.cache.clone());
        let mut filter = EngineFilter::default();
        for (place, entry) in cache.list().map_err(EngineError::tensorrt_unavailable)? {
            match entry {
                Ok(entry) => filter.entries.push((place, entry)),
                // The damaged entry may be the required one.
                Err(damaged) => filter.causes.push(format!("{:#}", anyhow::Error::from(damaged))),
            }
        }
        // Engines of other models are not reported, because the cache holds the engines of all benchmarks.
        let of_model = |(_, entry): &CachedEngine| entry.manifest.onnx_sha256 == self.here.onnx_sha256;
        filter.entries.retain(of_model);
        filter.keep(
            |entry| entry.manifest.dla.is_some() == self.dla,
            |of_model| {
                let (other, requested) = (unit(!self.dla), unit(self.dla));
                format!("{of_model} for {other}, but {requested} was requested")
            },
        );
        if let Some(requested) = self.request.tensorrt.precision {
            for other in [Precision::AsInNetwork, Precision::Fp16, Precision::Int8] {
                filter.keep(
                    |entry| entry.manifest.precision == requested || entry.manifest.precision != other,
                    |of_model| {
                        let (other, requested) = (precision(other), precision(requested));
                        format!("{of_model} in {other}, but {requested} was requested")
                    },
                );
            }
        }
        filter.keep(
            |entry| inputs::are_requested(entry, self.request.tensorrt, self.dla),
            |of_model| {
                let requested = inputs::describe(self.request.tensorrt);
                format!("{of_model} for other inputs than {requested}, which the settings request")
            },
        );
        filter.keep(
            |entry| self.has_calibration(entry),
            |of_model| format!("{of_model} without the calibration that the settings request"),
        );
        filter.keep(
            |entry| self.has_scale(entry),
            |of_model| format!("{of_model} for int8 samples of another scale"),
        );
        for (setting, is_as_requested) in self.request.tensorrt.build.checks() {
            filter.keep(
                |entry| is_as_requested(&entry.manifest),
                |of_model| format!("{of_model} of another {setting} than the settings request"),
            );
        }
        filter.keep(
            |entry| self.has_lengths(entry),
            |of_model| {
                let requested = sequences::describe(&self.request.load.sequences);
                format!("{of_model} for other sequences than {requested}, which sequence_lengths requests")
            },
        );
        filter.keep(
            |entry| entry.manifest.plugins_sha256 == self.here.plugins,
            |of_model| format!("{of_model} built with other plug-in libraries than the run has"),
        );
        // Prefer engines for these samples over engines for others. If there are only others, loading one fails with an
        // error that names both types.
        let load = self.request.load;
        let (model, sequences) = (&load.benchmark.model, &load.sequences);
        let takes = |(_, entry): &CachedEngine| inputs::take_samples(entry, model, sequences);
        if filter.entries.iter().any(takes) {
            filter.entries.retain(takes);
        }
        filter.keep_compatible(self.here);
        match filter {
            EngineFilter { entries, .. } if !entries.is_empty() => Ok(entries),
            EngineFilter { causes, .. } if !causes.is_empty() => Err(self.none(causes.join("; "))),
            _ => Err(self.none(format!("there is none for this model on {}", unit(self.dla)))),
        }
    }

    /// Returns the suitable engine with the best batch size.
    fn best(&self, mut matching: Vec<CachedEngine>) -> Result<(CacheEntry, Vec<u8>), EngineError> {
        let size = |entry: &CacheEntry| entry.manifest.batch as usize;
        let sizes = matching.iter().map(|(_, entry)| size(entry));
        // A DLA core may take a smaller batch, because the rest becomes the next batch of it or of the GPU.
        let free = self.unit_request.batch.is_none() && (self.dla || self.request.load.takes_any_batch);
        let best = if free {
            sizes.max()
        } else {
            sizes.filter(|&size| self.takes(size)).min()
        };
        let Some(best) = best else {
            let reason = format!("none of {} has a batch of {}", matching.len(), self.batch);
            return Err(self.none(reason));
        };
        matching.retain(|(_, entry)| size(entry) == best);
        profiles::keep_just_enough(&mut matching, self.unit_request.streams);
        match matching.as_slice() {
            [(place, _)] => CacheEntry::read(place).map_err(EngineError::tensorrt_unavailable),
            several => {
                let keys: Vec<_> = several.iter().map(|(_, entry)| entry.manifest.key()).collect();
                let name = if self.dla { "dla_engine" } else { "gpu_engine" };
                Err(self.none(format!(
                    "{} match; hint: name one of them with the setting {name}, or remove the others",
                    keys.join(", ")
                )))
            }
        }
    }

    /// Returns whether an engine with this batch size accepts the run's batch.
    fn takes(&self, size: usize) -> bool {
        size == self.batch || (size > self.batch && !self.request.tensorrt.exact_batch)
    }

    /// Returns whether an engine was built for the run's lengths of sequences.
    fn has_lengths(&self, entry: &CacheEntry) -> bool {
        let load = self.request.load;
        sequences::has_lengths(entry, &load.benchmark.model, &load.sequences)
    }

    /// Returns whether an engine was built with the requested calibration, if there is one.
    fn has_calibration(&self, entry: &CacheEntry) -> bool {
        self.here.calibration.is_none() || entry.manifest.calibration_sha256 == self.here.calibration
    }

    /// Returns whether an engine with an input of 8-bit integers reads them with the samples' scale. Q/DQ layers have scales of their own.
    fn has_scale(&self, entry: &CacheEntry) -> bool {
        let manifest = &entry.manifest;
        let is_calibrated = manifest.calibration_sha256.is_some();
        !is_calibrated
            || manifest.input.element != Some(ElementType::Int8)
            || self.here.input_scale.is_none()
            || manifest.input_scale == self.here.input_scale
    }

    /// Returns the requested precision, if the engine's differs.
    fn other_precision(&self, entry: &CacheEntry) -> Option<Precision> {
        let requested = self.request.tensorrt.precision;
        requested.filter(|&requested| requested != entry.manifest.precision)
    }

    /// Returns a setting of the build that the engine was not built with, if there is one.
    fn other_option(&self, entry: &CacheEntry) -> Option<&'static str> {
        let mut checks = self.request.tensorrt.build.checks();
        checks.find_map(|(setting, is_as_requested)| (!is_as_requested(&entry.manifest)).then_some(setting))
    }

    fn none(&self, reason: String) -> EngineError {
        let built_for = BuiltFor {
            batch: self.batch,
            streams: self.unit_request.streams,
            dla: self.dla,
            has_free_dims: self.here.has_free_dims,
            input_scale: self.here.input_scale,
            has_precision_flags: self.here.tensorrt.has_precision_flags(),
        };
        not_built(self.request, reason, &built_for)
    }
}

/// The remaining candidates, and the reasons against other engines.
#[derive(Default)]
struct EngineFilter {
    entries: Vec<CachedEngine>,
    causes: Vec<String>,
}

impl EngineFilter {
    /// Keeps the engines that match, and records how many others there are and how they differ.
    fn keep(&mut self, matches: impl Fn(&CacheEntry) -> bool, cause: impl Fn(&str) -> String) {
        let before = self.entries.len();
        self.entries.retain(|(_, entry)| matches(entry));
        match before - self.entries.len() {
            0 => {}
            1 => self.causes.push(cause("1 engine of this model is")),
            several => self
                .causes
                .push(cause(&format!("{several} engines of this model are"))),
        }
    }

    /// Keeps the engines for this chip and this TensorRT.
    fn keep_compatible(&mut self, here: &Here) {
        let Self { entries, causes } = self;
        entries.retain(|(_, entry)| {
            let fits = entry.manifest.check_compatible(here.tensorrt, &here.chip);
            if let Err(refusal) = &fits
                && !causes.contains(&refusal.to_string())
            {
                causes.push(refusal.to_string());
            }
            fits.is_ok()
        });
    }
}

const fn unit(dla: bool) -> &'static str {
    if dla { "DLA" } else { "the GPU" }
}

const fn precision(precision: Precision) -> &'static str {
    match precision {
        Precision::AsInNetwork => "the network's own precision",
        Precision::Fp16 => "fp16",
        Precision::Int8 => "int8",
    }
}

/// Returns the error for an engine with fewer profiles than streams.
pub(super) fn too_few_profiles(
    request: TensorRtLoad<'_>,
    entry: &CacheEntry,
    streams: usize,
    profiles: usize,
) -> EngineError {
    let manifest = &entry.manifest;
    let reason = format!(
        "{} has {profiles} optimisation profile(s), but {streams} contexts must run at the same time",
        manifest.key()
    );
    let built_for = BuiltFor {
        batch: manifest.batch as usize,
        streams,
        dla: manifest.dla.is_some(),
        has_free_dims: !manifest.input_shapes.is_empty(),
        input_scale: manifest.input_scale,
        has_precision_flags: manifest.tensorrt.has_precision_flags(),
    };
    not_built(request, reason, &built_for)
}

/// Returns the largest batch that a run gives to a unit.
pub(super) fn requested_batch(request: &LoadRequest<'_>, unit_request: &UnitRequest) -> usize {
    let largest = request.batch_sizes.iter().copied().fold(1, usize::max);
    unit_request.batch.unwrap_or(largest)
}

/// What a missing engine is built for, besides the request.
struct BuiltFor {
    batch: usize,
    streams: usize,
    dla: bool,
    /// Whether the samples' input has free dimensions besides the batch.
    has_free_dims: bool,
    /// The scale of the samples, if they are 8-bit integers.
    input_scale: Option<Scale>,
    /// Whether this TensorRT takes precisions as flags, and not from the network.
    has_precision_flags: bool,
}

fn not_built(
    TensorRtLoad { load, tensorrt }: TensorRtLoad<'_>,
    reason: String,
    built_for: &BuiltFor,
) -> EngineError {
    let dla = built_for.dla;
    // Without a precision, DLA cannot compute any layer of a network of 32-bit floats.
    let usual = if dla && built_for.has_precision_flags {
        Precision::Fp16
    } else {
        Precision::AsInNetwork
    };
    let precision = tensorrt.precision.unwrap_or(usual);
    // An int8 engine needs scales.
    let prepared = || {
        let is_needed = precision == Precision::Int8 && built_for.has_precision_flags;
        is_needed
            .then(|| prepared_calibration(load.benchmark, &tensorrt.scratch))
            .flatten()
    };
    let calibration = tensorrt.calibration.clone().or_else(prepared);
    let input = inputs::built_format(tensorrt, dla);
    // Without a calibration, there is no scale that it could replace.
    let takes_scale = input.element == Some(ElementType::Int8) && calibration.is_some();
    let missing = MissingEngine {
        onnx: load.model_file.clone(),
        cache: tensorrt.cache.clone(),
        dla: dla.then(|| tensorrt.build.of_dla()),
        batch: built_for.batch,
        profiles: if dla { 1 } else { built_for.streams.max(1) },
        precision,
        input_shapes: inputs::built_shapes(&load.benchmark.model, &load.sequences, built_for.has_free_dims),
        input,
        input_scale: built_for
            .input_scale
            .filter(|_| takes_scale)
            .map(|scale| InputScale {
                name: load.benchmark.model.input_name.clone(),
                scale,
            }),
        workspace_bytes: tensorrt.build.workspace_bytes,
        optimization_level: tensorrt.build.optimization_level,
        plugins: tensorrt.plugins.clone(),
        calibration,
        calibration_method: tensorrt.build.calibration_method,
    };
    EngineError::NotBuilt {
        engine: EngineKind::Tensorrt,
        reason,
        missing: Box::new(missing),
    }
}

/// Returns the directory of a published calibration list's samples, if `regatta prep` has made them.
fn prepared_calibration(benchmark: &Benchmark, scratch: &Path) -> Option<PathBuf> {
    let dirs = benchmark.calibration_dirs().into_iter();
    dirs.map(|dir| scratch.join(dir))
        .find(|dir| dir.join(SampleSet::FILE).is_file())
}
