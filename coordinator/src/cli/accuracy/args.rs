//! The command line of `regatta accuracy`.

use std::path::PathBuf;

use regatta_accuracy::LabelType;

use crate::exit::Failure;

/// Flags of `accuracy`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The benchmark
    pub(super) benchmark: String,
    /// Accuracy logs; each is judged separately
    #[arg(long, value_name = "mlperf_log_accuracy.json", required = true, num_args = 1..)]
    pub(super) log: Vec<PathBuf>,
    /// The directory of the labels [default: the workspace's scratch directory, or MLPERF_SCRATCH_PATH]
    #[arg(long, value_name = "DIR")]
    pub(super) scratch: Option<PathBuf>,
    /// Type of the answers, as the official scripts spell it [default: the benchmark's]
    #[arg(long, value_name = "byte|float16|float32|int32|int64")]
    pub(super) dtype: Option<LabelType>,
    /// Run this reference script, too, and keep its output: beside the run for a run's log, otherwise beside the log
    #[arg(long, value_name = "SCRIPT")]
    pub(super) official: Option<PathBuf>,
    /// Write the script's output, accuracy.txt, to this directory instead
    #[arg(long, value_name = "DIR", requires = "official")]
    pub(super) keep: Option<PathBuf>,
    /// The interpreter for scripts that end in .py
    #[arg(
        long,
        value_name = "PYTHON",
        env = "REGATTA_PYTHON",
        default_value = "python3"
    )]
    pub(super) python: PathBuf,
    /// The script's options, with {log}, {map}, {scratch} and {out} filled in [default: those of the metric's usual script]
    #[arg(last = true, value_name = "OPTIONS", requires = "official")]
    pub(super) official_arguments: Vec<String>,
}

pub(super) fn no_scratch() -> Failure {
    Failure::misuse("where are the labels?")
        .hint("name the scratch directory with --scratch, or a workspace with --workspace")
}
