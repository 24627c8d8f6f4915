//! `regatta compare`: compares two selections of runs, or one with a baseline file, and returns exit code 1 when something is worse.
//! [`regatta_lab_views::comparisons`] computes it.

mod baseline;
mod formats;
pub(super) mod history;

use std::path::{Path, PathBuf};

use super::{
    Context,
    context::{Format, print, text_json_or_csv},
    csv::csv,
};
use crate::{
    exit::{CommandResult, Failure},
    tables,
};
use regatta_lab_views::{
    comparisons::{
        ComparedSide, ComparisonVerdict, Inclusion, RunConditions, Runs, least_floor, report, select,
    },
    lookup::RunFilter,
    wording,
};
use regatta_types::ExitCode;

/// Flags of `compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  regatta compare device:boat-1 device:boat-2 --benchmark resnet50
      is boat-2 faster or slower than boat-1?
  regatta compare campaign:weekend/base campaign:weekend/large-batch
      two variants of a campaign

A selection is one of these, or several joined by `+`, which must all apply:
  RUN,RUN...              runs by id, the beginning or end of one, or `last`
  device:NAME             runs of a device
  label:LABEL             runs of devices with a label
  campaign:NAME[/VARIANT] runs of a campaign, or of one variant of its settings
  set:KEY=VALUE           runs with an engine setting; `set:KEY=` selects those without it
  engine:KIND             runs of an engine
  agent:VERSION           runs by a version of the agent")]
pub(super) struct Args {
    /// The base (A) and the runs to compare with it (B); only one selection with --baseline or --write-baseline
    #[arg(value_name = "SELECTION", required = true, num_args = 1..=2)]
    sides: Vec<String>,
    #[command(flatten)]
    filter: RunFilter,
    /// Include runs that are normally left out, comma separated
    #[arg(long, value_enum, value_delimiter = ',')]
    include: Vec<Inclusion>,
    /// Minimum A/A noise floor in percent, if 1 is too strict
    #[arg(long, value_name = "PERCENT", value_parser = least_floor)]
    floor: Option<f64>,
    /// Compare with a file that --write-baseline wrote
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write the selection's figures to a file, as the baseline of later comparisons
    #[arg(long, value_name = "FILE")]
    write_baseline: Option<PathBuf>,
    /// Write the comparison as JUnit XML, with a failure for each figure that is worse
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the comparison as a Markdown table
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Output format
    // The global flag's name and type, with one value more.
    #[arg(long, value_parser = text_json_or_csv(), default_value = "text")]
    format: Format,
}

/// Compares, prints and writes.
pub(super) fn run(args: Args, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let uses_file = args.baseline.is_some() || args.write_baseline.is_some();
    match (args.sides.len(), uses_file) {
        (1, false) => {
            return Err(Failure::misuse("compare needs at least two selections").hint(
                "name a second selection, or compare with a file: `--baseline FILE`, which `--write-baseline FILE` writes",
            ));
        }
        (2, true) => {
            return Err(Failure::misuse(
                "a baseline file takes the place of the base: name one selection only",
            ));
        }
        _ => {}
    }
    let context = context.in_format(match args.format {
        Format::Text => context.format,
        other => other,
    });
    let all = Runs {
        rows: store.runs().all()?,
        workspace: &workspace,
        store: &store,
    };
    // Read first, because the new baseline may replace it.
    let baseline = args.baseline.as_deref().map(baseline::read).transpose()?;
    let conditions = RunConditions {
        filter: args.filter,
        include: args.include,
    };
    let mut sides = select(&args.sides, &conditions, baseline.as_ref(), &all)?;
    if let (Some(file), Some(newest)) = (&args.write_baseline, sides.last()) {
        baseline::write(file, &newest.runs)?;
        if baseline.is_none() {
            print_baseline(file, &newest.summary, &context)?;
            return Ok(ExitCode::Success);
        }
    }
    sides.splice(0..0, baseline);
    let report = report(sides, &all, args.floor)?;
    if let Some(file) = &args.junit {
        formats::write(file, &formats::junit(&report))?;
    }
    if let Some(file) = &args.markdown {
        formats::write(file, &formats::markdown(&report))?;
    }
    if context.format == Format::Csv {
        let rows = report.rows.iter().map(serde_json::to_value);
        print(&csv(&formats::COLUMNS, &rows.collect::<Result<Vec<_>, _>>()?))?;
    } else {
        context.print(&report, || tables::comparisons(&report))?;
    }
    Ok(
        if report
            .rows
            .iter()
            .any(|row| row.verdict == ComparisonVerdict::Worse)
        {
            ExitCode::Negative
        } else {
            ExitCode::Success
        },
    )
}

fn print_baseline(file: &Path, written: &ComparedSide, context: &Context) -> Result<(), Failure> {
    let document =
        serde_json::json!({ "baseline": file, "runs": written.runs, "excluded": written.excluded });
    context.print(&document, || {
        let excluded = wording::excluded(written);
        format!(
            "{}: {}{excluded}",
            file.display(),
            wording::count_of_runs(written.runs)
        )
    })?;
    Ok(())
}
