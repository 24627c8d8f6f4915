//! The report of a lab to its campaign, and the tables of a campaign.

use std::{collections::BTreeSet, fmt::Write as _};

use serde::{Deserialize, Serialize};

/// A figure, with the way in which those of several labs become one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
enum Figure {
    Sum(u64),
    Max(f64),
}

/// A figure of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Cell {
    row: String,
    column: String,
    figure: Figure,
}

/// The report of a lab, or of several together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    variant: String,
    injected: u64,
    faults: Vec<Cell>,
    figures: Vec<Cell>,
    /// Every violation.
    pub wrong: Vec<String>,
}

impl Report {
    pub(super) fn of_lab(variant: &str) -> Self {
        Self {
            variant: variant.to_owned(),
            ..Self::default()
        }
    }

    pub(super) fn of_failed_lab(error: &anyhow::Error) -> Self {
        Self {
            wrong: vec![format!("the lab failed: {error:#}")],
            ..Self::default()
        }
    }

    /// Returns the number of injected faults.
    #[must_use]
    pub const fn injected(&self) -> u64 {
        self.injected
    }

    /// Counts an injected fault.
    pub const fn count_injected(&mut self) {
        self.injected += 1;
    }

    /// Adds 1 in a column of the row of a kind of fault.
    pub fn count_fault(&mut self, kind: &str, means: &str, column: &str) {
        add(
            &mut self.faults,
            &format!("{kind} | {means}"),
            column,
            Figure::Sum(1),
        );
    }

    /// Records a time in a column of the row of a kind of fault. The table has the longest.
    pub fn time_fault(&mut self, kind: &str, means: &str, column: &str, seconds: f64) {
        let row = format!("{kind} | {means}");
        add(&mut self.faults, &row, column, Figure::Max(seconds));
    }

    /// Adds to a figure of the lab. Those of several labs are added.
    pub fn sum(&mut self, figure: &str, value: u64) {
        add(&mut self.figures, figure, &self.variant, Figure::Sum(value));
    }

    /// Records a figure of the lab. Of several labs, the table has the greatest.
    pub fn max(&mut self, figure: &str, value: f64) {
        add(&mut self.figures, figure, &self.variant, Figure::Max(value));
    }

    /// Requires one good end for this many faults, and at least one. A campaign with fewer shows little.
    pub fn require_done(&mut self, what: &str, done: u64, faults_per_done: u64) {
        let required = (self.injected / faults_per_done).max(1);
        if done < required {
            self.wrong
                .push(format!("only {done} {what} are done, of at least {required}"));
        }
    }

    /// Adds the report of another lab.
    pub(super) fn merge(&mut self, other: Self) {
        self.injected += other.injected;
        for (cells, others) in [
            (&mut self.faults, other.faults),
            (&mut self.figures, other.figures),
        ] {
            for cell in others {
                add(cells, &cell.row, &cell.column, cell.figure);
            }
        }
        self.wrong.extend(other.wrong);
    }

    /// Returns the tables in Markdown: the faults with these columns, and the figures with a column per variant of labs.
    pub(super) fn tables(&self, columns: &[&str], variants: &[&str]) -> String {
        format!(
            "{}\n{}\nViolations: **{}**\n",
            table("fault | made by", &self.faults, columns),
            table("figure", &self.figures, variants),
            self.wrong.len()
        )
    }
}

fn add(cells: &mut Vec<Cell>, row: &str, column: &str, figure: Figure) {
    let known = cells
        .iter_mut()
        .find(|cell| cell.row == row && cell.column == column);
    match (known.map(|cell| &mut cell.figure), figure) {
        (Some(Figure::Sum(known)), Figure::Sum(more)) => *known += more,
        (Some(Figure::Max(known)), Figure::Max(other)) => *known = known.max(other),
        _ => cells.push(Cell {
            row: row.to_owned(),
            column: column.to_owned(),
            figure,
        }),
    }
}

fn table(names: &str, cells: &[Cell], columns: &[&str]) -> String {
    let texts = "---|".repeat(names.split('|').count());
    let numbers = "---:|".repeat(columns.len());
    let mut text = format!("| {names} | {} |\n|{texts}{numbers}\n", columns.join(" | "));
    let rows: BTreeSet<&str> = cells.iter().map(|cell| cell.row.as_str()).collect();
    for row in rows {
        let _ = write!(text, "| {row} |");
        for column in columns {
            let cell = cells
                .iter()
                .find(|cell| cell.row == row && cell.column == *column);
            // Writing to a String cannot fail.
            let _ = match cell.map(|cell| cell.figure) {
                None => write!(text, " 0 |"),
                Some(Figure::Sum(count)) => write!(text, " {count} |"),
                Some(Figure::Max(value)) => write!(text, " {value:.0} |"),
            };
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_labs_become_one_with_sums_and_maxima() {
        let lab = |variant: &str, seconds: f64| {
            let mut report = Report::of_lab(variant);
            report.count_injected();
            report.count_fault("kill", "SIGKILL", "failed");
            report.time_fault("kill", "SIGKILL", "longest s", seconds);
            report.sum("files", 3);
            report.wrong.push("lost".to_owned());
            report
        };
        let mut all = Report::default();
        for report in [lab("one", 2.0), lab("one", 5.0), lab("other", 1.0)] {
            // A lab reports in JSON.
            let text = serde_json::to_string(&report).unwrap();
            all.merge(serde_json::from_str(&text).unwrap());
        }
        assert_eq!(all.injected(), 3);
        let tables = all.tables(&["failed", "longest s"], &["one", "other"]);
        assert!(tables.contains("| kill | SIGKILL | 3 | 5 |\n"), "{tables}");
        assert!(tables.contains("| files | 6 | 3 |\n"), "{tables}");
        assert!(tables.contains("Violations: **3**"), "{tables}");
    }

    #[test]
    fn too_few_good_ends_are_a_violation() {
        let wrong = |faults: u64, done: u64| {
            let mut report = Report::default();
            (0..faults).for_each(|_| report.count_injected());
            report.require_done("runs", done, 6);
            report.wrong.len()
        };
        assert_eq!(wrong(12, 2), 0);
        assert_eq!(wrong(12, 1), 1);
        assert_eq!(wrong(2, 0), 1, "at least one");
    }
}
