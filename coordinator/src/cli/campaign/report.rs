//! `regatta campaign report`: every cell with all its attempts and their runs.

use std::collections::BTreeMap;

use regatta_types::{ExitCode, documents::EndCause};
use serde::Serialize;
use serde_json::Value;

use super::{
    super::csv::csv,
    Context, campaign,
    context::{Format, print, text_json_or_csv},
};
use crate::{
    exit::{CommandResult, Failure},
    tables::{self, ReportLine},
};
use regatta_lab_store::{AttemptRow, CampaignRow, CellRow, CellState, RunRow, Store};
use regatta_lab_views::documents::{
    CampaignSummary, CellSubject, RunDocument, campaign_summary, cell_subject, device_name, run_document,
    subject_of_cell,
};

/// The columns of the CSV form, a line for each attempt: a name, and where the attempt's document has the value.
const COLUMNS: [(&str, &str); 26] = [
    ("cell", "/cell"),
    ("combination", "/combination"),
    ("repetition", "/repetition"),
    ("benchmark", "/benchmark"),
    ("scenario", "/scenario"),
    ("mode", "/mode"),
    ("audit", "/audit"),
    ("engine", "/engine"),
    ("device_state", "/state"),
    ("variant", "/variant"),
    ("cell_state", "/cell_state"),
    ("attempt", "/attempt/attempt"),
    ("device", "/attempt/device"),
    ("device_name", "/attempt/device_name"),
    ("run", "/attempt/run"),
    ("requested", "/attempt/requested"),
    ("ended", "/attempt/ended"),
    ("cause", "/attempt/cause"),
    ("reason", "/attempt/reason"),
    ("valid", "/attempt/result/valid"),
    ("figure", "/attempt/result/figure/value"),
    ("figure_unit", "/attempt/result/figure/unit"),
    ("value", "/attempt/result/metric/value"),
    ("unit", "/attempt/result/metric/unit"),
    ("accuracy", "/attempt/result/accuracy/value"),
    ("markers", "/attempt/result/markers"),
];

/// Flags of `campaign report`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ReportArgs {
    /// The campaign [default: the one that has not ended, or the last one]
    name: Option<String>,
    /// Output format
    // The global flag's name and type, with one value more.
    #[arg(long, value_parser = text_json_or_csv(), default_value = "text")]
    format: Format,
}

#[derive(Serialize)]
struct ReportDocument<'a> {
    #[serde(flatten)]
    summary: CampaignSummary,
    plan_sha256: &'a str,
    seed: u64,
    report: Vec<CellDocument<'a>>,
}

#[derive(Serialize)]
struct CellDocument<'a> {
    cell: u64,
    repetition: u64,
    #[serde(flatten)]
    subject: CellSubject,
    cell_state: CellState,
    cause: Option<EndCause>,
    reason: Option<&'a str>,
    attempts: Vec<AttemptDocument<'a>>,
}

#[derive(Serialize)]
struct AttemptDocument<'a> {
    attempt: u64,
    device: &'a str,
    device_name: String,
    run: Option<String>,
    requested: &'a str,
    ended: Option<&'a str>,
    cause: Option<EndCause>,
    reason: Option<&'a str>,
    /// The run as `runs show` prints it. `None` when the run was removed, or there never was one.
    result: Option<RunDocument<'a>>,
}

/// Prints the report.
pub(super) fn run(args: &ReportArgs, context: &Context) -> CommandResult {
    let (_, store) = context.open_store()?;
    let row = campaign(&store, args.name.as_deref())?;
    let report = CampaignReport::read(&row, &store)?;
    match args.format {
        Format::Csv => print(&report.csv()?)?,
        _ => context.print(&report.document()?, || report.text())?,
    }
    let is_good = report.cells.iter().all(|cell| cell.state == CellState::Good);
    Ok(if is_good {
        ExitCode::Success
    } else {
        ExitCode::Negative
    })
}

struct CampaignReport<'a> {
    row: &'a CampaignRow,
    summary: CampaignSummary,
    subjects: Vec<CellSubject>,
    cells: Vec<CellRow>,
    attempts: BTreeMap<u64, Vec<(AttemptRow, Option<RunRow>)>>,
    names: BTreeMap<regatta_types::DeviceId, String>,
}

impl<'a> CampaignReport<'a> {
    fn read(row: &'a CampaignRow, store: &Store) -> Result<Self, Failure> {
        let mut cells = store.cells().of_campaign(&row.name)?;
        cells.sort_by_key(|cell| cell.number);
        let mut attempts: BTreeMap<u64, Vec<_>> = BTreeMap::new();
        for attempt in store.attempts().of_campaign(&row.name)? {
            let run = attempt.run.map_or(Ok(None), |run| store.runs().get(run))?;
            attempts.entry(attempt.cell).or_default().push((attempt, run));
        }
        let combinations = store.cells().combinations(&row.name)?;
        Ok(Self {
            row,
            summary: campaign_summary(row, store)?,
            subjects: combinations.iter().map(cell_subject).collect(),
            cells,
            attempts,
            names: store.devices().names()?,
        })
    }

    fn attempts_of(&self, cell: &CellRow) -> &[(AttemptRow, Option<RunRow>)] {
        self.attempts.get(&cell.number).map_or(&[], Vec::as_slice)
    }

    fn cell_document<'s>(&'s self, cell: &'s CellRow) -> CellDocument<'s> {
        let attempts = self.attempts_of(cell).iter();
        CellDocument {
            cell: cell.number,
            repetition: cell.repetition,
            subject: subject_of_cell(cell, &self.subjects),
            cell_state: cell.state,
            cause: cell.cause,
            reason: cell.reason.as_deref(),
            attempts: attempts
                .map(|(attempt, run)| AttemptDocument {
                    attempt: attempt.number,
                    device: attempt.device.as_str(),
                    device_name: device_name(&attempt.device, &self.names),
                    run: attempt.run.map(|run| run.to_string()),
                    requested: &attempt.requested,
                    ended: attempt.ended.as_deref(),
                    cause: attempt.cause,
                    reason: attempt.reason.as_deref(),
                    result: run.as_ref().map(run_document),
                })
                .collect(),
        }
    }

    fn document(&self) -> Result<Value, Failure> {
        Ok(serde_json::to_value(ReportDocument {
            summary: self.summary.clone(),
            plan_sha256: &self.row.plan_sha256,
            seed: self.row.seed,
            report: self.cells.iter().map(|cell| self.cell_document(cell)).collect(),
        })?)
    }

    /// Returns a line for each attempt, and one for each cell without any.
    fn csv(&self) -> Result<String, Failure> {
        let mut lines = Vec::new();
        for cell in &self.cells {
            let mut document = serde_json::to_value(self.cell_document(cell))?;
            let attempts = match document["attempts"].take() {
                Value::Array(attempts) if !attempts.is_empty() => attempts,
                _ => vec![Value::Null],
            };
            for attempt in attempts {
                document["attempt"] = attempt;
                lines.push(document.clone());
            }
        }
        Ok(csv(&COLUMNS, &lines))
    }

    fn text(&self) -> String {
        let mut lines = Vec::new();
        for cell in &self.cells {
            let attempts = self.attempts_of(cell);
            let is_running = attempts.iter().any(|(attempt, _)| attempt.ended.is_none());
            let line = |attempt: Option<&(AttemptRow, Option<RunRow>)>| ReportLine {
                cell: cell.number,
                repetition: cell.repetition,
                subject: subject_of_cell(cell, &self.subjects),
                cell_state: if is_running {
                    "running"
                } else {
                    cell.state.as_str()
                },
                attempt: attempt.map(|(attempt, _)| attempt.clone()),
                device: attempt.map(|(attempt, _)| device_name(&attempt.device, &self.names)),
                run: attempt.and_then(|(_, run)| run.clone()),
                cause: cell.cause,
                reason: cell.reason.clone(),
            };
            lines.extend(attempts.iter().map(|attempt| line(Some(attempt))));
            let is_explained =
                |(last, _): &(AttemptRow, _)| cell.reason.is_none() || last.reason == cell.reason;
            if !attempts.last().is_some_and(is_explained) {
                lines.push(line(None));
            }
        }
        tables::campaign_report(&self.summary, &lines)
    }
}
