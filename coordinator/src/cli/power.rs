//! `regatta power`: judges measured sessions as the Power working group's checker does. Measuring them is not here.

use std::{fmt::Write as _, fs, path::PathBuf};

use regatta_submission::{
    check::power::{self, Outcome as Found, PowerReport},
    tree::Tree,
};
use regatta_text::escape;
use serde_json::json;

use super::{Context, submission::inputs::rounds};
use crate::exit::{self, CommandResult, Failure};

/// What can be done with power measurements.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Says whether a measured session is one that the round's power checker accepts
    // `--version` is the round here, as in the official tools.
    #[command(disable_version_flag = true)]
    Check(CheckArgs),
}

/// Flags of `power check`.
#[derive(Debug, clap::Args)]
pub(super) struct CheckArgs {
    /// The session: holds power/, ranging/ and run_1/
    #[arg(value_name = "DIR")]
    session: PathBuf,
    /// The round whose checker judges [default: the newest]
    #[arg(long = "version", visible_alias = "round", value_name = "vX.Y")]
    round: Option<String>,
}

pub(super) fn run(command: &Command, context: &Context) -> CommandResult {
    match command {
        Command::Check(args) => check(args, context),
    }
}

fn check(args: &CheckArgs, context: &Context) -> CommandResult {
    let rounds = rounds(context)?;
    let round = rounds.named(args.round.as_deref()).map_err(Failure::usage)?;
    let rules = round.power.as_ref().ok_or_else(|| {
        Failure::misuse(format!("round {} has no rules for power", round.name))
            .hint("name another round with --version")
    })?;
    fs::read_dir(args.session.join("power")).map_err(|error| {
        let sentence = format!("{} holds no power/", args.session.display());
        Failure::from(anyhow::Error::new(error).context(sentence))
            .hint("name the directory that holds power/, ranging/ and run_1/")
    })?;
    let tree = Tree::scan(&args.session)?;
    let report = power::check(&tree, "", rules);
    let document = json!({
        "verdict": if report.passes() { "pass" } else { "fail" }, "round": round.name, "checks": report.checks,
    });
    context.print(&document, || text(&report))?;
    Ok(if report.passes() { exit::OK } else { exit::NO })
}

/// The official program's marks, with a reason where there is one.
fn text(report: &PowerReport) -> String {
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
    text.push_str(match (report.passes(), warned) {
        (true, false) => "All checks passed",
        (true, true) => "All checks passed, with warnings that auditors see",
        (false, _) => "Not all checks passed",
    });
    text
}
