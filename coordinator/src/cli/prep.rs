//! `regatta prep`: a data set as published becomes samples as LoadGen's harness reads them, in the type and layout that an engine
//! wants.

use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use regatta_config::catalogue::Catalogue;
use regatta_prep::{
    PrepError, PrepReport, bundled, convert_samples, prepare, raw_data_dir, read_calibration_scale,
};
use regatta_types::{
    benchmark::{Benchmark, Dtype},
    layout::Layout,
    samples::{Form, Quantised, Rounding},
};
use serde::Serialize;

use super::Context;
use crate::{
    exit::{self, CommandResult, Failure},
    workspace::Workspace,
};

/// Flags of `prep`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The benchmark
    benchmark: String,
    /// Where the data set lies as published [default: data/BENCHMARK below --out; what comes with Regatta lays itself there]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The scratch directory, as MLPERF_SCRATCH_PATH names it [default: the workspace's]
    #[arg(long, value_name = "DIR", env = "MLPERF_SCRATCH_PATH")]
    out: Option<PathBuf>,
    /// Type of the samples: fp32, fp16 or int8 [default: the benchmark's]
    #[arg(long, value_name = "TYPE")]
    dtype: Option<Dtype>,
    /// Layout of the samples, such as linear or chw4 [default: linear]
    #[arg(long, value_name = "LAYOUT")]
    layout: Option<Layout>,
    /// int8: what one step stands for
    #[arg(long, conflicts_with = "calibration_cache")]
    scale: Option<f32>,
    /// int8: the calibration cache of TensorRT that holds the scale
    #[arg(long, value_name = "FILE")]
    calibration_cache: Option<PathBuf>,
    /// The name of the network's input in that cache [default: the benchmark's input_name]
    #[arg(long, value_name = "NAME", requires = "calibration_cache")]
    tensor: Option<String>,
    /// int8: what becomes of fractions; NVIDIA's preprocessing cuts them off for images and rounds for volumes
    /// [default: toward-zero]
    #[arg(long, value_name = "toward-zero|nearest", value_parser = rounding)]
    rounding: Option<Rounding>,
}

fn rounding(word: &str) -> Result<Rounding, String> {
    match word {
        "toward-zero" => Ok(Rounding::TowardZero),
        "nearest" => Ok(Rounding::Nearest),
        _ => Err("known are toward-zero, nearest".to_owned()),
    }
}

#[derive(Serialize)]
struct Document<'a> {
    benchmark: &'a str,
    form: String,
    samples: usize,
    unchanged: usize,
    clipped: u64,
    dir: PathBuf,
    map: PathBuf,
}

pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    let workspace = context.open_if_there()?;
    let catalogue =
        Catalogue::read(workspace.as_ref().map(Workspace::configs).as_deref()).map_err(Failure::usage)?;
    let benchmark = catalogue.benchmark(&args.benchmark).map_err(Failure::usage)?;
    let out = match (&args.out, &workspace) {
        (Some(out), _) => out.clone(),
        (None, Some(workspace)) => workspace.scratch(),
        (None, None) => {
            return Err(Failure::misuse("nobody said where the samples belong")
                .hint("name the scratch directory with --out or MLPERF_SCRATCH_PATH, or a workspace with --workspace"));
        }
    };
    let form = match (args.dtype, args.layout) {
        (None, None) => benchmark.form(),
        (dtype, layout) => Form::new(
            dtype.unwrap_or(benchmark.model.input_dtype),
            layout.unwrap_or_default(),
        ),
    };
    let bar = if context.is_lively() {
        ProgressBar::new(0)
    } else {
        ProgressBar::hidden()
    };
    let mut progress = |done: usize, of: usize| {
        bar.set_length(of as u64);
        bar.set_position(done as u64);
    };
    let PrepReport {
        samples,
        unchanged,
        clipped,
        dir,
        map,
    } = make(args, benchmark, form, &out, &mut progress)?;
    bar.finish_and_clear();
    let document = Document {
        benchmark: &benchmark.name,
        form: form.to_string(),
        samples,
        unchanged,
        clipped,
        dir,
        map,
    };
    context.print(&document, || text(&document, benchmark))?;
    Ok(exit::OK)
}

/// The benchmark's own samples, or others made of them; the own ones are made first where they are not there.
fn make(
    args: &Args,
    benchmark: &Benchmark,
    form: Form,
    out: &Path,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<PrepReport, Failure> {
    let quantised = quantised(args, benchmark)?;
    let is_own = form == benchmark.form();
    if is_own && quantised.is_some() {
        return Err(failure(PrepError::Scale { form }));
    }
    if !is_own {
        benchmark.in_form(form).map_err(Failure::usage)?;
    }
    let is_there = out.join(&benchmark.dataset.map).is_file();
    if is_own || (!is_there && benchmark.prep.is_some()) {
        let report = match &args.data {
            Some(data) => prepare(benchmark, data, out, progress),
            None if bundled::contains(benchmark) => bundled::install(benchmark, out, progress),
            None => prepare(benchmark, &raw_data_dir(benchmark, out), out, progress),
        };
        let report = report.map_err(failure)?;
        if is_own {
            return Ok(report);
        }
    }
    convert_samples(benchmark, form, quantised.as_ref(), out, progress).map_err(failure)
}

/// How bytes are made, where the flags say it.
fn quantised(args: &Args, benchmark: &Benchmark) -> Result<Option<Quantised>, Failure> {
    let (scale, source) = match (args.scale, &args.calibration_cache) {
        (Some(scale), _) if scale.is_normal() && scale > 0.0 => (scale, "given".to_owned()),
        (Some(scale), _) => {
            return Err(Failure::misuse(format!(
                "a scale is a positive number, not {scale}"
            )));
        }
        (None, Some(cache)) => {
            let tensor = args.tensor.as_ref().or(benchmark.model.input_name.as_ref());
            let tensor = tensor.ok_or_else(|| {
                Failure::misuse("the calibration cache has a scale for every tensor")
                    .hint("name the network's input with --tensor")
            })?;
            let scale = read_calibration_scale(cache, tensor)
                .map_err(PrepError::from)
                .map_err(failure)?;
            let file = cache.file_name().unwrap_or_default().to_string_lossy();
            (scale, format!("{file}: {tensor}"))
        }
        (None, None) if args.rounding.is_some() => {
            return Err(Failure::misuse("--rounding goes with a scale"));
        }
        (None, None) => return Ok(None),
    };
    Ok(Some(Quantised {
        scale,
        rounding: args.rounding.unwrap_or_default(),
        source,
    }))
}

fn failure(error: PrepError) -> Failure {
    match error {
        PrepError::NoPrepSection { .. }
        | PrepError::UnsupportedSettings { .. }
        | PrepError::Form(_)
        | PrepError::Scale { .. }
        | PrepError::Cache(_) => Failure::usage(error),
        error => error.into(),
    }
}

fn text(made: &Document<'_>, benchmark: &Benchmark) -> String {
    let (samples, unchanged) = (made.samples, made.unchanged);
    let mut text = format!(
        "{samples} samples of {} as {} in {} ({unchanged} were there already)",
        made.benchmark,
        made.form,
        made.dir.display()
    );
    if !benchmark.dataset.map.is_empty() {
        text.push_str(&format!("\nlabels in {}", made.map.display()));
    }
    if made.clipped > 0 {
        text.push_str(&format!(
            "\n{} numbers lay beyond the type's range and were held at its end: is the scale right?",
            made.clipped
        ));
    }
    text
}
