//! `regatta tune`: lets devices search for the engine settings that run a benchmark best. The search is `regatta-agent tune` in a separate run;
//! the systems file that it writes is one of the run's files.

use regatta_text::HumanDuration;
use regatta_types::documents::{EngineKind, RunTask, TUNING_TIME};

use super::{
    Context,
    device_job::{self, JobArgs},
};
use crate::exit::CommandResult;
use regatta_lab_runs::vocabulary;
use regatta_lab_store::SystemChoice;

/// Flags of `tune`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  regatta tune --device boat-1 --benchmark resnet50 --scenario Offline --engine tensorrt --time 2h
      write runs/ID/files/tuned.toml; `regatta run --system runs/ID/files/tuned.toml` uses the settings that it found")]
pub(super) struct Args {
    #[command(flatten)]
    job: JobArgs,
    /// The engine [default: the best that each device has: tensorrt, else tract]
    #[arg(long, value_parser = vocabulary::engine(), ignore_case = true)]
    engine: Option<EngineKind>,
    /// How long each device searches for the best settings of each scenario
    #[arg(long, value_name = "DURATION", default_value = TUNING_TIME)]
    time: HumanDuration,
}

pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    let mut input = args.job.input(RunTask::Tune, args.engine)?;
    input.duration = Some(args.time);
    // The values of a system would stay fixed.
    input.system = input.system.or(Some(SystemChoice::None));
    device_job::request(&args.job, input, context)
}
