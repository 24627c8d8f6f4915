//! Which benchmark `bench` runs: a file of the user's, one that came with the program, or a bare name with counts for
//! engines that look at no data.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context, anyhow};
use regatta_config::known;
use regatta_fsutil::regular_file;
use regatta_types::{
    benchmark::{Accuracy, Benchmark, Dataset, Dtype, Metric, Model, Response},
    documents::EngineKind,
    layout::Layout,
    samples::{Form, SampleSet},
};

use crate::exit::Failure;

/// What the flags say of the benchmark.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named<'a> {
    /// The engine.
    pub(crate) sut: EngineKind,
    /// The benchmark's name.
    pub(crate) model: &'a str,
    /// A file that describes it.
    pub(crate) file: Option<&'a Path>,
    /// Samples in the whole set, and those that are loaded together.
    pub(crate) counts: Option<(usize, usize)>,
}

/// The benchmark that the flags name, with their sample counts where they give any.
///
/// # Errors
/// [`Failure`] when nothing has that name, the file does not read, or counts are given for an engine that has a dataset.
pub(crate) fn benchmark(args: &Named<'_>) -> Result<Benchmark, Failure> {
    let counts = args.counts;
    if counts.is_some() && args.sut.computes() {
        let reason = anyhow!(
            "the {} engine takes its sample counts from the dataset: leave out --total-samples",
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
        Some(file) => Some(from_file(file, args.model)?),
        None => from_program(args.model)?,
    };
    match (found, counts) {
        (Some(benchmark), None) => Ok(benchmark),
        (Some(mut benchmark), Some((total, performance))) => {
            benchmark.dataset.total_samples = total;
            benchmark.dataset.performance_samples = performance;
            Ok(benchmark)
        }
        (None, Some((total, performance))) => Ok(nameless(args.model, total, performance)),
        (None, None) => Err(Failure::usage(unknown(args)?)),
    }
}

/// The benchmark over samples of the form that the settings of an engine ask for: where they are prepared, and where engines
/// do not convert the benchmark's own.
///
/// # Errors
/// [`Failure`] when its samples cannot have that form.
pub(crate) fn in_form(
    benchmark: Benchmark,
    sut: EngineKind,
    settings: &BTreeMap<String, String>,
    scratch: Option<&Path>,
) -> Result<Benchmark, Failure> {
    let own = benchmark.form();
    // Words that are none are told with all other settings.
    let asked = Form::asked(settings, own).ok().flatten();
    let Some(asked) = asked.filter(|&asked| sut == EngineKind::Tensorrt && asked != own) else {
        return Ok(benchmark);
    };
    match benchmark.in_form(asked) {
        // Described as they lie: the engine holds them against its input.
        Err(_) if own.dtype == asked.dtype => Ok(benchmark),
        Err(error) => Err(Failure::usage(error)),
        Ok(changed) => {
            let directory = scratch.unwrap_or(Path::new("")).join(&changed.dataset.dir);
            let is_made = directory.join(SampleSet::FILE).is_file();
            Ok(if own.converts_to(asked) && !is_made {
                benchmark
            } else {
                changed
            })
        }
    }
}

/// The benchmark that a file describes.
///
/// # Errors
/// [`Failure`] when it cannot be read, or describes none.
pub(crate) fn benchmark_in(path: &Path) -> Result<Benchmark, Failure> {
    let text = regular_file::read_text(path)
        .with_context(|| format!("the benchmark file {} cannot be read", path.display()))?;
    Benchmark::from_toml(&text).map_err(|error| {
        let before = error
            .span()
            .and_then(|span| text.get(..span.start))
            .unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        Failure::usage(anyhow!(
            "{} line {line}: no benchmark's description: {}",
            path.display(),
            error.message()
        ))
    })
}

fn from_file(path: &Path, model: &str) -> Result<Benchmark, Failure> {
    let benchmark = benchmark_in(path)?;
    if benchmark.is_called(model) {
        return Ok(benchmark);
    }
    let (file, name) = (path.display(), &benchmark.name);
    Err(Failure::usage(anyhow!(
        "{file} describes {name}, but --model is {model}"
    )))
}

fn from_program(name: &str) -> Result<Option<Benchmark>, Failure> {
    let known = known::benchmarks().map_err(Failure::could_not)?;
    Ok(known.into_iter().find(|benchmark| benchmark.is_called(name)))
}

fn unknown(args: &Named<'_>) -> Result<anyhow::Error, Failure> {
    let known = known::benchmarks().map_err(Failure::could_not)?;
    let names: Vec<_> = known.into_iter().map(|benchmark| benchmark.name).collect();
    let way_out = if args.sut.computes() {
        "describe your own with --benchmark-file"
    } else {
        "describe your own with --benchmark-file, or give --total-samples and --performance-samples"
    };
    Ok(anyhow!(
        "unknown benchmark `{}`; known are {}; {way_out}",
        args.model,
        names.join(", ")
    ))
}

/// A benchmark of which only name and counts matter: for comparing LoadGens under any model's settings.
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
            further_inputs: Vec::new(),
        },
        dataset: Dataset {
            dir: String::new(),
            map: String::new(),
            total_samples,
            performance_samples,
        },
        prep: None,
        accuracy: Accuracy {
            metric: Metric::Top1,
            reference: 0.0,
            factor: 1.0,
        },
        mlperf_conf: BTreeMap::new(),
        user_conf: BTreeMap::new(),
    }
}
