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
pub(super) enum Command {
    /// Repeats finished runs under the round's audits, on their device, and verifies the results
    Run(run::Args),
    /// Compares an audit's run with the submission's, and writes the audit's directory
    Verify(verify_args::Args),
}

pub(super) fn run(command: &Command, context: &Context) -> CommandResult {
    match command {
        Command::Run(args) => run::run(args, context),
        Command::Verify(args) => verify::run(args, context),
    }
}
