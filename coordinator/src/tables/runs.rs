//! Tables of runs.

use comfy_table::{Cell, ContentArrangement};
use jiff::Timestamp;
use regatta_text::{Escaped, escape};

use super::{cell, fits, keep_whole, right, table};
use regatta_lab_runs::marker_reasons;
use regatta_lab_store::{RunRow, StreamRow, workspace::RunDir};
use regatta_lab_views::wording::{self, run_figures, run_problems, run_text, short_id, stream_state};

/// Formats the notes on a run. The number is the longest text in characters.
type Note = fn(&RunRow, usize) -> String;
/// The longest note on a run that has a line, and on one that has two lines.
const MAX_NOTE: [usize; 2] = [56, 24];

/// Formats runs, one line each, or two on a narrow terminal. The reasons of failed runs are printed apart from it ([`wording::why_not`]).
pub(crate) fn runs(rows: &[RunRow]) -> String {
    arranged(rows, |row, _| run_text::notes(row))
}

/// Formats runs as [`runs`], with the beginning of the reason of failed and aborted ones.
pub(crate) fn listed_runs(rows: &[RunRow]) -> String {
    arranged(rows, run_text::notes_or_reason)
}

fn arranged(rows: &[RunRow], note: Note) -> String {
    let now = Timestamp::now();
    let wide = a_line_each(rows, now, note);
    if fits(&wide) {
        wide
    } else {
        two_lines_each(rows, now, note)
    }
}

pub(super) fn a_line_each(rows: &[RunRow], now: Timestamp, note: Note) -> String {
    /// A column: its title, whether it is left out when it is empty, and the cell of a run.
    type Column<'a> = (String, bool, Box<dyn Fn(&RunRow) -> Cell + 'a>);
    fn column<'a>(title: &str, is_optional: bool, of: impl Fn(&RunRow) -> Cell + 'a) -> Column<'a> {
        (title.to_owned(), is_optional, Box::new(of))
    }
    let columns = [
        column("run", false, |row| cell(short_id(row.id))),
        column("device", false, |row| cell(run_text::device(row))),
        column("benchmark", false, |row| cell(&row.benchmark)),
        column("scenario", false, |row| cell(row.scenario)),
        column("mode", false, |row| cell(run_text::mode(row))),
        column("engine", false, |row| cell(row.draft.spec.engine.kind)),
        column("settings", true, |row| cell(run_text::settings_and_state(row))),
        column("campaign", true, |row| {
            cell(run_text::campaign(row).unwrap_or_default())
        }),
        column(&format!("started ({})", wording::zone_name(now)), false, |row| {
            cell(run_text::started(row, now).unwrap_or_default())
        }),
        column("took", false, |row| {
            right(run_text::took(row).unwrap_or_default())
        }),
        column("state", false, |row| cell(run_text::state(row))),
        column("figure", false, |row| {
            right(run_text::figure(row).unwrap_or_default())
        }),
        column("accuracy", true, |row| {
            right(run_text::accuracy(row).unwrap_or_default())
        }),
        column("note", true, |row| cell(note(row, MAX_NOTE[0]))),
    ];
    let mut titles = Vec::new();
    let mut cells: Vec<Vec<Cell>> = vec![Vec::new(); rows.len()];
    for (title, is_optional, of) in &columns {
        let values: Vec<Cell> = rows.iter().map(of).collect();
        if *is_optional && values.iter().all(|cell| cell.content().is_empty()) {
            continue;
        }
        titles.push(title.as_str());
        cells
            .iter_mut()
            .zip(values)
            .for_each(|(row, cell)| row.push(cell));
    }
    let mut table = table(titles);
    table.set_content_arrangement(ContentArrangement::Disabled);
    for row in cells {
        table.add_row(row);
    }
    table.trim_fmt()
}

pub(super) fn two_lines_each(rows: &[RunRow], now: Timestamp, note: Note) -> String {
    let mut table = table(["run", "benchmark", "result"]);
    for row in rows {
        let figures = [run_text::figure(row), run_text::accuracy(row)];
        let figures: Vec<String> = figures.into_iter().flatten().collect();
        let time = [run_text::started(row, now), run_text::took(row)];
        let engine = format!(
            "{} {}",
            row.draft.spec.engine.kind,
            run_text::settings_and_state(row)
        );
        let origin: Vec<String> = [run_text::device(row), engine.trim_end().to_owned()]
            .into_iter()
            .chain(run_text::campaign(row))
            .chain(time.into_iter().flatten())
            .collect();
        table.add_row([
            short_id(row.id),
            format!(
                "{} {} {}\n{}",
                escape(&row.benchmark),
                row.scenario,
                run_text::mode(row),
                origin.join(", ")
            ),
            format!(
                "{} {}\n{}",
                run_text::state(row),
                figures.join(", "),
                note(row, MAX_NOTE[1])
            ),
        ]);
    }
    keep_whole(&mut table, 0);
    table.trim_fmt()
}

/// Formats one run with its streams.
pub(crate) fn run(row: &RunRow, streams: &[StreamRow], dir: &RunDir) -> String {
    let spec = &row.draft.spec;
    let has_result = run_text::has_result(row);
    let mut lines = Vec::new();
    if !has_result {
        lines.push(format!("state      {}", run_text::result(row)));
    }
    lines.extend([
        format!("run        {}", row.id),
        format!("device     {} ({})", run_text::device(row), row.device),
        format!(
            "benchmark  {}, {} {}, round {}",
            escape(&row.benchmark),
            row.scenario,
            run_text::task(row),
            escape(&spec.round)
        ),
        format!(
            "engine     {}, LoadGen {}",
            spec.engine.kind,
            Escaped(&spec.loadgen)
        ),
    ]);
    let settings = run_text::settings_and_state(row);
    if !settings.is_empty() {
        lines.push(format!("settings   {settings}"));
    }
    lines.extend(row.campaign_cell.as_ref().map(|cell| {
        let variant = cell
            .variant
            .as_deref()
            .map_or_else(String::new, |name| format!(", variant {}", escape(name)));
        format!(
            "campaign   {}, cell {}{variant}",
            escape(&cell.campaign),
            cell.cell
        )
    }));
    lines.extend(row.note.iter().map(|note| format!("note       {}", escape(note))));
    if let Some(start) = run_text::start(row) {
        let took = run_text::took(row).map_or_else(String::new, |took| format!(", took {took}"));
        lines.push(format!("started    {}{took}", wording::time(&start.to_string())));
    }
    if has_result {
        let waits = run_text::waits_for(row).map_or_else(String::new, |why| format!(": {why}"));
        lines.push(format!("state      {}{waits}", row.shown_phase()));
    }
    let gate = spec.gate.iter();
    lines.extend(gate.map(|gate| format!("gate       {gate}")));
    if row.pending_abort.is_some() {
        lines.push(format!(
            "abort      pending: {} aborts it when it reconnects",
            run_text::device(row)
        ));
    }
    if has_result && row.outcome.is_some() {
        lines.push(format!("result     {}", run_text::result(row)));
        if !row.is_good() {
            let reasons = run_problems(row).into_iter();
            lines.extend(reasons.map(|reason| format!("reason     {}", escape(&reason))));
        }
    }
    lines.extend(run_figures(row).map(|figures| format!("figures    {figures}")));
    let reasons = marker_reasons(row).into_iter();
    lines.extend(reasons.map(|found| format!("{}: {}", found.marker, escape(&found.reason))));
    if let Some(outcome) = &row.outcome {
        let loaded = outcome.loaded_engine.as_deref().map(escape);
        lines.extend(loaded.map(|engine| format!("loaded     {engine}")));
        // Without a start, LoadGen did not run.
        let measured = spec.task.is_measurement() && outcome.judgement.timing.is_some();
        let agent = outcome.window.as_ref().filter(|_| measured).map(wording::window);
        lines.extend(agent.map(|agent| format!("agent      {agent} while LoadGen ran")));
    }
    let contradictions = row.outcome.iter().flat_map(|outcome| &outcome.contradictions);
    lines.extend(contradictions.map(|what| format!("contradiction: {}", escape(what))));
    let warnings = row.outcome.iter().flat_map(|outcome| &outcome.warnings);
    lines.extend(warnings.map(|what| format!("warning: {}", escape(what))));
    lines.push(format!("directory  {}", dir.path().display()));
    if let Some(of) = &spec.audit {
        let accuracy = of.accuracy.map_or_else(String::new, |run| format!(" and {run}"));
        lines.push(format!(
            "audits     {} of {}{accuracy}",
            escape(&of.test),
            of.performance
        ));
    }
    lines.extend(wording::audit(row));
    lines.extend(super::device_state::of(row));
    if !streams.is_empty() {
        let mut table = table(["file", "bytes", "state"]);
        for stream in streams {
            table.add_row([
                cell(&stream.name),
                right(stream.committed),
                cell(stream_state(stream)),
            ]);
        }
        lines.push(String::new());
        lines.push(table.trim_fmt());
    }
    lines.join("\n")
}
