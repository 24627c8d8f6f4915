//! `regatta runs verify`: verifies that runs are unchanged since their devices delivered them.

use std::path::Path;

use anyhow::Context as _;
use regatta_submission_stage::proof::{ProofError, key_beside};
use regatta_text::escape;
use regatta_types::{DeviceId, ExitCode};
use serde::Serialize;

use super::Context;
use crate::exit::{CommandResult, Failure};
use regatta_lab_runs::{Subject, Verification, verify};
use regatta_lab_store::{RunRow, Store, workspace::Workspace};
use regatta_lab_views::lookup;

/// A verified run as JSON.
#[derive(Serialize)]
struct VerificationDocument {
    /// The run or directory as the user named it.
    subject: String,
    /// Whether the run is as the device left it.
    intact: bool,
    #[serde(flatten)]
    verification: Verification,
}

/// Flags of `runs verify`.
#[derive(Debug, clap::Args)]
pub(super) struct VerifyArgs {
    /// Run ids, `last`, or directories that `runs export` wrote [default: every recorded run]
    #[arg(value_name = "RUN|DIR")]
    runs: Vec<String>,
    /// The device that must have signed the runs: its id or, in a workspace, its name
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
}

/// Verifies the named runs, or every recorded run.
pub(super) fn run(args: &VerifyArgs, context: &Context) -> CommandResult {
    let device = args
        .device
        .as_deref()
        .map(|name| signer(name, context))
        .transpose()?;
    let device = device.as_ref();
    let mut documents = Vec::new();
    if args.runs.is_empty() {
        let (workspace, store) = context.open_store()?;
        for row in store.runs().all()?.iter().filter(|row| row.recorded.is_some()) {
            let verification = in_workspace(&workspace, &store, row, device)?;
            // A run without evidence has nothing that could be changed, and its record says so.
            if verification.has_evidence || !verification.findings.is_empty() {
                documents.push(document(row.id.to_string(), verification));
            }
        }
    }
    for subject in &args.runs {
        let directory = Path::new(subject);
        let verification = if directory.is_dir() {
            exported(directory, device)?
        } else {
            let (workspace, store) = context.open_store()?;
            in_workspace(&workspace, &store, &lookup::run(&store, subject)?, device)?
        };
        documents.push(document(subject.clone(), verification));
    }
    let all = documents.iter().all(|document| document.intact);
    context.print(&serde_json::json!({ "runs": documents }), || text(&documents))?;
    Ok(if all {
        ExitCode::Success
    } else {
        ExitCode::Negative
    })
}

/// Returns the device that a user names. An id needs no workspace.
fn signer(name: &str, context: &Context) -> Result<DeviceId, Failure> {
    if let Ok(id) = name.parse() {
        return Ok(id);
    }
    let (_, store) = context.open_store()?;
    Ok(lookup::device(&store, Some(name))?.id)
}

fn in_workspace(
    workspace: &Workspace,
    store: &Store,
    row: &RunRow,
    device: Option<&DeviceId>,
) -> anyhow::Result<Verification> {
    let public_key = store.devices().public_key(&row.device)?;
    let dir = workspace.run(row.id);
    let subject = Subject {
        directory: dir.path(),
        public_key,
        row: Some(row),
        device,
    };
    verify(&subject).with_context(|| format!("cannot read run {}", row.id))
}

fn exported(directory: &Path, device: Option<&DeviceId>) -> anyhow::Result<Verification> {
    let public_key = match key_beside(directory) {
        // This is a finding, because the signature cannot be verified.
        Err(ProofError::MalformedKey(_)) => None,
        read => read?,
    };
    let subject = Subject {
        directory,
        public_key,
        row: None,
        device,
    };
    verify(&subject).with_context(|| format!("cannot read {}", directory.display()))
}

/// Checks that an exported run is as its device left it.
///
/// # Errors
/// Returns the first difference, or an error when a file cannot be read.
pub(super) fn expect_intact(directory: &Path) -> Result<(), Failure> {
    let verification = exported(directory, None)?;
    match verification.findings.first() {
        None if verification.has_evidence => Ok(()),
        found => Err(Failure::could_not(format!(
            "{} is not as its device left it: {}",
            directory.display(),
            found.map_or_else(
                || "it has no evidence".to_owned(),
                |found| format!("{}: {}", escape(&found.file), escape(&found.problem))
            )
        ))
        .hint(format!(
            "`regatta runs verify {}` lists all differences",
            directory.display()
        ))),
    }
}

fn document(subject: String, verification: Verification) -> VerificationDocument {
    VerificationDocument {
        subject,
        intact: verification.is_intact(),
        verification,
    }
}

fn text(documents: &[VerificationDocument]) -> String {
    if documents.is_empty() {
        return "no recorded run has evidence yet".to_owned();
    }
    let mut lines = Vec::new();
    for VerificationDocument {
        subject,
        intact,
        verification,
    } in documents
    {
        if *intact {
            lines.push(format!(
                "{}: intact: {} files, {} bytes, signed by device {}",
                escape(subject),
                verification.files,
                verification.bytes,
                verification.device
            ));
            if Path::new(subject).is_dir() {
                lines.push(format!(
                    "  not signed: {}, which agrees with the signed files; `regatta device list` of the lab shows whether the device belongs to the lab, and --device requires that",
                    verification.unsigned.join(", ")
                ));
            }
            continue;
        }
        lines.push(if verification.has_evidence {
            format!("{}: NOT as the device left it", escape(subject))
        } else {
            format!("{}: no evidence to verify", escape(subject))
        });
        for finding in &verification.findings {
            lines.push(format!(
                "  {}: {}",
                escape(&finding.file),
                escape(&finding.problem)
            ));
        }
    }
    lines.join("\n")
}
