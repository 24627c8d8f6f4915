//! `regatta audit`: runs audits (compliance tests) on devices, and verifies audits of any origin as the round's official scripts do.

mod accuracies;
mod run;
mod verification_input;
mod verify;
mod verify_args;

use super::Context;
use crate::exit::CommandResult;

/// What can be done with audits.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = "\
Examples:
  regatta audit run --benchmark resnet50 --device boat-1
      every audit that the round requires, in each scenario with a valid performance run
  regatta audit verify TEST01 --run last
      verify the newest run once more, and store the verdict in its record")]
pub(super) enum Command {
    /// Repeat finished runs under the round's audits, on their device, and verify the results
    Run(run::Args),
    /// Compare an audit's run with the submission's run, and write the directory of the audit
    Verify(verify_args::Args),
}

pub(super) fn run(command: &Command, context: &Context) -> CommandResult {
    match command {
        Command::Run(args) => run::run(args, context),
        Command::Verify(args) => verify::run(args, context),
    }
}
