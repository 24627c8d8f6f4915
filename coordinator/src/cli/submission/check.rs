//! `regatta submission check`: whether a tree can be submitted, by the rules or as an official checker judges it.

use std::path::PathBuf;

use clap::ArgGroup;
use regatta_config::round::Round;
use regatta_submission::{
    check::{self, Official, Verdict, format},
    tree::Tree,
};
use regatta_text::escape_json;

use super::{
    super::{
        Context,
        context::{Format, print, say},
    },
    inputs::{expect_tree, rounds},
};
use crate::exit::{self, CommandResult, Failure};

/// Flags of `submission check`.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("root").required(true).args(["input", "tree"]))]
pub(crate) struct Args {
    /// The submission's root, which holds closed/, open/, network/
    #[arg(long, value_name = "TREE")]
    input: Option<PathBuf>,
    /// The same without a flag
    #[arg(value_name = "TREE")]
    tree: Option<PathBuf>,
    /// The round whose rules apply
    #[arg(long = "version", visible_alias = "round", value_name = "vX.Y")]
    round: String,
    /// Judge as the round's official checker does, with its gaps; of this tag or commit, or the one used for the round
    #[arg(long, value_name = "REVISION", num_args = 0..=1, require_equals = true)]
    as_official: Option<Option<String>>,
    /// How the report is printed
    // The global flag's name and type, with more values.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    let rounds = rounds(context)?;
    let round = rounds.named(Some(&args.round)).map_err(Failure::usage)?;
    let root = args.input.as_deref().or(args.tree.as_deref());
    let root = root.ok_or_else(|| Failure::misuse("name the submission's root with --input"))?;
    expect_tree(root)?;
    let tree = Tree::scan(root)?;
    let (passes, report) = match &args.as_official {
        None => strict(&tree, round, args.format)?,
        Some(revision) => {
            let official = check::as_official(&tree, round, revision.as_deref()).map_err(Failure::usage)?;
            let passes = official.verdict == Verdict::Accept;
            (passes, official_report(&official, round, args.format)?)
        }
    };
    let report = report.trim_end_matches('\n');
    match args.format {
        Format::Text | Format::Html => say(report)?,
        Format::Json => print(&escape_json(report))?,
        // To the byte what the official checker writes.
        Format::Csv => print(report)?,
    }
    Ok(if passes { exit::OK } else { exit::NO })
}

fn strict(tree: &Tree, round: &Round, format: Format) -> Result<(bool, String), Failure> {
    let report = check::strict(tree, round);
    let text = match format {
        Format::Text => format::strict_text(&report),
        Format::Json => format::strict_json(&report)?,
        Format::Csv => format::strict_csv(&report),
        Format::Html => format::strict_html(&report, &round.name),
    };
    Ok((report.passes(), text))
}

fn official_report(official: &Official, round: &Round, format: Format) -> Result<String, Failure> {
    Ok(match format {
        Format::Text => format::official_text(official),
        Format::Json => format::official_json(official)?,
        Format::Csv => check::csv(&official.checker, &round.name, &official.rows),
        Format::Html => format::official_html(official, &round.name),
    })
}
