//! `regatta endpoints stage`: its flags and report.

use std::path::PathBuf;

use regatta_endpoints::StageRequest;
use regatta_types::{Division, ExitCode};
use serde_json::json;

use super::failure;
use crate::{cli::Context, exit::CommandResult};

/// Flags of `endpoints stage`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  regatta endpoints stage thor-1-qwen --division closed --submitter Example --system Thor \\
      --description Thor.json --measurements measurements.json --output submission")]
pub(in crate::cli) struct Args {
    /// The directory of the run
    run: PathBuf,
    /// The division
    #[arg(long, value_name = "closed|open|network")]
    division: Division,
    /// The submitter's name
    #[arg(long, value_name = "NAME")]
    submitter: String,
    /// The system's name
    #[arg(long, value_name = "NAME")]
    system: String,
    /// The system's description, as in `systems/` of a submission
    #[arg(long, value_name = "FILE.json")]
    description: PathBuf,
    /// The result's measurements.json: input and weight types, starting weights, their changes, retraining
    #[arg(long, value_name = "FILE.json")]
    measurements: PathBuf,
    /// The new directory for the tree
    #[arg(long, value_name = "NEWTREE")]
    output: PathBuf,
    /// Stage a run that is not a result, in a tree that is marked as a rehearsal
    #[arg(long)]
    rehearsal: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    let files = regatta_endpoints::stage(&StageRequest {
        run: &args.run,
        division: args.division,
        submitter: &args.submitter,
        system: &args.system,
        description: &args.description,
        measurements: &args.measurements,
        is_rehearsal: args.rehearsal,
        output: &args.output,
    });
    let files = files.map_err(failure)?;
    let document = json!({ "tree": args.output, "files": files });
    context.print(&document, || {
        let output = args.output.display();
        format!(
            "{} files are in {output}.\nnext: regatta submission check --input {output}",
            files.len()
        )
    })?;
    Ok(ExitCode::Success)
}
