//! Formats the results of a strict check as CSV. The official checker's own file is [`crate::check::csv`].

use std::fmt::Write as _;

use crate::check::strict::StrictReport;

/// The columns, which are the fields of a result in the JSON report.
const COLUMNS: &str = "division,submitter,system,model,scenario,result,units,power,accepted\n";

/// Returns one line per result, quoted by RFC 4180. The table does not contain findings.
#[must_use]
pub fn strict_csv(report: &StrictReport) -> String {
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
            text.push_str(&csv_field(name));
            text.push(',');
        }
        let result = row.result.map_or_else(String::new, |result| result.to_string());
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{result},{},{},{}",
            csv_field(&row.units),
            row.power,
            row.accepted
        );
    }
    text
}

/// Returns a field of a CSV line, quoted by RFC 4180 where it must be.
#[must_use]
pub fn csv_field(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}
