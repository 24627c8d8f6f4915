//! Tables of power sessions and of the checks before one.

use std::fmt::Write as _;

use regatta_text::{escape, escape_lines};
use regatta_types::documents::PowerSessionRecord;

use super::{cell, table};
use regatta_lab_power::PreflightLine;
use regatta_lab_store::PowerSessionRow;
use regatta_lab_views::wording::{self, power_result};

/// Formats the checks before a session, one line each, with a hint below a failed one.
pub(crate) fn preflight(lines: &[PreflightLine]) -> String {
    let line = |line: &PreflightLine| {
        let mark = if line.passed { "ok  " } else { "FAIL" };
        let hint = line
            .hint
            .as_ref()
            .map(|hint| format!("\n      hint: {}", escape(hint)));
        format!(
            "{mark}  {}: {}{}",
            line.subject,
            escape(&line.found),
            hint.unwrap_or_default()
        )
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Formats the record of a session.
pub(crate) fn power_session(record: &PowerSessionRecord) -> String {
    let mut text = format!(
        "session {}: {}",
        record.session,
        power_result(record.verdict, record.simulated)
    );
    // Writing to a String cannot fail.
    let mut line = |words: String| {
        let _ = write!(text, "\n  {words}");
    };
    if let Some(reason) = record.reason() {
        line(escape_lines(reason).replace('\n', "\n  "));
    }
    if let Some(summary) = &record.official_summary {
        line(format!("official checker: {}", escape(summary)));
    }
    for finding in &record.findings {
        line(escape(finding).into_owned());
    }
    if let Some(energy) = &record.energy {
        line(wording::energy(energy));
    }
    if let Some(rails) = &record.rails {
        line(format!(
            "rails: {:.3} W in the same window; the meter shows {:.3} times as much (informative)",
            rails.watts, rails.meter_over_rails
        ));
    }
    for observation in &record.observations {
        line(format!(
            "observed: {}  {}",
            escape(&observation.time),
            escape(&observation.text)
        ));
    }
    for obstacle in &record.obstacles {
        line(format!("cannot be submitted: {}", escape(obstacle)));
    }
    if record.informative {
        line("INFORMATIVE: Regatta's own power programs made it; it can never be submitted".to_owned());
    }
    if record.simulated == Some(true) {
        line("REHEARSAL: PTDaemon is simulated (FAKEPTD); nothing here is a measurement".to_owned());
    }
    line(format!("files: {}", record.directory));
    text
}

/// Formats sessions, one line each.
pub(crate) fn power_sessions(rows: &[PowerSessionRow]) -> String {
    if rows.is_empty() {
        return "no power sessions yet".to_owned();
    }
    let mut table = table(["session", "meter", "run", "result"]);
    super::keep_whole(&mut table, 0);
    for row in rows {
        let result = match (row.verdict, row.reason(), &row.ended) {
            (None, None, None) => "not ended".to_owned(),
            (verdict, reason, _) => {
                let word = power_result(verdict, row.simulated);
                match reason.and_then(|reason| reason.lines().next()) {
                    Some(reason) => format!("{word}: {}", escape(reason)),
                    None => word,
                }
            }
        };
        table.add_row([
            cell(&row.id),
            cell(&row.meter),
            cell(format!("{} {}", row.benchmark, row.scenario)),
            cell(result),
        ]);
    }
    table.trim_fmt()
}
