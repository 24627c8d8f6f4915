//! Selection of the benchmark for `bench`. It is a file of the user, a built-in benchmark, or, for engines that do not
//! read data, a name with sample counts.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context as _, anyhow};
use regatta_catalogue::catalogue::{BenchmarkCatalogue, CatalogueError};
use regatta_fsutil::regular_file::{self, MAX_TEXT};
use regatta_types::{
    benchmark::{Accuracy, Benchmark, Dataset, Dtype, Model, Response},
    documents::{Document as _, EngineKind, RunSpec},
    engine_settings::EngineSettings,
    layout::Layout,
    samples::SampleSet,
};

use crate::{cli::SettingAssignment, exit::Failure};

/// The flags that select the benchmark.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named<'a> {
    pub(crate) sut: EngineKind,
    /// The benchmark's name.
    pub(crate) model: &'a str,
    /// A file that describes the benchmark.
    pub(crate) file: Option<&'a Path>,
    /// The total number of samples, and the number to load at once.
    pub(crate) counts: Option<(usize, usize)>,
}

/// Returns the benchmark that the flags select, with the sample counts from the flags, if any.
///
/// # Errors
/// [`Failure`] when no benchmark has the name, the file does not parse, or counts are set for an engine with a dataset.
pub(crate) fn benchmark(args: &Named<'_>) -> Result<Benchmark, Failure> {
    let counts = args.counts;
    if counts.is_some() && args.sut.computes() {
        let reason = anyhow!(
            "the {} engine takes its sample counts from the dataset; hint: leave out --total-samples",
            args.sut
        );
        return Err(Failure::usage(reason));
    }
    if let Some((total, performance)) =
        counts.filter(|&(total, performance)| performance < 1 || performance > total)
    {
        let reason = anyhow!("--performance-samples {performance} must be from 1 to --total-samples {total}");
        return Err(Failure::usage(reason));
    }
    let found = match args.file {
        Some(file) => Ok(from_file(file, args.model)?),
        None => BenchmarkCatalogue::read(None)?.named(args.model).cloned(),
    };
    match (found, counts) {
        (Ok(benchmark), None) => Ok(benchmark),
        (Ok(mut benchmark), Some((total, performance))) => {
            benchmark.dataset.total_samples = total;
            benchmark.dataset.performance_samples = performance;
            Ok(benchmark)
        }
        (Err(CatalogueError::Unknown { .. }), Some((total, performance))) => {
            Ok(nameless(args.model, total, performance))
        }
        (Err(error), _) => Err(with_hint(error, args.sut)),
    }
}

/// Returns the engine settings of `--set`.
///
/// # Errors
/// [`Failure`] when the engine does not accept a setting or its value.
pub(crate) fn settings(
    engine: EngineKind,
    assignments: &[SettingAssignment],
) -> Result<EngineSettings, Failure> {
    let pairs = assignments
        .iter()
        .map(|assignment| (assignment.name.as_str(), assignment.value.as_str()));
    EngineSettings::parse(engine, pairs).map_err(Failure::usage)
}

/// Returns the benchmark with samples in the form that the engine's settings request. Samples that are not prepared in
/// that form keep the benchmark's own form, if engines convert it.
///
/// # Errors
/// [`Failure`] when the samples cannot have that form.
pub(crate) fn in_form(
    benchmark: Benchmark,
    sut: EngineKind,
    settings: &EngineSettings,
    scratch: Option<&Path>,
) -> Result<Benchmark, Failure> {
    let own = benchmark.form();
    let requested = benchmark.requested_form(settings);
    let Some(requested) = requested.filter(|&requested| sut == EngineKind::Tensorrt && requested != own)
    else {
        return Ok(benchmark);
    };
    match benchmark.in_form(requested) {
        // Keep the benchmark's description: the engine checks its input against it.
        Err(_) if own.dtype == requested.dtype => Ok(benchmark),
        Err(error) => Err(Failure::usage(error)),
        Ok(changed) => {
            let directory = scratch.unwrap_or(Path::new("")).join(&changed.dataset.dir);
            let is_made = directory.join(SampleSet::FILE).is_file();
            Ok(if own.converts_to(requested) && !is_made {
                benchmark
            } else {
                changed
            })
        }
    }
}

/// Returns the benchmark of a file, or of a run's spec, which ends in `.json`.
fn from_file(path: &Path, model: &str) -> Result<Benchmark, Failure> {
    let benchmark = if path.extension().is_some_and(|extension| extension == "json") {
        let unusable = || format!("the spec {} cannot be used", path.display());
        let bytes = regular_file::read(path, MAX_TEXT).with_context(unusable)?;
        RunSpec::from_json(&bytes)
            .with_context(unusable)
            .map_err(Failure::usage)?
            .benchmark
    } else {
        BenchmarkCatalogue::read_file(path)?
    };
    if benchmark.is_called(model) {
        return Ok(benchmark);
    }
    let (file, name) = (path.display(), &benchmark.name);
    Err(Failure::usage(anyhow!(
        "{file} describes {name}, but --benchmark is {model}"
    )))
}

/// Adds a hint to the error for an unknown benchmark.
fn with_hint(error: CatalogueError, sut: EngineKind) -> Failure {
    let hint = match &error {
        CatalogueError::Unknown { .. } if sut.computes() => "describe yours with --benchmark-file",
        CatalogueError::Unknown { .. } => {
            "describe yours with --benchmark-file, or set --total-samples and --performance-samples"
        }
        _ => return error.into(),
    };
    Failure::usage(anyhow!("{error}; hint: {hint}"))
}

/// Returns a benchmark with only a name and counts, for comparisons of LoadGens with any model's settings.
fn nameless(name: &str, total_samples: usize, performance_samples: usize) -> Benchmark {
    Benchmark {
        schema: 1,
        name: name.to_owned(),
        aliases: Vec::new(),
        loadgen_model: name.to_owned(),
        title: name.to_owned(),
        not_submittable: Some("the samples were counted, not computed".to_owned()),
        model: Model {
            file: String::new(),
            sha256: None,
            input_shape: Vec::new(),
            input_dtype: Dtype::Int8,
            input_format: Layout::Linear,
            input_name: None,
            response: Response::Raw,
            outputs: Vec::new(),
            class_offset: 0,
            detections: None,
            windows: None,
            transducer: None,
            encoder_decoder: None,
            diffusion: None,
            generation: None,
            mask_input: None,
            tensorrt_plugins: Vec::new(),
            further_inputs: Vec::new(),
        },
        dataset: Dataset {
            dir: String::new(),
            map: String::new(),
            source: None,
            total_samples,
            performance_samples,
        },
        prep: None,
        accuracy: Accuracy::of_classes(0.0, 1.0),
        mlperf_conf: BTreeMap::new(),
        downloads: Vec::new(),
        user_conf: BTreeMap::new(),
    }
}
