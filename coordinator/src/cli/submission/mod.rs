//! `regatta submission`: shows the progress of a submission; stages a tree of runs; infers, checks, truncates, packs and unpacks trees of any origin.
//! The work is
//! `crates/submission-check`'s and `crates/submission-stage`'s; here are its flags, reports and exit codes.

mod check;
mod infer;
pub(super) mod inputs;
mod package;
mod power_sessions;
mod stage;
mod status;
mod truncate;

use super::Context;
use crate::exit::CommandResult;

/// What can be done with a submission tree.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Show the complete and the missing parts of each result, and the next command
    #[command(disable_version_flag = true)]
    Status(status::Args),
    /// Create a submission tree from finished runs
    // `--version` is the round here, as in the official tools.
    #[command(disable_version_flag = true)]
    Stage(stage::Args),
    /// Add the results that the rules allow to be inferred from others
    #[command(disable_version_flag = true)]
    Infer(infer::Args),
    /// Check a submission, by the rules or as the official checker does
    #[command(disable_version_flag = true)]
    Check(check::Args),
    /// Truncate accuracy logs for submission, as the official script does
    #[command(disable_version_flag = true)]
    Truncate(truncate::Args),
    /// Create the encrypted package to submit
    Pack(package::PackArgs),
    /// Decrypt and unpack a package
    Unpack(package::UnpackArgs),
}

pub(super) fn run(command: &Command, context: &Context) -> CommandResult {
    match command {
        Command::Status(args) => status::run(args, context),
        Command::Stage(args) => stage::run(args, context),
        Command::Infer(args) => infer::run(args, context),
        Command::Check(args) => check::run(args, context),
        Command::Truncate(args) => truncate::run(args, context),
        Command::Pack(args) => package::pack(args, context),
        Command::Unpack(args) => package::unpack(args, context),
    }
}
