//! `regatta submission truncate`: accuracy logs cut as the round's official tool cuts them, with the originals kept and,
//! on request, every cut proven from them.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use clap::ArgGroup;
use regatta_catalogue::{procedures::Truncation, round::Round};
use regatta_submission_stage::truncate::{
    self, Destination, Outcome as Done, Proof, Treated, TruncateError, TruncationReport, TruncationRequest,
};
use regatta_text::Escaped;
use regatta_types::ExitCode;
use serde_json::{Value, json};

use super::{
    super::Context,
    inputs::{expect_tree, rounds},
};
use crate::exit::{CommandResult, Failure};

/// Flags of `submission truncate`: the official tool's own, and `--verify`.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("destination").required(true).args(["output", "backup"]))]
pub(crate) struct Args {
    /// The submission's root directory, with closed/ or open/
    #[arg(long, value_name = "TREE")]
    input: PathBuf,
    /// The submitter's directory name
    #[arg(long, value_name = "NAME")]
    submitter: String,
    /// Write the truncated tree to this new directory; the input is not changed
    #[arg(long, value_name = "NEWTREE")]
    output: Option<PathBuf>,
    /// Truncate the input in place, and keep the originals in this directory
    #[arg(long, value_name = "DIR")]
    backup: Option<PathBuf>,
    /// The round whose truncation applies [default: the newest]
    #[arg(long, alias = "version", value_name = "vX.Y")]
    round: Option<String>,
    /// Scenario directories to skip
    #[arg(long, value_name = "SCENARIO", num_args = 1..)]
    scenarios_to_skip: Vec<String>,
    /// Compare every truncated log with its original afterwards
    #[arg(long)]
    verify: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    let rounds = rounds(context)?;
    let round = rounds.named(args.round.as_deref()).map_err(Failure::usage)?;
    let rule = rule(round)?;
    expect_tree(&args.input)?;
    let (destination, cut_tree, originals) = places(args)?;
    let request = TruncationRequest {
        input: &args.input,
        submitter: &args.submitter,
        destination,
        skip_scenarios: &args.scenarios_to_skip,
        rule,
    };
    let report = truncate::truncate(&request).map_err(failure)?;
    let proofs = if args.verify {
        let cut = TruncationRequest {
            input: cut_tree,
            ..request.clone()
        };
        Some(truncate::verify(&cut, originals).map_err(failure)?)
    } else {
        None
    };
    context.print(&document(&report, proofs.as_deref()), || {
        text(&report, proofs.as_deref())
    })?;
    let proven = proofs.iter().flatten().all(Proof::holds);
    Ok(if proven && report.problems().next().is_none() {
        ExitCode::Success
    } else {
        ExitCode::Negative
    })
}

fn rule(round: &Round) -> Result<&Truncation, Failure> {
    round.truncation.as_ref().ok_or_else(|| {
        Failure::misuse(format!("round {} has no rule for truncation", round.name))
            .hint("name another round with --version")
    })
}

/// Returns the destination of the originals, the directory of the cut tree afterwards, and that of the originals then.
fn places(args: &Args) -> Result<(Destination, &Path, &Path), Failure> {
    match (&args.output, &args.backup) {
        (Some(output), None) => Ok((Destination::Output(output.clone()), output, &args.input)),
        (None, Some(backup)) => Ok((Destination::Backup(backup.clone()), &args.input, backup)),
        _ => Err(Failure::misuse(
            "name either --output or --backup, the directory for the originals",
        )),
    }
}

fn failure(error: TruncateError) -> Failure {
    Failure::of_kind(error.kind(), error)
}

fn document(report: &TruncationReport, proofs: Option<&[Proof]>) -> Value {
    let logs: Vec<_> = report.treated.iter().map(log_document).collect();
    let proofs = proofs.map(|proofs| proofs.iter().map(proof_document).collect::<Vec<_>>());
    json!({ "cut": report.cut(), "logs": logs, "proofs": proofs })
}

fn log_document(treated: &Treated) -> Value {
    let path = treated.directory.to_string_lossy();
    match &treated.outcome {
        Done::Cut {
            bytes,
            sha256,
            second_hash,
        } => json!({
            "path": path, "outcome": "cut", "bytes": bytes, "sha256": sha256, "second_hash": second_hash,
        }),
        Done::AlreadyCut => json!({ "path": path, "outcome": "already_cut" }),
        Done::Endpoints => json!({ "path": path, "outcome": "endpoints" }),
        Done::Left(problem) => {
            json!({ "path": path, "outcome": "left", "problem": problem.to_string() })
        }
    }
}

fn proof_document(proof: &Proof) -> Value {
    let findings: Vec<_> = proof.findings.iter().map(ToString::to_string).collect();
    json!({ "path": proof.directory.to_string_lossy(), "valid": proof.holds(), "findings": findings })
}

fn text(report: &TruncationReport, proofs: Option<&[Proof]>) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail, here and below.
    for treated in &report.treated {
        let path = Escaped(treated.directory.display());
        let _ = match &treated.outcome {
            Done::Cut {
                bytes, second_hash, ..
            } => {
                let second = if *second_hash {
                    "; accuracy.txt already had the hash of another log: remove it"
                } else {
                    ""
                };
                writeln!(text, "cut   {path} ({bytes} bytes{second})")
            }
            Done::AlreadyCut => writeln!(text, "ok    {path}: cut before"),
            Done::Endpoints => writeln!(text, "ok    {path}: has no log to cut"),
            Done::Left(problem) => writeln!(text, "LEFT  {path}: {}", Escaped(problem)),
        };
    }
    let _ = write!(
        text,
        "{} accuracy log{} cut, {} skipped",
        report.cut(),
        if report.cut() == 1 { "" } else { "s" },
        report.problems().count()
    );
    for proof in proofs.unwrap_or_default() {
        for reason in &proof.findings {
            let _ = write!(
                text,
                "\nUNVERIFIED {}: {}",
                Escaped(proof.directory.display()),
                Escaped(reason)
            );
        }
    }
    if let Some(proofs) = proofs {
        let proven = proofs.iter().filter(|proof| proof.holds()).count();
        let _ = write!(
            text,
            "\n{proven} of {} truncated logs match their originals",
            proofs.len()
        );
    }
    text
}
