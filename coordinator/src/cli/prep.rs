//! `regatta prep`: a data set as published becomes samples as LoadGen's harness reads them.

use std::path::PathBuf;

use indicatif::ProgressBar;
use regatta_prep::{PrepError, PrepReport, bundled, prepare, raw_data_dir};
use serde::Serialize;

use super::Context;
use crate::{
    exit::{self, Failure, Outcome},
    runs::Catalogue,
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
}

#[derive(Serialize)]
struct Document<'a> {
    benchmark: &'a str,
    samples: usize,
    unchanged: usize,
    dir: PathBuf,
    map: PathBuf,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let workspace = context.open_if_there()?;
    let catalogue = Catalogue::read(workspace.as_ref()).map_err(Failure::usage)?;
    let benchmark = catalogue.benchmark(&args.benchmark).map_err(Failure::usage)?;
    let out = match (&args.out, &workspace) {
        (Some(out), _) => out.clone(),
        (None, Some(workspace)) => workspace.scratch(),
        (None, None) => {
            return Err(Failure::misuse("nobody said where the samples belong")
                .way_out("name the scratch directory with --out or MLPERF_SCRATCH_PATH, or a workspace with --workspace"));
        }
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
        dir,
        map,
    } = match &args.data {
        Some(data) => prepare(benchmark, data, &out, &mut progress),
        None if bundled::holds(benchmark) => bundled::install(benchmark, &out, &mut progress),
        None => prepare(benchmark, &raw_data_dir(benchmark, &out), &out, &mut progress),
    }
    .map_err(|error| match error {
        PrepError::NoRecipe { .. } | PrepError::Recipe { .. } => Failure::usage(error),
        error => error.into(),
    })?;
    bar.finish_and_clear();
    let document = Document {
        benchmark: &benchmark.name,
        samples,
        unchanged,
        dir,
        map,
    };
    context.print(&document, || {
        format!(
            "{samples} samples of {} in {} ({unchanged} were there already)\nlabels in {}",
            document.benchmark,
            document.dir.display(),
            document.map.display()
        )
    })?;
    Ok(exit::OK)
}
