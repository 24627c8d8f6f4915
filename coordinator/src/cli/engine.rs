//! `regatta engine build|calibrate|inspect`: devices build the TensorRT engines of runs before these are requested, calibrate INT8, and
//! describe the engines that they have. Each is a run that ends before LoadGen starts. Engines stay on their device.

use regatta_types::documents::{EngineKind, RunTask};

use super::{
    Context,
    device_job::{self, JobArgs},
};
use crate::exit::CommandResult;
use regatta_lab_runs::Words;

/// Subcommands of `engine`.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Build the TensorRT engines of a benchmark on devices that do not have them yet
    Build(Box<BuildArgs>),
    /// Calibrate on each device and build an INT8 engine; the calibration cache is among the run's files
    Calibrate(Box<CalibrateArgs>),
    /// Describe the engines of a benchmark's model on devices, with their layers
    Inspect(Box<InspectArgs>),
}

/// Flags of `engine build`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  regatta engine build --device boat-1 --benchmark resnet50 --scenario Offline,SingleStream
      build what runs of both scenarios need on boat-1, with the settings of its system
  regatta engine build --device-label orin-nx --benchmark resnet50 --scenario Offline --set gpu_batch_size=64
      build on every device with this label, for another batch size")]
pub(super) struct BuildArgs {
    #[command(flatten)]
    job: JobArgs,
}

/// Flags of `engine calibrate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  regatta prep resnet50 --data imagenet --calibration cal_image_list_option_1.txt
  regatta asset add preprocessed_data/imagenet/ResNet50/calibration/fp32
  regatta engine calibrate --device boat-1 --benchmark resnet50 --scenario Offline --samples preprocessed_data/imagenet/ResNet50/calibration/fp32
      write runs/ID/files/calibration-KEY.cache; runs with `--set calibration=PATH` use the engine")]
pub(super) struct CalibrateArgs {
    #[command(flatten)]
    job: JobArgs,
    /// The calibration samples, relative to the scratch directory: the output of `regatta prep --calibration`, or a .npy file; an
    /// asset of the run
    #[arg(long, value_name = "PATH")]
    samples: String,
}

/// Flags of `engine inspect`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  regatta engine inspect --device boat-1 --benchmark resnet50 --scenario Offline
      write runs/ID/files/engines.json: batch, precision, tensors, layers, and whether TensorRT runs them there")]
pub(super) struct InspectArgs {
    #[command(flatten)]
    job: JobArgs,
}

pub(super) fn run(command: &Command, context: &Context) -> CommandResult {
    let (job, words) = match command {
        Command::Build(args) => {
            let words = args.job.words(RunTask::EngineBuild, EngineKind::Tensorrt);
            (&args.job, words)
        }
        Command::Calibrate(args) => (&args.job, args.words()),
        Command::Inspect(args) => {
            let words = args.job.words(RunTask::EngineInspection, EngineKind::Tensorrt);
            (&args.job, words)
        }
    };
    device_job::request(job, words, context)
}

impl CalibrateArgs {
    /// Returns the words of an INT8 build whose calibration samples are an asset.
    fn words(&self) -> Words {
        let mut words = self.job.words(RunTask::EngineBuild, EngineKind::Tensorrt);
        words.set.insert("calibration".to_owned(), self.samples.clone());
        words.asset.push(self.samples.clone());
        words
    }
}
