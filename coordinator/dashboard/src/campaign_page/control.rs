//! The requests of operators to a campaign: the forms, and the log of requests.

use maud::{Markup, html};

use super::snapshot::CampaignSnapshot;
use crate::{
    access::Controls,
    action_forms,
    outside_text::{NAME, path_segment, shown},
};
use regatta_lab_views::wording;

/// The number of log entries that are shown.
const MAX_ENTRIES: usize = 50;

/// Renders the actions that the campaign's state permits.
pub(super) fn actions(snapshot: &CampaignSnapshot, controls: &Controls) -> Markup {
    let (status, summary) = (&snapshot.status, &snapshot.status.summary);
    let path = |action: &str| format!("/campaign/{}/{action}", path_segment(&summary.campaign));
    let mut forms = Vec::new();
    if summary.ended.is_none() && !snapshot.is_aborted {
        forms.push(match summary.state {
            "paused" => action_forms::form(controls, &path("resume"), "Continue", &html! {}),
            _ => action_forms::form(
                controls,
                &path("pause"),
                "Pause: begin no further attempt",
                &html! {},
            ),
        });
    }
    if !snapshot.is_aborted && !status.causes.is_empty() {
        let causes = html! {
            label { "Cells that failed by "
                select name="cause" {
                    @for (cause, count) in &status.causes { option value=(cause) { (cause) " (" (count) ")" } }
                }
            }
        };
        forms.push(action_forms::form(controls, &path("retry"), "Try again", &causes));
    }
    action_forms::section(controls, &forms)
}

/// Renders the log of requests, newest first.
pub(super) fn log(snapshot: &CampaignSnapshot) -> Markup {
    html! {
        section #log {
            @if !snapshot.log.is_empty() {
                h2 { "Requests" }
                table role="table" aria-label="Requests" {
                    thead role="rowgroup" { tr role="row" {
                        @for title in ["Time", "Request", "By"] { th role="columnheader" scope="col" { (title) } }
                    } }
                    tbody role="rowgroup" {
                        @for entry in snapshot.log.iter().rev().take(MAX_ENTRIES) {
                            tr role="row" {
                                th role="rowheader" scope="row" data-title="Time" { (wording::time(&entry.at)) }
                                td role="cell" data-title="Request" {
                                    (entry.change)
                                    @if let Some(cause) = entry.cause { ": cells that failed by " (cause) }
                                }
                                td role="cell" data-title="By" { (shown(&entry.by, NAME)) }
                            }
                        }
                    }
                }
                @if snapshot.log.len() > MAX_ENTRIES {
                    p .note { "Older ones: " code { "regatta campaign log " (shown(&snapshot.status.summary.campaign, NAME)) } }
                }
            }
        }
    }
}
