//! `regatta endpoints stage`: its flags and report.

use std::path::PathBuf;

use regatta_endpoints::{StageRequest, StageTree};
use regatta_types::{Division, ExitCode};
use serde_json::json;

use super::failure;
use crate::{
    cli::Context,
    exit::{CommandResult, Failure},
};

/// Flags of `endpoints stage`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  regatta endpoints stage thor-1-qwen --division closed --submitter Example --system Thor \\
      --description Thor.json --measurements measurements.json --output submission
  regatta endpoints stage thor-1-qwen --division closed --submitter Example --system Thor \\
      --measurements measurements.json --add-to submission
      add the result to a tree that `regatta submission stage` made, which describes the system")]
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
    /// The system's description, as in `systems/` of a submission [default: that of the tree in --add-to]
    #[arg(long, value_name = "FILE.json", required_unless_present = "add_to")]
    description: Option<PathBuf>,
    /// The result's measurements.json: input and weight types, starting weights, their changes, retraining
    #[arg(long, value_name = "FILE.json")]
    measurements: PathBuf,
    /// The new directory for the tree
    #[arg(
        long,
        value_name = "NEWTREE",
        required_unless_present = "add_to",
        conflicts_with = "add_to"
    )]
    output: Option<PathBuf>,
    /// A tree of the same submitter that gets the result
    #[arg(long, value_name = "TREE")]
    add_to: Option<PathBuf>,
    /// Stage a run that is not a result, in a tree that is marked as a rehearsal
    #[arg(long)]
    rehearsal: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    let (tree, path) = match (&args.add_to, &args.output) {
        (Some(tree), _) => (StageTree::Existing(tree), tree),
        (None, Some(tree)) => (StageTree::New(tree), tree),
        // clap requires one of them.
        (None, None) => return Err(Failure::misuse("--output or --add-to names the tree")),
    };
    let files = regatta_endpoints::stage(&StageRequest {
        run: &args.run,
        division: args.division,
        submitter: &args.submitter,
        system: &args.system,
        description: args.description.as_deref(),
        measurements: &args.measurements,
        is_rehearsal: args.rehearsal,
        tree,
    });
    let files = files.map_err(failure)?;
    let document = json!({ "tree": path, "files": files });
    context.print(&document, || {
        let tree = path.display();
        format!(
            "{} files of the result are in {tree}.\nnext: regatta submission check --input {tree}",
            files.len()
        )
    })?;
    Ok(ExitCode::Success)
}
