//! `regatta power check`: judges a measured session as the Power working group's checker does.

use std::{fmt::Write as _, fs, path::PathBuf};

use regatta_submission_check::{
    check::power::{self, PowerOutcome as Found, PowerReport},
    tree::Tree,
};
use regatta_text::escape;
use regatta_types::ExitCode;
use serde_json::json;

use super::super::{Context, submission::inputs::rounds};
use crate::exit::{CommandResult, Failure};
use regatta_lab_views::wording;

/// Flags of `power check`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct CheckArgs {
    /// The session's directory, with power/, ranging/ and run_1/
    #[arg(value_name = "DIR")]
    session: PathBuf,
    /// The round whose checker judges [default: the newest]
    #[arg(long, alias = "version", value_name = "vX.Y")]
    round: Option<String>,
    /// Run only the eleven official checks, without Regatta's additional ones
    #[arg(long)]
    as_official: bool,
}

pub(super) fn check(args: &CheckArgs, context: &Context) -> CommandResult {
    let rounds = rounds(context)?;
    let round = rounds.named(args.round.as_deref()).map_err(Failure::usage)?;
    let rules = round.power.as_ref().ok_or_else(|| {
        Failure::misuse(format!("round {} has no rules for power", round.name))
            .hint("name another round with --version")
    })?;
    fs::read_dir(args.session.join("power")).map_err(|error| {
        let sentence = format!("{} has no power/", args.session.display());
        Failure::from(anyhow::Error::new(error).context(sentence))
            .hint("name the directory with power/, ranging/ and run_1/")
    })?;
    let tree = Tree::scan(&args.session)?;
    let report = power::check(&tree, "", rules);
    let simulated = !args.as_official && power::is_simulated(&tree, "");
    let own_programs = !args.as_official && power::has_own_programs(&tree, "");
    let overlooked = match args.as_official {
        true => Vec::new(),
        false => power::overlooked(&tree, "", rules),
    };
    let findings: Vec<String> = overlooked.iter().map(ToString::to_string).collect();
    let passes = report.passes() && findings.is_empty() && !simulated && !own_programs;
    let energy = power::energy(&tree, "").ok();
    let document = json!({
        "verdict": if passes { "pass" } else { "fail" }, "round": round.name, "checks": report.checks,
        "findings": findings, "simulated": simulated, "own_programs": own_programs, "energy": energy,
    });
    context.print(&document, || {
        let mut text = text(&report, &findings);
        if let Some(energy) = energy.filter(|_| !args.as_official) {
            text.push_str(&format!("\n{}", wording::energy(&energy)));
        }
        if simulated {
            text.push_str("\nREHEARSAL: made with a simulated PTDaemon (FAKEPTD), which measures nothing; not a valid session");
        }
        if own_programs {
            text.push_str(&format!("\nINFORMATIVE: {}", power::OWN_PROGRAMS));
        }
        text
    })?;
    Ok(if passes {
        ExitCode::Success
    } else {
        ExitCode::Negative
    })
}

/// The official program's marks, with a reason where there is one, and the findings beyond its checks.
fn text(report: &PowerReport, findings: &[String]) -> String {
    let mut text = String::new();
    let mut warned = false;
    for check in &report.checks {
        // Writing to a String cannot fail.
        let _ = match &check.outcome {
            Found::Passed => writeln!(text, "[x] {}", check.name),
            Found::Warned(reason) => {
                warned = true;
                writeln!(text, "[x] {}\n    warning: {}", check.name, escape(reason))
            }
            Found::Failed(reason) => writeln!(text, "[ ] {}\n    {}", check.name, escape(reason)),
        };
    }
    for finding in findings {
        let _ = writeln!(text, "[ ] Not checked officially\n    {}", escape(finding));
    }
    text.push_str(match (report.passes() && findings.is_empty(), warned) {
        (true, false) => "All checks passed",
        (true, true) => "All checks passed, with warnings that auditors see",
        (false, _) => "Not all checks passed",
    });
    text
}
