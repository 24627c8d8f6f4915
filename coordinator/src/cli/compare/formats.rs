//! A comparison as CSV columns, JUnit XML and a Markdown table.

use std::{fmt::Write as _, path::Path};

use regatta_fsutil::atomic_file::AtomicFile;
use regatta_text::escape;

use crate::exit::Failure;
use regatta_lab_views::{
    comparisons::{ComparisonReport, ComparisonRow, ComparisonVerdict},
    wording::{comparison_interval, comparison_notes},
};

/// The columns of the CSV form: a name, and where the row's document has the value.
pub(super) const COLUMNS: [(&str, &str); 24] = [
    ("device", "/device"),
    ("benchmark", "/benchmark"),
    ("scenario", "/scenario"),
    ("mode", "/mode"),
    ("power", "/power"),
    ("length", "/length"),
    ("figure", "/figure"),
    ("unit", "/unit"),
    ("better", "/better"),
    ("runs_a", "/runs_a"),
    ("runs_b", "/runs_b"),
    ("median_a", "/median_a"),
    ("median_b", "/median_b"),
    ("pairs", "/pairs"),
    ("ratio", "/ratio"),
    ("low", "/interval/0"),
    ("high", "/interval/1"),
    ("bootstrap_low", "/bootstrap_interval/0"),
    ("bootstrap_high", "/bootstrap_interval/1"),
    ("floor", "/floor"),
    ("floor_pairs", "/floor_pairs"),
    ("verdict", "/verdict"),
    ("more_pairs", "/more_pairs"),
    ("separated", "/separated"),
];

pub(super) fn write(file: &Path, text: &str) -> Result<(), Failure> {
    AtomicFile::new(file)
        .write(text.as_bytes())
        .map_err(|error| Failure::from(error).context(format!("cannot write {}", file.display())))
}

/// Formats a test case per row. A worse row is a failure; one without a verdict is skipped.
pub(super) fn junit(report: &ComparisonReport) -> String {
    let count = |verdict: ComparisonVerdict| report.rows.iter().filter(|row| row.verdict == verdict).count();
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a `String` cannot fail.
    let _ = writeln!(
        text,
        "<testsuite name=\"regatta compare\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">",
        report.rows.len(),
        count(ComparisonVerdict::Worse),
        count(ComparisonVerdict::Undecided)
    );
    for row in &report.rows {
        let _ = write!(
            text,
            "  <testcase classname=\"{}\" name=\"{}\">",
            xml(&row.device),
            xml(&row.combination.text())
        );
        let sentence = xml(&sentence(row));
        let _ = match row.verdict {
            ComparisonVerdict::Worse => write!(text, "<failure message=\"{sentence}\"/>"),
            ComparisonVerdict::Undecided => write!(text, "<skipped message=\"{sentence}\"/>"),
            _ => write!(text, "<system-out>{sentence}</system-out>"),
        };
        text.push_str("</testcase>\n");
    }
    text.push_str("</testsuite>\n");
    text
}

/// Formats a table with the notes below it.
pub(super) fn markdown(report: &ComparisonReport) -> String {
    let mut text = String::from(
        "| device | benchmark | pairs | B / A | 95 % interval | floor | verdict |\n|---|---|--:|--:|---|--:|---|\n",
    );
    for row in &report.rows {
        let cells = [
            row.device.clone(),
            row.combination.text(),
            row.pairs.to_string(),
            format!("{:.3}", row.ratio),
            comparison_interval(row),
            format!("{:.1} %", row.floor * 100.0),
            row.verdict_text.clone(),
        ];
        let cells = cells.map(|cell| markdown_text(&cell));
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text.push('\n');
    for note in comparison_notes(report) {
        let _ = writeln!(text, "* {}", markdown_text(&note));
    }
    text
}

fn sentence(row: &ComparisonRow) -> String {
    format!(
        "{}; ratio {:.3} of {} pairs, 95 % interval {}, floor {:.1} %, {} is better",
        row.verdict_text,
        row.ratio,
        row.pairs,
        comparison_interval(row),
        row.floor * 100.0,
        row.better
    )
}

/// Escapes text for XML's elements and attributes. Control characters, which XML 1.0 cannot hold, become visible escapes.
fn xml(text: &str) -> String {
    escape(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Escapes characters that would end a cell or begin a tag, a link or emphasis.
fn markdown_text(text: &str) -> String {
    let mut escaped = String::new();
    for c in escape(text).chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '|' | '\\' | '`' | '*' | '[' | ']' => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_stay_text() {
        assert_eq!(xml("a<b>\"&\u{1b}[2J"), "a&lt;b&gt;&quot;&amp;\\u{1b}[2J");
        assert_eq!(markdown_text("a|b<img>[x](y)`"), "a\\|b&lt;img>\\[x\\](y)\\`");
    }
}
