//! Formats results for people as aligned tables. Programs get JSON from the commands themselves.

mod assets;
mod campaign_log;
mod campaigns;
mod comparisons;
mod device_state;
mod devices;
mod health;
mod history;
mod meters;
mod page_tokens;
mod power;
mod quickstart;
mod runs;
mod settings;
mod sparkline;
mod status;
mod submission;
#[cfg(test)]
mod tests;

use std::io;

pub(crate) use assets::assets;
pub(crate) use campaign_log::campaign_log;
pub(crate) use campaigns::{ReportLine, campaign_plan, campaign_report, campaign_status, campaigns};
use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle, Width,
};
pub(crate) use comparisons::comparisons;
pub(crate) use devices::{device, devices, labels};
pub(crate) use health::{health, health_log};
pub(crate) use history::histories;
pub(crate) use meters::meters;
pub(crate) use page_tokens::page_tokens;
pub(crate) use power::{power_session, power_sessions, preflight};
pub(crate) use quickstart::{Comparison, UnmetRule, quickstart, rules};
use regatta_text::escape;
pub(crate) use runs::{listed_runs, run, runs};
pub(crate) use settings::settings;
pub(crate) use status::{
    BrokerStatus, CoordinatorStatus, DeviceStatus, DiskStatus, LabStatus, TokenStatus, status,
};
pub(crate) use submission::submission_status;

/// A header, a rule below it, and aligned columns.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Creates a table that is as wide as its content. On a terminal, it is at most as wide as the terminal, and text wraps within its column. In a pipe,
/// each row stays on one line.
fn table<'a>(headline: impl IntoIterator<Item = &'a str>) -> Table {
    let mut table = sized_table();
    table
        .load_style(STYLE)
        .set_header(headline.into_iter().map(Cell::new).collect::<Vec<_>>());
    table
}

/// Creates a table of names and values, without a header.
fn facts_table() -> Table {
    let mut table = sized_table();
    table.load_style(TableStyle::new());
    table
}

/// Creates a table that is at most as wide as the terminal, if there is one.
fn sized_table() -> Table {
    let mut table = Table::new();
    if let Some(columns) = terminal_columns() {
        table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(columns);
    }
    table
}

/// Returns the width of the terminal, if results go to one.
fn terminal_columns() -> Option<u16> {
    regatta_terminal::columns(&io::stdout()).and_then(|columns| u16::try_from(columns).ok())
}

/// Returns whether a table fits the terminal.
fn fits(table: &str) -> bool {
    let most = table.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    terminal_columns().is_none_or(|columns| most <= usize::from(columns))
}

/// Keeps a column from wrapping, for ids that are copied.
fn keep_whole(table: &mut Table, column: usize) {
    if let Some(column) = table.column_mut(column) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
}

/// Creates a cell. The value may come from anyone, so it is escaped to stay on one line and not control the terminal.
fn cell(text: impl ToString) -> Cell {
    Cell::new(escape(&text.to_string()))
}

/// Creates a right-aligned cell for numbers.
fn right(text: impl ToString) -> Cell {
    cell(text).set_alignment(CellAlignment::Right)
}

/// Keeps the words of a value together in [`plain`].
pub(crate) fn unbroken(value: &str) -> String {
    value.replace(' ', NO_BREAK)
}

/// The space in values whose words stay together. It is printed as an ordinary one.
const NO_BREAK: &str = "\u{a0}";

/// Formats plain text as a table. On a terminal that is too narrow for every column's longest word, formats a paragraph per row.
pub(crate) fn plain<const N: usize>(
    headline: [&str; N],
    lines: impl IntoIterator<Item = [String; N]>,
) -> String {
    let lines: Vec<[String; N]> = lines.into_iter().collect();
    let mut table = table(headline);
    for line in &lines {
        table.add_row(line.each_ref().map(cell));
    }
    for column in 0..N {
        let cells = lines.iter().map(|line| line[column].as_str());
        let words = cells.chain([headline[column]]).flat_map(|text| text.split(' '));
        let longest = words.map(|word| escape(word).chars().count()).max().unwrap_or(0);
        if let Some(column) = table.column_mut(column) {
            let padded = u16::try_from(longest + 2).unwrap_or(u16::MAX);
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(padded)));
        }
    }
    let formatted = table.trim_fmt().replace(NO_BREAK, " ");
    if fits(&formatted) {
        formatted
    } else {
        paragraphs(headline, &lines)
    }
}

/// Formats each row as its first value, and every other value with its name on an indented line.
fn paragraphs<const N: usize>(headline: [&str; N], lines: &[[String; N]]) -> String {
    let widest = headline.iter().map(|name| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for line in lines {
        let mut values = headline.iter().zip(line);
        if let Some((_, first)) = values.next() {
            text.push_str(&format!("{}\n", escape(first)));
        }
        for (name, value) in values.filter(|(_, value)| !value.is_empty()) {
            let line = format!("  {name:<widest$}  {}", escape(value));
            text.push_str(&hanging(&line, widest + 4));
        }
    }
    text.trim_end().replace(NO_BREAK, " ")
}

/// Wraps a line to the terminal, its further parts indented by `indent` columns.
fn hanging(line: &str, indent: usize) -> String {
    let columns = terminal_columns().map_or(usize::MAX, usize::from);
    let (label, value) = line.split_at_checked(indent).unwrap_or((line, ""));
    let wrapped = regatta_text::wrap(value, columns.saturating_sub(indent).max(1))
        .replace('\n', &format!("\n{:indent$}", ""));
    format!("{label}{wrapped}\n")
}
