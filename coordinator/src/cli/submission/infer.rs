//! `regatta submission infer`: missing results that the rules derive from measured ones, as copies in a new tree.

use std::{fmt::Write as _, path::PathBuf};

use regatta_submission_stage::infer::{self, InferRequest};
use regatta_text::{Escaped, escape};
use regatta_types::ExitCode;
use serde_json::json;

use super::{
    super::Context,
    inputs::{expect_tree, rounds},
};
use crate::exit::{CommandResult, Failure};

/// Flags of `submission infer`: those of `preprocess_submission.py` that are about inferring.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The submission's root directory, which is not changed
    #[arg(long, value_name = "TREE")]
    input: PathBuf,
    /// The new directory for the tree with the inferred results
    #[arg(long, value_name = "NEWTREE")]
    output: PathBuf,
    /// The submitter's directory name [default: all]
    #[arg(long, value_name = "NAME")]
    submitter: Option<String>,
    /// The round whose rules apply [default: the newest]
    #[arg(long, alias = "version", value_name = "vX.Y")]
    round: Option<String>,
}

pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    let rounds = rounds(context)?;
    let round = rounds.named(args.round.as_deref()).map_err(Failure::usage)?;
    expect_tree(&args.input)?;
    let report = infer::infer(&InferRequest {
        input: &args.input,
        output: &args.output,
        submitter: args.submitter.as_deref(),
        round,
    })
    .map_err(|error| Failure::of_kind(error.kind(), error))?;
    let inferred: Vec<_> = report
        .inferred
        .iter()
        .map(|result| json!({ "from": result.from, "to": result.to }))
        .collect();
    let skipped: Vec<_> = report
        .skipped
        .iter()
        .map(|skipped| json!({ "path": skipped.place, "reason": skipped.reason }))
        .collect();
    context.print(
        &json!({ "tree": args.output, "inferred": inferred, "skipped": skipped }),
        || {
            let mut text = String::new();
            // Writing to a String cannot fail.
            for result in &report.inferred {
                let _ = writeln!(text, "{}\n    from {}", escape(&result.to), escape(&result.from));
            }
            for skipped in &report.skipped {
                let (place, reason) = (escape(&skipped.place), escape(&skipped.reason));
                let _ = writeln!(text, "skipped  {place}: {reason}");
            }
            let count = report.inferred.len();
            let _ = write!(
                text,
                "{count} results inferred, in {}",
                Escaped(args.output.display())
            );
            text
        },
    )?;
    Ok(ExitCode::Success)
}
