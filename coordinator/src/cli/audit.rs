//! `regatta audit`: verifies audits (compliance tests) as the round's official scripts do. Running them is not here yet.

use std::{fmt::Write as _, path::PathBuf};

use regatta_mllog::read::file_name;
use regatta_submission::audit::{self, AuditError, Dtype, Report, Request, Test, explain};
use serde_json::{Value, json};

use super::{Context, submission::catalogue};
use crate::exit::{self, Failure, Outcome};

/// What can be done with audits.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Holds an audit's run against the submission's, and writes the audit's directory
    Verify(VerifyArgs),
}

/// Flags of `audit verify`: those of `run_verification.py`.
#[derive(Debug, clap::Args)]
pub(super) struct VerifyArgs {
    /// The audit
    #[arg(value_name = "TEST01|TEST04|TEST05")]
    test: Test,
    /// The submission's run: holds accuracy/ and performance/run_1/
    #[arg(long, value_name = "DIR")]
    results: PathBuf,
    /// The audit's run: holds its three logs
    #[arg(long, value_name = "DIR")]
    compliance: PathBuf,
    /// Gets the directory TESTxx
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// How TEST01 reads the first element of a response
    #[arg(long, value_name = "byte|float32|int32|int64", default_value_t = Dtype::Byte)]
    dtype: Dtype,
    /// The round whose audits apply [default: the newest]
    #[arg(long, value_name = "vX.Y")]
    round: Option<String>,
}

pub(super) fn run(command: &Command, context: &Context) -> Outcome {
    match command {
        Command::Verify(args) => verify(args, context),
    }
}

fn verify(args: &VerifyArgs, context: &Context) -> Outcome {
    let catalogue = catalogue(context)?;
    let round = catalogue.round(args.round.as_deref()).map_err(Failure::usage)?;
    let report = audit::verify(&Request {
        test: args.test,
        results: &args.results,
        compliance: &args.compliance,
        output: &args.output,
        dtype: args.dtype,
        round,
    })
    .map_err(failure)?;
    let explanation = explanation(args, &report)?;
    let document = document(args, &round.name, &report, explanation.as_deref());
    context.print(&document, || text(args, &report, explanation.as_deref()))?;
    Ok(if report.passed() { exit::OK } else { exit::NO })
}

fn failure(error: AuditError) -> Failure {
    match error {
        AuditError::NotInRound { .. } => {
            Failure::usage(error).way_out("name the round of the submission with --round")
        }
        AuditError::SameFile { .. } => Failure::usage(error),
        error => error.into(),
    }
}

/// Why TEST01's responses differ, where they do.
fn explanation(args: &VerifyArgs, report: &Report) -> Result<Option<String>, AuditError> {
    let Some(comparison) = report
        .accuracy
        .as_ref()
        .filter(|accuracy| !accuracy.counts.passed)
    else {
        return Ok(None);
    };
    let reference = args.results.join("accuracy").join(file_name::ACCURACY);
    let audited = args.compliance.join(file_name::ACCURACY);
    Ok(Some(
        explain::explain(comparison, &reference, &audited)?.to_string(),
    ))
}

fn document(args: &VerifyArgs, round: &str, report: &Report, explanation: Option<&str>) -> Value {
    let accuracy = report.accuracy.as_ref().map(|accuracy| {
        json!({
            "passed": accuracy.counts.passed,
            "matches": accuracy.counts.matches,
            "mismatches": accuracy.counts.mismatches,
            "explanation": explanation,
        })
    });
    let observations: Vec<_> = report
        .observations
        .iter()
        .map(|seen| json!({ "path": seen.path, "line": seen.line, "message": seen.message }))
        .collect();
    json!({
        "test": args.test.name(),
        "round": round,
        "verdict": if report.passed() { "pass" } else { "fail" },
        "accuracy": accuracy,
        "performance": { "passed": report.performance.passed, "refusal": report.performance.refusal },
        "observations": observations,
        "directory": report.directory,
    })
}

fn text(args: &VerifyArgs, report: &Report, explanation: Option<&str>) -> String {
    let mut text = String::new();
    if let Some(accuracy) = &report.accuracy {
        text.push_str(&accuracy.counts.text());
    }
    // Writing to a String cannot fail, here and below.
    if let Some(explanation) = explanation {
        let _ = writeln!(text, "{explanation}");
    }
    text.push_str(&report.performance.printed);
    if let Some(refusal) = &report.performance.refusal {
        let _ = writeln!(text, "{refusal}");
    }
    for seen in &report.observations {
        let line = seen.line.map_or_else(String::new, |line| format!(":{line}"));
        let _ = writeln!(
            text,
            "a reviewer would ask: {}{line}: {}",
            seen.path.display(),
            seen.message
        );
    }
    let verdict = if report.passed() { "PASS" } else { "FAIL" };
    let _ = write!(
        text,
        "{}: {verdict}; written to {}",
        args.test.name(),
        report.directory.display()
    );
    text
}
