//! The table of a submission's progress.

use regatta_text::escape;

use super::plain;
use regatta_lab_views::submission_status::{PartState, PartStatus, ResultStatus, SubmissionStatus};

/// Formats the progress of a submission: one row per result, then the reasons why parts failed or cannot be submitted, then the next commands.
pub(crate) fn submission_status(status: &SubmissionStatus) -> String {
    if status.results.is_empty() {
        return format!(
            "no benchmark of round {} was measured yet: `regatta run --device NAME --benchmark NAME --submission`",
            status.round
        );
    }
    let rows = status.results.iter().map(|result| {
        [
            escape(&result.device_name).into_owned(),
            result.subject(),
            part(&result.accuracy),
            part(&result.performance),
            audits(result),
        ]
    });
    let mut lines = vec![
        format!("round {}, category {}", status.round, status.category),
        String::new(),
        plain(["device", "result", "accuracy", "performance", "audits"], rows),
    ];
    let reasons = status.reasons();
    if !reasons.is_empty() {
        lines.push(String::new());
        lines.extend(reasons);
    }
    lines.push(String::new());
    lines.extend(next(status));
    lines.join("\n")
}

fn part(part: &PartStatus) -> String {
    let word = match part.state {
        PartState::Missing => "missing",
        PartState::Open => part.detail.as_deref().unwrap_or("open"),
        PartState::Failed => "FAILED",
        PartState::Rehearsal => part.figure.as_deref().unwrap_or("rehearsal"),
        PartState::Done => part.figure.as_deref().unwrap_or("done"),
    };
    escape(word).into_owned()
}

fn audits(result: &ResultStatus) -> String {
    let audits: Vec<String> = result
        .audits
        .iter()
        .map(|(test, audit)| {
            let state = match audit.state {
                PartState::Done | PartState::Rehearsal => "passed".to_owned(),
                _ => part(audit),
            };
            format!("{} {state}", escape(test))
        })
        .collect();
    if audits.is_empty() {
        "none required".to_owned()
    } else {
        audits.join(", ")
    }
}

fn next(status: &SubmissionStatus) -> Vec<String> {
    let commands = status.next_commands();
    if !commands.is_empty() {
        return commands
            .into_iter()
            .map(|command| format!("next: {command}"))
            .collect();
    }
    if status.is_complete() {
        return vec![
            "complete; next: regatta submission stage --division closed --answers answers.toml --output submission"
                .to_owned(),
        ];
    }
    if status.is_rehearsed() {
        return vec!["rehearsed; next: regatta submission stage --rehearsal --output rehearsal".to_owned()];
    }
    vec!["runs have not ended: `regatta runs watch`".to_owned()]
}
