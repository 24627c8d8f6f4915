//! Formats results for people as aligned tables. Programs get JSON from the commands themselves.

mod assets;
mod audits;
mod device_state;
mod devices;
mod figure;
mod meters;
mod power;
mod quickstart;
pub(crate) mod run_text;
mod runs;
mod settings;
mod status;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use assets::assets;
pub(crate) use audits::{accuracy_delta, audit, compared_scores};
use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle};
use console::Term;
pub(crate) use devices::{device, devices, labels};
pub(crate) use meters::meters;
pub(crate) use power::{energy, power_session, power_sessions, preflight};
pub(crate) use quickstart::{Comparison, UnmetRule, quickstart, rules};
use regatta_text::escape;
pub(crate) use runs::{run, runs, why_invalid, why_not};
pub(crate) use settings::settings;
pub(crate) use status::{
    BrokerStatus, CoordinatorStatus, DeviceStatus, DiskStatus, LabStatus, TokenStatus, status,
};
pub(crate) use words::{age, ago, bytes, time};

/// A header, a rule below it, and aligned columns.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Creates a table as wide as its content. On a terminal it is no wider than that, and text wraps within its column. In a pipe each row
/// stays on one line.
fn table<'a>(headline: impl IntoIterator<Item = &'a str>) -> Table {
    let mut table = Table::new();
    table
        .load_style(STYLE)
        .set_header(headline.into_iter().map(Cell::new).collect::<Vec<_>>());
    if let Some(columns) = terminal_columns() {
        table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(columns);
    }
    table
}

/// The width of the terminal, if results go to one.
fn terminal_columns() -> Option<u16> {
    Term::stdout().size_checked().map(|(_, columns)| columns)
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

/// Creates a table of plain text.
pub(crate) fn plain<const N: usize>(
    headline: [&str; N],
    lines: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut table = table(headline);
    for line in lines {
        table.add_row(line.map(cell));
    }
    table.to_string()
}
