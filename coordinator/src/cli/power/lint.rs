//! `regatta power lint`: finds errors in a server.conf before the official server reads it.

use std::path::PathBuf;

use anyhow::Context as _;
use regatta_fsutil::regular_file;
use regatta_power::server_conf::{ConfFinding, ConfSeverity, lint as lint_conf};
use regatta_text::escape;
use regatta_types::ExitCode;
use serde_json::json;

use super::super::{Context, submission::inputs::rounds};
use crate::exit::{CommandResult, Failure};

/// Flags of `power lint`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct LintArgs {
    /// The official server's configuration
    #[arg(value_name = "server.conf")]
    conf: PathBuf,
    /// The round whose meters are accepted [default: the newest]
    #[arg(long, alias = "version", value_name = "vX.Y")]
    round: Option<String>,
}

pub(super) fn lint(args: &LintArgs, context: &Context) -> CommandResult {
    let rounds = rounds(context)?;
    let round = rounds.named(args.round.as_deref()).map_err(Failure::usage)?;
    let text = regular_file::read_text(&args.conf)
        .with_context(|| format!("cannot read {}", args.conf.display()))?;
    let (_, findings) = lint_conf(&text, round.power.as_ref());
    let errors = findings
        .iter()
        .filter(|finding| finding.severity == ConfSeverity::Error)
        .count();
    context.print(&json!({ "findings": findings }), || {
        let mut lines: Vec<_> = findings.iter().map(|finding| line(args, finding)).collect();
        if lines.is_empty() {
            lines.push(format!("{}: nothing found", args.conf.display()));
        }
        lines.join("\n")
    })?;
    Ok(if errors == 0 {
        ExitCode::Success
    } else {
        ExitCode::Negative
    })
}

fn line(args: &LintArgs, finding: &ConfFinding) -> String {
    let severity = match finding.severity {
        ConfSeverity::Error => "error",
        ConfSeverity::Warning => "warning",
    };
    let place = finding.line.map(|line| format!(":{line}")).unwrap_or_default();
    format!(
        "{}{place}: {severity}: {}\n    hint: {}",
        args.conf.display(),
        escape(&finding.text),
        escape(&finding.hint)
    )
}
