//! Results for people: tables that line up, and the few words in them. Programs get JSON from the commands themselves.

mod assets;
mod audits;
mod device_state;
mod devices;
mod quickstart;
mod runs;
mod settings;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use assets::assets;
pub(crate) use audits::audit;
use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle};
use console::Term;
pub(crate) use devices::{device, devices};
pub(crate) use quickstart::{Comparison, UnmetRule, quickstart, rules};
use regatta_text::escape;
pub(crate) use runs::{result, run, runs, why_not};
pub(crate) use settings::settings;
pub(crate) use words::{bytes, time};

/// A headline, a rule below it, and columns that line up.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// A table as wide as what stands in it, at a terminal no wider than that: words then go on in the line below, within their
/// column. What follows a pipe stays one line a row.
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

/// How wide the terminal is, where results go to one.
fn terminal_columns() -> Option<u16> {
    Term::stdout().size_checked().map(|(_, columns)| columns)
}

/// Whether a table that was made without regard to the terminal fits into it.
fn fits(table: &str) -> bool {
    let most = table.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    terminal_columns().is_none_or(|columns| most <= usize::from(columns))
}

/// What is copied out of a column, an id, stays in one piece.
fn keep_whole(table: &mut Table, column: usize) {
    if let Some(column) = table.column_mut(column) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
}

/// A value in a table. It may be anybody's: it stays on one line and steers no terminal.
fn cell(text: impl ToString) -> Cell {
    Cell::new(escape(&text.to_string()))
}

/// Numbers stand right.
fn right(text: impl ToString) -> Cell {
    cell(text).set_alignment(CellAlignment::Right)
}

/// A table of plain words.
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
