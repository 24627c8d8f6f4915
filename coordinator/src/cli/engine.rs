//! `regatta engine build|calibrate|inspect|list|remove`: lets devices build the TensorRT engines of runs in advance, calibrate INT8, and describe,
//! list and remove their engines. All commands except `list` are runs that end before LoadGen starts. Engines stay on their device.

use regatta_types::{
    EngineKind,
    documents::RunTask,
    engine_settings::{EngineBuild, EnginePrecision, EngineSettings},
};

use super::{
    Context,
    device_job::{self, JobArgs},
    engine_cache,
};
use crate::exit::{CommandResult, Failure};
use regatta_lab_runs::RunRequestInput;

/// Subcommands of `engine`.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Build the TensorRT engines of a benchmark on devices that do not have them yet
    Build(Box<BuildArgs>),
    /// Calibrate on each device and build an INT8 engine; the calibration cache is among the run's files
    Calibrate(Box<CalibrateArgs>),
    /// Describe the engines of a benchmark's model on devices, with their layers
    Inspect(Box<InspectArgs>),
    /// List the engines in a device's cache
    List(engine_cache::ListArgs),
    /// Remove engines from a device's cache
    Remove(engine_cache::RemoveArgs),
}

/// Flags of `engine build`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  regatta engine build --device boat-1 --benchmark resnet50 --scenario Offline,SingleStream
      build what runs of both scenarios need on boat-1, with the settings of its system
  regatta engine build --device-label orin-nx --benchmark resnet50 --scenario Offline --set gpu_batch_size=64
      build on every device with this label, for another batch size
  regatta engine build --device boat-1 --benchmark resnet50 --scenario Offline --force-calibration
      calibrate again with the prepared samples, and build the engine with the new scales")]
pub(super) struct BuildArgs {
    #[command(flatten)]
    job: JobArgs,
    /// Calibrate INT8 again, although the devices have scales and engines of the same samples
    #[arg(long)]
    force_calibration: bool,
}

/// Flags of `engine calibrate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  regatta prep resnet50 --data imagenet --calibration cal_image_list_option_1.txt
  regatta asset add preprocessed_data/imagenet/ResNet50/cal_image_list_option_1_fp32_linear
  regatta engine calibrate --device boat-1 --benchmark resnet50 --scenario Offline \
      --samples preprocessed_data/imagenet/ResNet50/cal_image_list_option_1_fp32_linear
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
    let (job, input) = match command {
        Command::Build(args) => {
            let mut input = args.job.input(RunTask::EngineBuild, Some(EngineKind::Tensorrt))?;
            if args.force_calibration {
                input.set.engine_build = Some(EngineBuild::Recalibrate);
            }
            (&args.job, input)
        }
        Command::Calibrate(args) => (&args.job, args.input()?),
        Command::List(args) => return engine_cache::list(args, context),
        Command::Remove(args) => return engine_cache::remove(args, context),
        Command::Inspect(args) => {
            let input = args
                .job
                .input(RunTask::EngineInspection, Some(EngineKind::Tensorrt))?;
            (&args.job, input)
        }
    };
    device_job::request(job, input, context)
}

impl CalibrateArgs {
    /// Returns the request of an INT8 build whose calibration samples are an asset.
    fn input(&self) -> Result<RunRequestInput, Failure> {
        let engine = EngineKind::Tensorrt;
        // The settings of a board may select other engines, which use no scales.
        let samples = [
            ("calibration", self.samples.as_str()),
            ("precision", EnginePrecision::Int8.as_str()),
        ];
        let samples = EngineSettings::parse(engine, samples).map_err(Failure::usage)?;
        let mut input = self.job.input(RunTask::EngineBuild, Some(engine))?;
        if let Some(other) = input.set.precision.filter(|own| *own != EnginePrecision::Int8) {
            return Err(Failure::misuse(format!(
                "calibration finds scales of int8 engines, and `--set precision={}` requests others",
                other.as_str()
            ))
            .hint("leave the setting out; `regatta engine build` builds engines of every precision"));
        }
        input.set = samples.or(input.set);
        input.asset.push(self.samples.clone());
        Ok(input)
    }
}
