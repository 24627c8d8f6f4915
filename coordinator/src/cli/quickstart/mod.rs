//! `regatta quickstart`: runs coordinator and agent on this machine. The bundled benchmark goes through every scenario, its
//! audits, and a rehearsal of the submission. On request it rehearses a power session, too. It is `serve`, `run`, `audit run` and
//! `submission` with the steps between them done. It measures nothing itself.

mod agent;
mod audits;
mod compare;
mod flow;
mod power;
mod quickstart_directory;
mod rehearsal;
mod report;
mod subject;

use std::path::PathBuf;

pub(super) use agent::find_or_build;

use regatta_text::HumanDuration;

use super::{
    Context,
    context::{Format, tell},
};
use crate::exit::CommandResult;

/// Flags of `quickstart`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The directory in which coordinator and device keep their files
    #[arg(long, value_name = "DIR", default_value = "regatta-quickstart")]
    dir: PathBuf,
    /// Length of each run
    #[arg(long, value_name = "DURATION", default_value = "3s")]
    duration: HumanDuration,
    /// Keep coordinator and agent running until Ctrl-C
    #[arg(long)]
    keep: bool,
    /// Also rehearse a power session, with the official programs and a simulated PTDaemon
    #[arg(long)]
    power: bool,
    /// A copy of mlcommons/power-dev, for --power
    #[arg(long, value_name = "DIR", env = "REGATTA_POWER_DEV")]
    power_dev: Option<PathBuf>,
}

pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    let power_dev = match args.power {
        true => Some(power::find_programs(args.power_dev.as_deref())?),
        false => None,
    };
    let options = flow::Options {
        dir: args.dir.clone(),
        duration: args.duration,
        keep: args.keep,
        power_dev,
        lively: context.is_lively(),
        json: context.format == Format::Json,
    };
    flow::run(&options, tell)
}
