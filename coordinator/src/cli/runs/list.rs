//! `regatta runs list`: selects runs and lists the newest of them, the newest last. Programs get all of them unless they ask for fewer.

use super::super::{
    Context,
    context::{Format, print, tell, text_json_or_csv},
    csv::csv,
};
use crate::{exit::Failure, tables};
use regatta_lab_runs::{RunVerdict, count_runs_not_in_store};
use regatta_lab_store::{RunRow, Store, workspace::Workspace};
use regatta_lab_views::{documents::run_document, lookup::RunFilter};

/// The number of runs that people get by default.
const DEFAULT_COUNT: usize = 30;

/// The columns of the CSV form: a name, and where the JSON form has the value.
const COLUMNS: [(&str, &str); 30] = [
    ("run", "/run"),
    ("device", "/device"),
    ("device_name", "/device_name"),
    ("benchmark", "/benchmark"),
    ("scenario", "/scenario"),
    ("mode", "/mode"),
    ("test", "/test"),
    ("engine", "/engine"),
    ("loadgen", "/loadgen"),
    ("phase", "/phase"),
    ("valid", "/valid"),
    ("metric", "/metric/name"),
    ("value", "/metric/value"),
    ("unit", "/metric/unit"),
    ("accuracy_metric", "/accuracy/metric"),
    ("accuracy", "/accuracy/value"),
    ("recorded", "/recorded"),
    ("reason", "/reason"),
    ("started", "/started"),
    ("duration_seconds", "/duration_seconds"),
    ("figure", "/figure/value"),
    ("figure_unit", "/figure/unit"),
    ("markers", "/markers"),
    ("settings", "/settings"),
    ("conf", "/conf"),
    ("requested_state", "/requested_state"),
    ("campaign", "/campaign"),
    ("cell", "/cell"),
    ("variant", "/variant"),
    ("note", "/note"),
];

/// Flags of `runs list`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  regatta runs list --device boat-1 --since 2h
      what boat-1 ran in the last two hours
  regatta runs list --campaign weekend/large --set gpu_batch_size=64
      the runs of one variant of a campaign, with a setting
  regatta runs list --verdict INVALID --format csv
      every invalid run, for a spreadsheet")]
pub(in crate::cli) struct Args {
    /// Number of runs, 0 for all [default: 30 as text, all as json and csv]
    #[arg(short = 'n', long, value_name = "COUNT")]
    count: Option<usize>,
    #[command(flatten)]
    filter: RunFilter,
    /// Runs with this verdict or state, comma separated
    #[arg(long, value_enum, ignore_case = true, value_delimiter = ',')]
    verdict: Vec<RunVerdict>,
    /// Output format
    // The global flag's name and type, with one value more.
    #[arg(long, value_parser = text_json_or_csv(), default_value = "text")]
    format: Format,
}

/// Lists the selected runs.
pub(super) fn run(
    args: &Args,
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> Result<(), Failure> {
    let unknown = count_runs_not_in_store(workspace, store)?;
    if unknown > 0 {
        tell(&format!(
            "{unknown} recorded runs in {} are missing from the store; hint: `regatta runs rebuild` adds them",
            workspace.runs().display()
        ));
    }
    let all = store.runs().all()?;
    let is_filtered = args.filter.selection(workspace, store, &all)?;
    let has_verdict =
        |row: &RunRow| args.verdict.is_empty() || args.verdict.iter().any(|verdict| verdict.is_of(row));
    let total = all.len();
    let mut rows: Vec<RunRow> = all
        .into_iter()
        .filter(|row| is_filtered(row) && has_verdict(row))
        .collect();
    let format = match args.format {
        Format::Text => context.format,
        other => other,
    };
    let most = args.count.unwrap_or(match format {
        Format::Text => DEFAULT_COUNT,
        _ => 0,
    });
    let older = match most {
        0 => 0,
        most => rows.len().saturating_sub(most),
    };
    rows.truncate(rows.len() - older);
    rows.reverse();
    if older > 0 {
        tell(&format!("{older} older runs are not listed; `-n 0` lists all"));
    }
    let documents: Vec<_> = rows.iter().map(run_document).collect();
    if format == Format::Csv {
        let rows = documents.iter().map(serde_json::to_value);
        print(&csv(&COLUMNS, &rows.collect::<Result<Vec<_>, _>>()?))?;
        return Ok(());
    }
    let context = context.in_format(format);
    context.print(&serde_json::json!({ "runs": documents, "older": older }), || {
        if total == 0 {
            "no runs yet: request one with `regatta run`".to_owned()
        } else if rows.is_empty() {
            format!("none of {total} runs is selected")
        } else {
            tables::listed_runs(&rows)
        }
    })?;
    Ok(())
}
