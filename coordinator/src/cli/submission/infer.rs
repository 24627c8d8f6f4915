//! `regatta submission infer`: missing results that the rules derive from measured ones, as copies in a new tree.

use std::{fmt::Write as _, path::PathBuf};

use regatta_submission_stage::{
    DraftError,
    infer::{self, InferError, Request},
};
use regatta_text::{Escaped, escape};
use serde_json::json;

use super::{
    super::Context,
    inputs::{expect_tree, rounds},
};
use crate::exit::{self, CommandResult, Failure};

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
    #[arg(long = "version", visible_alias = "round", value_name = "vX.Y")]
    round: Option<String>,
}

pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    let rounds = rounds(context)?;
    let round = rounds.named(args.round.as_deref()).map_err(Failure::usage)?;
    expect_tree(&args.input)?;
    let report = infer::infer(&Request {
        input: &args.input,
        output: &args.output,
        submitter: args.submitter.as_deref(),
        round,
    })
    .map_err(|error| match error {
        InferError::NoSubmission { .. }
        | InferError::Inside { .. }
        | InferError::Draft(DraftError::Exists { .. }) => Failure::usage(error),
        error => error.into(),
    })?;
    let inferred: Vec<_> = report
        .inferred
        .iter()
        .map(|(from, to)| json!({ "from": from, "to": to }))
        .collect();
    let left: Vec<_> = report
        .left
        .iter()
        .map(|(path, why)| json!({ "path": path, "why": why }))
        .collect();
    context.print(
        &json!({ "tree": args.output, "inferred": inferred, "left": left }),
        || {
            let mut text = String::new();
            // Writing to a String cannot fail.
            for (from, to) in &report.inferred {
                let _ = writeln!(text, "{}\n    from {}", escape(to), escape(from));
            }
            for (path, why) in &report.left {
                let _ = writeln!(text, "left  {}: {}", escape(path), escape(why));
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
    Ok(exit::OK)
}
