//! `regatta engine build`: devices build the TensorRT engines of runs before these are requested. A build is a run that ends before LoadGen
//! starts.
//!
//! Engines stay on their device. `regatta-agent engine` lists and inspects them there.

use regatta_types::documents::{EngineKind, RunTask};

use super::{
    Context,
    device_job::{self, JobArgs},
};
use crate::exit::CommandResult;

/// Subcommands of `engine`.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Builds the TensorRT engines of a benchmark on devices, those that are not there yet
    Build(Box<BuildArgs>),
}

/// Flags of `engine build`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  regatta engine build --device boat-1 --benchmark resnet50 --scenario Offline,SingleStream
      what runs of both scenarios on boat-1 need, with the settings of its system
  regatta engine build --device-label orin-nx --benchmark resnet50 --scenario Offline --set gpu_batch_size=64
      on every device with this label, for another batch size")]
pub(super) struct BuildArgs {
    #[command(flatten)]
    job: JobArgs,
}

pub(super) fn run(command: &Command, context: &Context) -> CommandResult {
    let Command::Build(args) = command;
    let words = args.job.words(RunTask::EngineBuild, EngineKind::Tensorrt);
    device_job::request(&args.job, words, context)
}
