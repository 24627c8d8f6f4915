//! `regatta accuracy`: judges logged answers, of our runs or of anybody's.

use std::path::{Path, PathBuf};

use regatta_prep::accuracy::LabelType;
use regatta_rules::documents::AccuracyResult;

use super::Context;
use crate::{
    exit::{self, Failure, Outcome},
    runs::{Catalogue, judge_accuracy},
    workspace::Workspace,
};

/// Flags of `accuracy`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The benchmark
    benchmark: String,
    /// Accuracy logs; each is judged by itself
    #[arg(long, value_name = "mlperf_log_accuracy.json", required = true, num_args = 1..)]
    log: Vec<PathBuf>,
    /// Where the labels lie [default: the workspace's scratch directory, or MLPERF_SCRATCH_PATH]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// Type of the answers, as the official scripts spell it [default: the benchmark's]
    #[arg(long, value_name = "byte|float32|int32|int64")]
    dtype: Option<LabelType>,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let workspace = context.open_if_there()?;
    let catalogue = Catalogue::read(workspace.as_ref()).map_err(Failure::usage)?;
    let benchmark = catalogue.benchmark(&args.benchmark).map_err(Failure::usage)?;
    let scratch = labels(args.scratch.as_deref(), workspace.as_ref())?;
    let mut found = Vec::with_capacity(args.log.len());
    for log in &args.log {
        found.push(judge_accuracy(benchmark, args.dtype, &scratch, log)?);
    }
    context.print(&serde_json::json!({ "accuracy": found }), || {
        found.iter().map(line).collect::<Vec<_>>().join("\n")
    })?;
    Ok(if found.iter().all(is_reached) {
        exit::OK
    } else {
        exit::NO
    })
}

/// Where the labels lie: what was named, else the workspace's scratch directory, else `MLPERF_SCRATCH_PATH`.
pub(super) fn labels(named: Option<&Path>, workspace: Option<&Workspace>) -> Result<PathBuf, Failure> {
    named
        .map(Path::to_owned)
        .or_else(|| workspace.map(Workspace::scratch))
        .or_else(|| std::env::var_os("MLPERF_SCRATCH_PATH").map(PathBuf::from))
        .ok_or_else(|| {
            Failure::misuse("where do the labels lie?")
                .way_out("name the scratch directory with --scratch, or a workspace with --workspace")
        })
}

fn is_reached(found: &AccuracyResult) -> bool {
    found.target.is_none_or(|target| found.value >= target)
}

/// The official script's own line, and whether that suffices.
fn line(found: &AccuracyResult) -> String {
    format!(
        "accuracy={:.3}%, good={}, total={}; target {:.3}%: {}",
        found.value,
        found.correct.unwrap_or(0),
        found.total,
        found.target.unwrap_or(0.0),
        if is_reached(found) { "reached" } else { "missed" }
    )
}
