//! The results of a strict check as a table for spreadsheets. The official checker's own file is [`crate::check::csv`].

use std::fmt::Write as _;

use crate::check::strict::Report;

/// The columns: those of the JSON document's results.
const COLUMNS: &str = "division,submitter,system,model,scenario,result,units,power,accepted\n";

/// One line per result, quoted as RFC 4180 has it. Findings are not in it.
#[must_use]
pub fn strict_csv(report: &Report) -> String {
    let mut text = COLUMNS.to_owned();
    for row in &report.results {
        let names = [
            &row.division,
            &row.submitter,
            &row.system,
            &row.model,
            &row.scenario,
        ];
        for name in names {
            text.push_str(&quoted(name));
            text.push(',');
        }
        let result = row.result.map_or_else(String::new, |result| result.to_string());
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{result},{},{},{}",
            quoted(&row.units),
            row.power,
            row.accepted
        );
    }
    text
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}
