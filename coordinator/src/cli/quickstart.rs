//! `regatta quickstart`: the whole flow on this machine.

use std::path::PathBuf;

use super::{
    Context,
    context::{Format, tell},
};
use crate::{
    exit::{Failure, Outcome},
    quickstart,
};
use regatta_text::HumanDuration;

/// Flags of `quickstart`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Where to lay coordinator and device
    #[arg(long, value_name = "DIR", default_value = "regatta-quickstart")]
    dir: PathBuf,
    /// Length of each run
    #[arg(long, value_name = "T", default_value = "3s")]
    duration: String,
    /// Let coordinator and agent go on until Ctrl-C
    #[arg(long)]
    keep: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    args.duration.parse::<HumanDuration>().map_err(Failure::usage)?;
    let options = quickstart::Options {
        dir: args.dir.clone(),
        duration: args.duration.clone(),
        keep: args.keep,
        lively: context.is_lively(),
        json: context.format == Format::Json,
    };
    quickstart::run(&options, tell)
}
