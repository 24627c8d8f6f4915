//! The command line of `regatta accuracy`, and the logs that it names.

use std::{collections::BTreeSet, path::PathBuf};

use regatta_accuracy::LabelType;
use regatta_types::{Mode, RunId, documents::RunPhase};

use super::super::Context;
use crate::exit::Failure;
use regatta_lab_store::{RunRow, workspace::Workspace};
use regatta_lab_views::{lookup, wording::run_text};

/// The file of a run's responses.
const ACCURACY_LOG: &str = "mlperf_log_accuracy.json";

/// Flags of `accuracy`.
#[derive(Debug, clap::Args)]
#[command(override_usage = "\
regatta accuracy [OPTIONS] <RUN>... | --all [-- <OPTIONS>...]
       regatta accuracy [OPTIONS] <BENCHMARK> --log <FILE>... [-- <OPTIONS>...]")]
#[command(after_help = "\
Examples:
  regatta accuracy last
      the accuracy of the newest run
  regatta accuracy --all --benchmark resnet50 --official accuracy-imagenet.py
      every accuracy run of a benchmark, with the reference script, whose output a submission needs
  regatta accuracy resnet50 --log mlperf_log_accuracy.json
      a log that does not belong to a run")]
pub(in crate::cli) struct Args {
    /// Run ids, their beginnings or ends, or `last`; with --log, the benchmark
    #[arg(value_name = "RUN|BENCHMARK", required_unless_present = "all")]
    run: Vec<String>,
    /// Every recorded accuracy run
    #[arg(long, conflicts_with_all = ["run", "log"])]
    all: bool,
    /// With --all, only runs of this benchmark
    #[arg(long, value_name = "BENCHMARK", requires = "all")]
    benchmark: Option<String>,
    /// Accuracy logs of the benchmark; each is judged separately
    #[arg(long, value_name = "FILE", num_args = 1..)]
    log: Vec<PathBuf>,
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

/// A log of responses.
#[derive(Debug)]
pub(super) struct AccuracyLog {
    /// The run, and its subject in words.
    pub(super) run: Option<(RunId, String)>,
    pub(super) benchmark: String,
    pub(super) path: PathBuf,
}

impl Args {
    /// Returns the logs that the user named: of one benchmark, if its script judges them too.
    pub(super) fn logs(&self, context: &Context) -> Result<Vec<AccuracyLog>, Failure> {
        let logs = self.named_logs(context)?;
        let benchmarks: BTreeSet<&str> = logs.iter().map(|log| log.benchmark.as_str()).collect();
        if self.official.is_some() && benchmarks.len() > 1 {
            let benchmarks: Vec<&str> = benchmarks.into_iter().collect();
            return Err(Failure::misuse(format!(
                "--official is the script of one benchmark, and the runs are of {}",
                benchmarks.join(", ")
            ))
            .hint("`--all --benchmark NAME` selects those of one"));
        }
        Ok(logs)
    }

    fn named_logs(&self, context: &Context) -> Result<Vec<AccuracyLog>, Failure> {
        if !self.log.is_empty() {
            let [benchmark] = self.run.as_slice() else {
                return Err(Failure::misuse("--log needs exactly one benchmark"));
            };
            let logs = self.log.iter().map(|path| AccuracyLog {
                run: None,
                benchmark: benchmark.clone(),
                path: path.clone(),
            });
            return Ok(logs.collect());
        }
        let (workspace, store) = context.open_store()?;
        if self.all {
            let mut rows = store.runs().all()?;
            let is_selected =
                |row: &RunRow| self.benchmark.as_ref().is_none_or(|name| *name == row.benchmark);
            rows.retain(|row| {
                is_selected(row) && row.state.phase == RunPhase::Done && log_of(row, &workspace).is_some()
            });
            rows.reverse();
            if rows.is_empty() {
                let of_which = self
                    .benchmark
                    .as_ref()
                    .map_or(String::new(), |name| format!(" of {name}"));
                return Err(
                    Failure::misuse(format!("no recorded run{of_which} has an accuracy log"))
                        .hint("`regatta run --mode AccuracyOnly` writes one"),
                );
            }
            return Ok(rows.iter().filter_map(|row| log_of(row, &workspace)).collect());
        }
        let rows = lookup::runs(&store, &self.run)?;
        rows.iter()
            .map(|row| {
                log_of(row, &workspace).ok_or_else(|| {
                    Failure::misuse(format!(
                        "run {} has no accuracy log: it is {}",
                        row.id,
                        run_text::subject(row)
                    ))
                    .hint("runs in mode AccuracyOnly have one")
                })
            })
            .collect()
    }
}

/// Returns the accuracy log of a run that writes all responses.
fn log_of(row: &RunRow, workspace: &Workspace) -> Option<AccuracyLog> {
    let path = workspace.run(row.id).files().join(ACCURACY_LOG);
    let has_all = !row.mode.has_verdict() || row.mode == Mode::SubmissionRun;
    (has_all && path.is_file()).then(|| AccuracyLog {
        run: Some((row.id, run_text::subject(row))),
        benchmark: row.benchmark.clone(),
        path,
    })
}

pub(super) fn no_scratch() -> Failure {
    Failure::misuse("where are the labels?")
        .hint("name the scratch directory with --scratch, or a workspace with --workspace")
}
