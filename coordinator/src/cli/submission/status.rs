//! `regatta submission status`: shows the complete and the missing parts of each result of a submission, and the next command.

use regatta_catalogue::{catalogue::Catalogue, round::SystemCategory};
use regatta_types::{ExitCode, benchmark::Benchmark};

use super::super::{Context, target_devices::TargetDevices};
use crate::{
    exit::{CommandResult, Failure},
    tables,
};
use regatta_lab_views::submission_status::{StatusRequest, submission_status};

/// Flags of `submission status`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  regatta submission status
      every benchmark that was measured on any device
  regatta submission status --device boat-1 --benchmark resnet50,retinanet
      these benchmarks on one device, measured or not")]
pub(crate) struct Args {
    /// The round [default: the newest]
    #[arg(long, alias = "version", value_name = "vX.Y")]
    round: Option<String>,
    /// The category of the systems: edge, datacenter or datacenter,edge
    #[arg(long, default_value_t)]
    category: SystemCategory,
    #[command(flatten)]
    devices: TargetDevices,
    /// The benchmarks, comma separated [default: all that were measured]
    #[arg(long, value_delimiter = ',')]
    benchmark: Vec<String>,
}

/// Prints the progress of a submission. The exit code is 1 unless every result is complete.
pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let catalogue = Catalogue::read(Some(&workspace.configs())).map_err(Failure::usage)?;
    let benchmarks: Vec<&Benchmark> = args
        .benchmark
        .iter()
        .map(|name| catalogue.benchmark(name).map_err(Failure::usage))
        .collect::<Result<_, _>>()?;
    let request = StatusRequest {
        round: catalogue.round(args.round.as_deref()).map_err(Failure::usage)?,
        category: args.category,
        devices: &args.devices.find(true, &store)?,
        benchmarks: &benchmarks,
        power: None,
    };
    let status = submission_status(&request, &catalogue, &store)?;
    context.print(&status, || tables::submission_status(&status))?;
    Ok(if status.is_complete() {
        ExitCode::Success
    } else {
        ExitCode::Negative
    })
}
