//! `regatta submission check`: whether a tree can be submitted, by the rules or as an official checker judges it.

use std::path::{Path, PathBuf};

use clap::ArgGroup;
use regatta_catalogue::{catalogue::RoundCatalogue, round::Round};
use regatta_submission_check::{
    check::{self, Official, Verdict, format},
    tree::Tree,
};
use regatta_submission_stage::pack::DIVISIONS;
use regatta_text::escape_json;
use regatta_types::ExitCode;

use super::{
    super::{
        Context,
        context::{Format, print, say, tell},
    },
    inputs::{expect_tree, rounds},
};
use crate::exit::{CommandResult, Failure};

/// Flags of `submission check`.
#[derive(Debug, clap::Args)]
#[command(
    group = ArgGroup::new("root").required(true).args(["input", "tree"]),
    after_help = "\
Examples:
  regatta submission check submission
      check the tree by the rules of its round
  regatta submission check submission --as-official
      get the verdict of the round's official checker
  regatta submission check submission --format html >report.html"
)]
pub(crate) struct Args {
    /// The submission's root directory, with closed/, open/ or network/
    #[arg(long, value_name = "TREE")]
    input: Option<PathBuf>,
    /// The submission's root directory, without the flag
    #[arg(value_name = "TREE")]
    tree: Option<PathBuf>,
    /// The round whose rules apply [default: the round whose seeds the runs use]
    #[arg(long, alias = "version", value_name = "vX.Y")]
    round: Option<String>,
    /// Check only this submitter, by the name of its directory [default: all]
    #[arg(long, value_name = "NAME")]
    submitter: Option<String>,
    /// Judge exactly as the round's official checker does, at this tag or commit [default revision: the one used for the round]
    #[arg(long, value_name = "REVISION", num_args = 0..=1, require_equals = true)]
    as_official: Option<Option<String>>,
    /// Output format
    // The global flag's name and type, with more values.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    let rounds = rounds(context)?;
    let root = args.input.as_deref().or(args.tree.as_deref());
    let root = root.ok_or_else(|| Failure::misuse("name the submission's root with --input"))?;
    expect_tree(root)?;
    let tree = scan(root, args.submitter.as_deref())?;
    let round = round_of(args.round.as_deref(), root, &tree, &rounds)?;
    let outcome = match &args.as_official {
        None => strict(&tree, round, &rounds, args.format)?,
        Some(revision) => {
            let official = check::as_official(&tree, round, revision.as_deref()).map_err(Failure::usage)?;
            CheckOutcome {
                passes: official.verdict == Verdict::Accept,
                text: official_report(&official, round, args.format)?,
            }
        }
    };
    let report = outcome.text.trim_end_matches('\n');
    match args.format {
        Format::Text | Format::Html => say(report)?,
        Format::Json => print(&escape_json(report))?,
        // To the byte what the official checker writes.
        Format::Csv => print(report)?,
    }
    Ok(if outcome.passes {
        ExitCode::Success
    } else {
        ExitCode::Negative
    })
}

/// Reads the tree, or one submitter's part of it.
fn scan(root: &Path, submitter: Option<&str>) -> Result<Tree, Failure> {
    let tree = Tree::scan(root)?;
    let Some(submitter) = submitter else {
        return Ok(tree);
    };
    let is_there = DIVISIONS
        .iter()
        .any(|division| tree.is_directory(&format!("{division}/{submitter}")));
    if !is_there {
        let sentence = format!("{} has no submitter `{submitter}`", root.display());
        return Err(Failure::misuse(sentence).hint("name a directory in closed/, open/ or network/"));
    }
    Ok(tree.only_submitter(submitter, &DIVISIONS))
}

/// Returns the named round, or the one whose seeds the runs have.
fn round_of<'a>(
    name: Option<&str>,
    root: &Path,
    tree: &Tree,
    rounds: &'a RoundCatalogue,
) -> Result<&'a Round, Failure> {
    if name.is_some() {
        return rounds.named(name).map_err(Failure::usage);
    }
    let all = rounds.all().map_err(Failure::usage)?;
    let round = check::round_of_seeds(tree, &all).ok_or_else(|| {
        let sentence = format!("{}: no run has the seeds of a known round", root.display());
        Failure::misuse(sentence).hint("name the round with --round vX.Y")
    })?;
    tell(&format!(
        "The rules of {} apply: the runs have its seeds.",
        round.name
    ));
    Ok(round)
}

/// The outcome of a check.
struct CheckOutcome {
    passes: bool,
    /// The report.
    text: String,
}

fn strict(
    tree: &Tree,
    round: &Round,
    rounds: &RoundCatalogue,
    format: Format,
) -> Result<CheckOutcome, Failure> {
    let mut report = check::strict(tree, round);
    if report.has_other_seeds() {
        report.report_round_of_seeds(tree, round, &rounds.all().map_err(Failure::usage)?);
    }
    let text = match format {
        Format::Text => format::strict_text(&report),
        Format::Json => format::strict_json(&report)?,
        Format::Csv => format::strict_csv(&report),
        Format::Html => format::strict_html(&report, &round.name),
    };
    Ok(CheckOutcome {
        passes: report.passes(),
        text,
    })
}

fn official_report(official: &Official, round: &Round, format: Format) -> Result<String, Failure> {
    Ok(match format {
        Format::Text => format::official_text(official),
        Format::Json => format::official_json(official)?,
        Format::Csv => check::csv(&official.checker, &round.name, &official.rows),
        Format::Html => format::official_html(official, &round.name),
    })
}
