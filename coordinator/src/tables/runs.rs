//! Tables of runs.

use comfy_table::ContentArrangement;
use regatta_text::{Escaped, escape};
use regatta_types::documents::AccuracyResult;

use super::{cell, fits, keep_whole, right, table, words};
use crate::{
    store::{RunRow, StreamRow},
    workspace::RunDir,
};

/// Formats runs, one line each, or two on a narrow terminal.
pub(crate) fn runs(rows: &[RunRow]) -> String {
    let wide = a_line_each(rows);
    if fits(&wide) { wide } else { two_lines_each(rows) }
}

pub(super) fn a_line_each(rows: &[RunRow]) -> String {
    let mut table = table([
        "run",
        "benchmark",
        "scenario",
        "mode",
        "state",
        "result",
        "",
        "accuracy",
    ]);
    table.set_content_arrangement(ContentArrangement::Disabled);
    for row in rows {
        table.add_row([
            cell(row.id),
            cell(&row.benchmark),
            cell(row.scenario),
            cell(row.audit().unwrap_or(row.mode.as_str())),
            cell(row.shown_phase()),
            right(metric(row).unwrap_or_default()),
            cell(row.outcome.as_ref().map_or("", words::verdict)),
            right(accuracy(row).unwrap_or_default()),
        ]);
    }
    table.trim_fmt()
}

pub(super) fn two_lines_each(rows: &[RunRow]) -> String {
    let mut table = table(["run", "asked for", "came of it"]);
    for row in rows {
        let verdict = row.outcome.as_ref().map_or("", words::verdict);
        let values: Vec<String> = [metric(row), accuracy(row)].into_iter().flatten().collect();
        let phase = row.shown_phase().to_string();
        table.add_row([
            row.id.to_string(),
            format!(
                "{} {}\n{}",
                escape(&row.benchmark),
                row.scenario,
                escape(row.audit().unwrap_or(row.mode.as_str()))
            ),
            format!(
                "{} {}\n{}",
                phase,
                verdict.trim_matches('-'),
                escape(&values.join(", "))
            ),
        ]);
    }
    keep_whole(&mut table, 0);
    table.trim_fmt()
}

fn metric(row: &RunRow) -> Option<String> {
    row.outcome.as_ref()?.metric.as_ref().map(words::value)
}

fn accuracy(row: &RunRow) -> Option<String> {
    row.outcome.as_ref()?.accuracy.as_ref().map(words::accuracy)
}

/// Formats one run with its streams.
pub(crate) fn run(row: &RunRow, streams: &[StreamRow], dir: &RunDir) -> String {
    let spec = &row.draft.spec;
    let mut lines = vec![
        format!("run        {}", row.id),
        format!("device     {}", row.device),
        format!(
            "asked for  {}: {} {}, round {}",
            escape(&row.benchmark),
            row.scenario,
            row.mode,
            escape(&spec.round)
        ),
        format!(
            "engine     {}, LoadGen {}",
            spec.engine.kind,
            Escaped(&spec.loadgen)
        ),
        format!("state      {}", row.shown_phase()),
    ];
    // The result includes the reason.
    if row.outcome.is_some() {
        lines.push(format!("result     {}", result(row)));
    } else if let Some(reason) = &row.state.reason {
        lines.push(format!("reason     {}", escape(reason)));
    }
    if let Some(outcome) = &row.outcome {
        let agent = outcome.window.as_ref().map(words::window);
        lines.extend(agent.map(|agent| format!("agent      {agent} while LoadGen ran")));
        lines.extend(
            outcome
                .not_a_measurement
                .iter()
                .map(|why| format!("not a measurement: {}", escape(why))),
        );
    }
    let contradictions = row.outcome.iter().flat_map(|outcome| &outcome.contradictions);
    lines.extend(contradictions.map(|what| format!("contradiction: {}", escape(what))));
    lines.push(format!("directory  {}", dir.path().display()));
    if let Some(of) = &spec.audit {
        let accuracy = of.accuracy.map_or_else(String::new, |run| format!(" and {run}"));
        lines.push(format!(
            "audits     {} of {}{accuracy}",
            escape(&of.test),
            of.performance
        ));
    }
    lines.extend(super::audit(row));
    lines.extend(super::device_state::of(row));
    if !streams.is_empty() {
        let mut table = table(["file", "bytes", "state"]);
        for stream in streams {
            let state = match stream.stated_length {
                _ if stream.whole => "whole".to_owned(),
                Some(length) => format!("of {length}"),
                None => "on its way".to_owned(),
            };
            table.add_row([cell(&stream.name), right(stream.committed), cell(state)]);
        }
        lines.push(String::new());
        lines.push(table.trim_fmt());
    }
    lines.join("\n")
}

/// Formats the result of a run in one line.
pub(crate) fn result(row: &RunRow) -> String {
    let mut parts = vec![row.shown_phase().to_string()];
    if let Some(outcome) = &row.outcome {
        if outcome.valid.is_some() {
            parts.push(words::verdict(outcome).to_owned());
        }
        parts.extend(
            outcome
                .metric
                .as_ref()
                .map(|metric| format!("{} {}", metric.name, words::value(metric))),
        );
        parts.extend(
            outcome
                .accuracy
                .as_ref()
                .map(|found| format!("{} {}", found.metric, words::accuracy(found))),
        );
        parts.extend(outcome.not_judged.iter().cloned());
        if !outcome.complete {
            parts.push("incomplete".to_owned());
        }
    }
    parts.extend(row.state.reason.clone());
    escape(&parts.join(", ")).into_owned()
}

/// Formats why a run is not good.
pub(crate) fn why_not(row: &RunRow) -> String {
    let mut reasons: Vec<String> = row.state.reason.iter().cloned().collect();
    // For a failed run its reason is enough. The other problems follow from it.
    if let Some(outcome) = row.outcome.as_ref().filter(|_| reasons.is_empty()) {
        reasons.extend(outcome.reasons.iter().cloned());
        reasons.extend(outcome.not_judged.iter().cloned());
        reasons.extend(outcome.accuracy.as_ref().and_then(too_low));
        if !outcome.complete {
            reasons.push("not every file of the evidence is here".to_owned());
        }
        if outcome.signed != Some(true) {
            reasons.push("the evidence is not signed by the device".to_owned());
        }
        reasons.extend(outcome.audit.iter().filter_map(super::audits::why_not));
    }
    let mode = row.audit().unwrap_or(row.mode.as_str());
    format!(
        "{} {}: {}",
        row.scenario,
        escape(mode),
        escape(&reasons.join("; "))
    )
}

/// Formats an accuracy below its target.
fn too_low(found: &AccuracyResult) -> Option<String> {
    let target = found.target.filter(|_| !found.is_reached())?;
    let (metric, value) = (&found.metric, found.value);
    Some(format!("{metric} is {value:.3} %, {target:.3} % are needed"))
}
