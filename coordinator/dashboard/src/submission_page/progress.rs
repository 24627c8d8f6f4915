//! The progress of a submission: the complete and the missing parts of each result, with the next command.

use maud::{Markup, html};

use super::table::table;
use crate::outside_text::{NAME, SENTENCE, shown};
use regatta_lab_views::{
    submission_status::{PartState, PartStatus, ResultStatus, SubmissionStatus},
    wording,
};

/// The maximum number of reasons, and of next commands, to list.
const MAX_LINES: usize = 10;

pub(super) fn section(status: &SubmissionStatus) -> Markup {
    html! {
        @if status.results.is_empty() {
            p { "No benchmark of " (status.round) " was measured yet: " code { "regatta run --device NAME --benchmark NAME --submission" } }
        } @else {
            (table("Progress", &["Device", "Benchmark", "Scenario", "Accuracy", "Performance", "Audits"], &html! {
                @for result in &status.results { (row(result)) }
            }))
            @let reasons = status.reasons();
            ul { @for reason in reasons.iter().take(MAX_LINES) { li { (shown(reason, SENTENCE)) } } }
            (more(reasons.len()))
            @let commands = status.next_commands();
            @if !commands.is_empty() {
                p { "Next:" }
                ul { @for command in commands.iter().take(MAX_LINES) { li { code { (shown(command, SENTENCE)) } } } }
                (more(commands.len()))
            }
            p .note { "The same with " code { "regatta submission status" } "." }
        }
    }
}

fn row(result: &ResultStatus) -> Markup {
    html! {
        tr role="row" {
            th role="rowheader" scope="row" data-title="Device" { (shown(&result.device_name, NAME)) }
            td role="cell" data-title="Benchmark" {
                (shown(&result.benchmark, NAME))
                @if result.power.is_some() { " MaxQ" }
            }
            td role="cell" data-title="Scenario" { (result.scenario) }
            td role="cell" data-title="Accuracy" { (part(None, &result.accuracy)) }
            td role="cell" data-title="Performance" { (part(None, &result.performance)) }
            td role="cell" data-title="Audits" {
                @if result.audits.is_empty() { "none required" }
                ul .plain { @for (name, audit) in &result.audits { li { (part(Some(name), audit)) } } }
            }
        }
    }
}

/// Renders a part as a badge that links to its run, with its figure or the reason for its state.
fn part(name: Option<&str>, part: &PartStatus) -> Markup {
    let (class, word) = match part.state {
        PartState::Missing => ("plain", "missing"),
        PartState::Open => ("plain", "running"),
        PartState::Failed => ("bad", "failed"),
        PartState::Rehearsal => ("warn", "rehearsal"),
        PartState::Done => ("good", "done"),
    };
    let text = html! { @if let Some(name) = name { (shown(name, NAME)) " " } (word) };
    html! {
        @match part.run {
            Some(run) => { a class={ "badge v-" (class) } href={ "/run/" (run) } title=(wording::short_id(run)) { (text) } },
            None => { span class={ "badge v-" (class) } { (text) } },
        }
        @if let (Some(figure), None) = (&part.figure, name) { " " strong { (shown(figure, NAME)) } }
    }
}

fn more(count: usize) -> Markup {
    html! {
        @if count > MAX_LINES { p .note { (count - MAX_LINES) " more are not listed." } }
    }
}
