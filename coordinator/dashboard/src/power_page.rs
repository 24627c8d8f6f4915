//! The page of a power session: its result and both checkers' verdicts, watts over the phases, the meter, the runs and the files. It has
//! what `regatta power show` prints.

mod files;
mod watts_chart;

use maud::{Markup, html};
use regatta_submission_check::{
    check::power::{PowerTimeline, timelines},
    tree::Tree,
};
use regatta_text::ErrorChain;
use regatta_types::{RunId, documents::PowerSessionRecord};
use serde_json::Value;

pub(super) use self::files::file;
use super::{
    layout::{self, Page},
    outside_text::{NAME, SENTENCE, UNKNOWN, shown},
    power_list_page::badge,
};
use regatta_lab_power::read_session_record;
use regatta_lab_store::{PowerSessionRow, Store, workspace::Workspace};
use regatta_lab_views::wording;

/// The number of texts of a list that are shown.
const MAX_TEXTS: usize = 100;

/// A session with the contents of its directory.
pub(super) struct SessionView {
    row: PowerSessionRow,
    record: Option<PowerSessionRecord>,
    /// Why there is a record that cannot be shown.
    unreadable: Option<String>,
    device: String,
    timelines: Vec<PowerTimeline>,
}

impl SessionView {
    /// Reads a session. `None` when no session has this id. It blocks.
    pub(super) fn read(id: &str, store: &Store, workspace: &Workspace) -> anyhow::Result<Option<Self>> {
        let Some(row) = store.power_sessions().get(id)? else {
            return Ok(None);
        };
        let directory = workspace.power_session(&row.id);
        let names = store.devices().names()?;
        let name = names.iter().find(|(known, _)| known.as_str() == row.device);
        let (record, unreadable) = match read_session_record(&directory) {
            Ok(record) => (record, None),
            Err(error) => (None, Some(ErrorChain(&error).to_string())),
        };
        Ok(Some(Self {
            record,
            unreadable,
            device: name.map_or_else(|| row.device.clone(), |(_, name)| name.clone()),
            // A session that has just begun has no directory.
            timelines: Tree::scan(&directory.join("session"))
                .map_or_else(|_| Vec::new(), |tree| timelines(&tree, "")),
            row,
        }))
    }
}

/// Renders the page.
pub(super) fn page(view: &SessionView) -> Page {
    let row = &view.row;
    let title = format!(
        "{} {} on {} with {}",
        shown(&row.benchmark, NAME),
        shown(&row.scenario, NAME),
        shown(&view.device, NAME),
        shown(&row.meter, NAME)
    );
    let content = html! {
        p .path { a href="/power" { "Power sessions" } " / " code { (row.id) } }
        h1 { (title) }
        (verdict(view))
        (facts(view))
        section { h2 { "Power over time" } (watts_chart::render(&view.timelines)) }
        @if let Some(record) = &view.record {
            @if !record.informative { section { h2 { "Official checks" } (official_checks(record)) } }
            section { h2 { "Findings of Regatta's check" } (texts(&record.findings, if record.verdict.is_some() { "None." } else { "Not checked." })) }
            section { h2 { "Files" } (files::list(&row.id, record)) }
        }
        p .note {
            "The same with " code { "regatta power show " (row.id) } ". As JSON: "
            a href={ "/api/v1/power-sessions/" (row.id) } { "/api/v1/power-sessions/" (row.id) } "."
        }
    };
    layout::page(&title, Some("/power"), None, &content)
}

fn verdict(view: &SessionView) -> Markup {
    let row = &view.row;
    let energy = view.record.as_ref().and_then(|record| record.energy.as_ref());
    html! {
        p .headline { (badge(row)) @if let Some(energy) = energy { " " strong { (wording::energy(energy)) } } }
        @if row.simulated == Some(true) {
            p .alarm { "Rehearsal: PTDaemon is simulated (FAKEPTD). Nothing here is a measurement." }
        }
        @if view.record.as_ref().is_some_and(|record| record.informative) {
            p .alarm { "Informative: Regatta's own power programs made it. It can never be submitted." }
        }
        @if let Some(sentence) = &view.unreadable { p .alarm { (shown(sentence, SENTENCE)) } }
        @if let Some(reason) = row.reason() {
            h2 { "Why it has no result" }
            @for line in reason.lines().take(MAX_TEXTS) { p { (shown(line, SENTENCE)) } }
        }
        @if !row.obstacles.is_empty() {
            h2 { "Why it cannot be submitted" }
            (texts(&row.obstacles, ""))
        }
    }
}

fn facts(view: &SessionView) -> Markup {
    let row = &view.row;
    let record = view.record.as_ref();
    let texts = [
        ("Machine of the client", record.map(|record| &record.machine)),
        ("Round", record.map(|record| &record.round)),
        (
            "Device state",
            record
                .and_then(|record| record.state.as_ref())
                .map(|state| &state.name),
        ),
    ];
    let run = |run: Option<RunId>| {
        html! {
            @match run { Some(run) => { a href={ "/run/" (run) } { (wording::short_id(run)) } } None => { (UNKNOWN) } }
        }
    };
    html! {
        dl .facts {
            dt { "Meter" } dd { (shown(&row.meter, NAME)) (meter_settings(view)) }
            dt { "Device" } dd { (shown(&view.device, NAME)) " " code { (shown(&row.device, NAME)) } }
            @for (name, text) in texts {
                @if let Some(text) = text { dt { (name) } dd { (shown(text, NAME)) } }
            }
            dt { "Began" } dd { (wording::time(&row.begun)) }
            @if let Some(ended) = &row.ended { dt { "Ended" } dd { (wording::time(ended)) } }
            dt { "Runs" } dd { "ranging " (run(row.ranging)) ", testing " (run(row.testing)) }
        }
    }
}

/// Returns the settings of the meter that the session used.
fn meter_settings(view: &SessionView) -> Markup {
    let settings = view.record.as_ref().map(|record| &record.meter.settings);
    let fields = match serde_json::to_value(settings) {
        Ok(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let settings: Vec<(String, String)> = fields
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (key, text)
        })
        .collect();
    html! {
        @if !settings.is_empty() {
            details { summary { "Settings" } dl .facts { @for (key, value) in &settings { dt { (shown(key, NAME)) } dd { (shown(value, SENTENCE)) } } } }
        }
    }
}

fn official_checks(record: &PowerSessionRecord) -> Markup {
    let Some(checks) = record
        .official_checks
        .as_ref()
        .filter(|checks| !checks.is_empty())
    else {
        return html! { p { "The official checker reported nothing." } };
    };
    let summary = record.official_summary.as_deref().unwrap_or_default();
    html! {
        p { (shown(summary, SENTENCE)) "." }
        table .small role="table" aria-label="Official checks" {
            thead role="rowgroup" { tr role="row" {
                th role="columnheader" scope="col" { "Check" }
                th role="columnheader" scope="col" { "Result" }
            } }
            tbody role="rowgroup" {
                @for check in checks.iter().take(MAX_TEXTS) {
                    tr role="row" {
                        th role="rowheader" scope="row" data-title="Check" { (shown(&check.name, SENTENCE)) }
                        td role="cell" data-title="Result" {
                            @if check.passed { span .badge .v-good { "passed" } } @else { span .badge .v-bad { "failed" } }
                        }
                    }
                }
            }
        }
    }
}

fn texts(texts: &[String], without: &str) -> Markup {
    html! {
        @if texts.is_empty() { p { (without) } } @else {
            ul { @for text in texts.iter().take(MAX_TEXTS) { li { (shown(text, SENTENCE)) } } }
        }
        @if texts.len() > MAX_TEXTS { p .note { (texts.len() - MAX_TEXTS) " more are not listed." } }
    }
}
