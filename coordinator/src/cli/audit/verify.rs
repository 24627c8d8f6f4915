//! `regatta audit verify`: verifies an audit as the round's official scripts do. The logs may come from anyone.

use std::fmt::Write as _;

use regatta_catalogue::catalogue::Catalogue;
use regatta_submission_stage::audit::{self, AuditError, AuditReport, AuditRequest, explain};
use regatta_text::{Escaped, escape};
use regatta_types::ExitCode;
use serde_json::{Value, json};

use super::{super::Context, accuracies, verification_input::VerificationInput, verify_args::Args};
use crate::exit::{CommandResult, Failure};
use regatta_lab_store::workspace::Workspace;
use regatta_lab_views::wording;

pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    let Verified {
        round,
        report,
        explanation,
    } = verify(args, context)?;
    let explanation = explanation.as_deref();
    let document = document(args, &round, &report, explanation);
    context.print(&document, || text(args, &round, &report, explanation))?;
    Ok(if report.passed() {
        ExitCode::Success
    } else {
        ExitCode::Negative
    })
}

pub(super) struct Verified {
    round: String,
    report: AuditReport,
    explanation: Option<String>,
}

/// Verifies an audit, and stores the verdict in its record if it is a run of the workspace.
pub(super) fn verify(args: &Args, context: &Context) -> Result<Verified, Failure> {
    let workspace = context.open_if_there()?;
    let catalogue =
        Catalogue::read(workspace.as_ref().map(Workspace::configs).as_deref()).map_err(Failure::usage)?;
    let input = VerificationInput::of(args, context)?;
    let round = catalogue.round(input.round.as_deref()).map_err(Failure::usage)?;
    let request = AuditRequest {
        test: args.test,
        audited: &input.audited,
        compliance: &input.compliance,
        output: &input.output,
        dtype: input.dtype,
        round,
    };
    let mut report = audit::verify(&request).map_err(failure)?;
    let explanation = explanation(&request, &report)?;
    if report.needs_accuracies()
        && let Some(benchmark) = &input.benchmark
    {
        report.accuracies = accuracies::compare(args, &request, benchmark, &catalogue, context)?;
    }
    input.keep(&report, explanation.as_deref())?;
    Ok(Verified {
        round: round.name.clone(),
        report,
        explanation,
    })
}

fn failure(error: AuditError) -> Failure {
    let hint = matches!(error, AuditError::NotInRound { .. })
        .then_some("name the round of the submission with --round");
    Failure::of_kind(error.kind(), error).optional_hint(hint)
}

/// Explains why TEST01's responses differ, if they do.
fn explanation(request: &AuditRequest<'_>, report: &AuditReport) -> Result<Option<String>, AuditError> {
    let Some(comparison) = report.accuracy.as_ref().filter(|_| report.needs_accuracies()) else {
        return Ok(None);
    };
    let explained = explain::explain(comparison, &request.accuracy_log(), &request.compliance_log())?;
    Ok(Some(explained.to_string()))
}

fn document(args: &Args, round: &str, report: &AuditReport, explanation: Option<&str>) -> Value {
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
        "accuracies": report.accuracies,
        "performance": {
            "passed": report.performance.passed,
            "refusal": report.performance.refusal,
            "scores": report.performance.scores,
            "mismatch": report.performance.mismatch,
        },
        "observations": observations,
        "directory": report.directory,
    })
}

fn text(args: &Args, round: &str, report: &AuditReport, explanation: Option<&str>) -> String {
    let mut text = String::new();
    if let Some(accuracy) = &report.accuracy {
        text.push_str(&accuracy.counts.text());
    }
    // Writing to a `String` cannot fail, here and below.
    if let Some(explanation) = explanation {
        let _ = writeln!(text, "{explanation}");
    }
    for delta in &report.accuracies {
        let verdict = if delta.passed { "PASS" } else { "FAIL" };
        let _ = writeln!(text, "part III {verdict}: {}", wording::accuracy_delta(delta));
    }
    text.push_str(&report.performance.printed);
    if let Some(scores) = &report.performance.scores {
        let _ = writeln!(text, "{}", wording::compared_scores(scores, round));
    }
    if let Some(refusal) = &report.performance.refusal {
        let _ = writeln!(text, "{}", escape(refusal));
    }
    if let Some(mismatch) = &report.performance.mismatch {
        let _ = writeln!(text, "{}", escape(mismatch));
    }
    for seen in &report.observations {
        let line = seen.line.map_or_else(String::new, |line| format!(":{line}"));
        let _ = writeln!(
            text,
            "warning: {}{line}: {}",
            Escaped(seen.path.display()),
            escape(&seen.message)
        );
    }
    let verdict = if report.passed() { "PASS" } else { "FAIL" };
    let _ = write!(
        text,
        "{}: {verdict}; written to {}",
        args.test.name(),
        Escaped(report.directory.display())
    );
    text
}
