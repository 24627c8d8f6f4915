//! The progress of a submission: what each result has and what is missing, with the next command.

use maud::{Markup, html};

use super::table::table;
use crate::outside_text::{NAME, SENTENCE, shown};
use regatta_lab_views::{
    submission_status::{PartState, PartStatus, ResultStatus, SubmissionStatus},
    wording,
};

/// Renders the progress of every measured benchmark.
pub(super) fn section(status: &SubmissionStatus) -> Markup {
    html! {
        @if status.results.is_empty() {
            p { "No benchmark of " (status.round) " was measured yet: " code { "regatta run --device NAME --benchmark NAME --submission" } }
        } @else {
            (table("Progress", &["Device", "Result", "Accuracy", "Performance", "Audits", "Next"], &html! {
                @for result in &status.results { (row(result)) }
            }))
            p .note { "The same with " code { "regatta submission status" } "." }
        }
    }
}

fn row(result: &ResultStatus) -> Markup {
    html! {
        tr role="row" {
            th role="rowheader" scope="row" data-title="Device" { (shown(&result.device_name, NAME)) }
            td role="cell" data-title="Result" {
                (shown(&result.benchmark, NAME)) " " (result.scenario)
                @if result.power.is_some() { ", MaxQ" }
            }
            td role="cell" data-title="Accuracy" { (part(None, &result.accuracy)) }
            td role="cell" data-title="Performance" { (part(None, &result.performance)) }
            td role="cell" data-title="Audits" {
                @if result.audits.is_empty() { "none required" }
                ul .plain { @for (name, audit) in &result.audits { li { (part(Some(name), audit)) } } }
            }
            td role="cell" data-title="Next" {
                @if let Some(next) = &result.next { code { (shown(next, SENTENCE)) } }
            }
        }
    }
}

/// Renders a part as a badge that leads to its run, with its figure or the reason of its state.
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
        @if let Some(detail) = &part.detail { span .detail { (shown(detail, SENTENCE)) } }
    }
}
