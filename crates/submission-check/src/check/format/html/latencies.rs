//! Formats the latencies of all scenarios on one logarithmic scale, which shows wide or shifted distributions.

use std::fmt::Write as _;

use regatta_mllog::latency_keys::LISTED_PERCENTILES;

use super::escaped;
use crate::check::strict::{Facts, Latency};

/// The width of the drawing, in its own units.
const WIDTH: f64 = 176.0;

/// Writes the table, if there are any latencies.
pub(super) fn table(page: &mut String, facts: &[Facts]) {
    let with: Vec<_> = facts.iter().filter(|facts| !facts.latencies.is_empty()).collect();
    let all = with.iter().flat_map(|facts| &facts.latencies);
    let logs = all.filter_map(|latency| log(latency.nanoseconds));
    let (low, high) = logs.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), log| {
        (low.min(log), high.max(log))
    });
    if low > high {
        return;
    }
    page.push_str(
        "<h2>Latencies of the performance runs</h2>\n<p><small>In milliseconds; of queries in MultiStream, of samples \
         elsewhere. The bar spans the minimum to the 99th percentile, the line continues to the maximum; all on one logarithmic scale.</small></p>\n<div class=scroll><table>\n<tr><th>Benchmark<th>Scenario",
    );
    // Writing to a String cannot fail, here and below.
    for name in columns() {
        let _ = write!(page, "<th class=n>{}", heading(name));
    }
    page.push_str("<th>\n");
    let mut system = "";
    for facts in with {
        let parts: Vec<_> = facts.path.split('/').collect();
        let part = |index: usize| parts.get(index).copied().unwrap_or_default();
        if part(3) != system {
            system = part(3);
            let _ = writeln!(page, "<tr><th colspan=12>{}", escaped(system));
        }
        let _ = write!(page, "<tr><td>{}<td>{}", escaped(part(4)), escaped(part(5)));
        for name in columns() {
            let latency = facts.latencies.iter().find(|latency| latency.name == name);
            let text = latency.map_or_else(String::new, |latency| milliseconds(latency.nanoseconds));
            let _ = write!(page, "<td class=n>{text}");
        }
        let _ = writeln!(page, "<td>{}", drawing(&facts.latencies, (low, high)));
    }
    page.push_str("</table></div>\n");
}

/// Returns the names of the latencies in column order.
fn columns() -> impl Iterator<Item = &'static str> {
    let percentiles = LISTED_PERCENTILES.map(|percentile| percentile.name);
    ["min", "mean"].into_iter().chain(percentiles).chain(["max"])
}

/// Formats a name for the head of a column: `99.90` as `99.9 %`.
fn heading(name: &str) -> String {
    match name.contains('.') {
        true => format!("{} %", name.trim_end_matches('0').trim_end_matches('.')),
        false => name.to_owned(),
    }
}

fn log(nanoseconds: f64) -> Option<f64> {
    (nanoseconds.is_finite() && nanoseconds > 0.0).then(|| nanoseconds.log10())
}

/// Formats nanoseconds as milliseconds with four significant digits, or with all digits before the decimal point.
fn milliseconds(nanoseconds: f64) -> String {
    let value = nanoseconds / 1e6;
    let whole = value.abs().log10().floor();
    let places = if whole.is_finite() { 3.0 - whole } else { 3.0 };
    format!("{value:.*}", places.clamp(0.0, 6.0) as usize)
}

fn drawing(latencies: &[Latency], (low, high): (f64, f64)) -> String {
    let at = |name: &str| {
        let latency = latencies.iter().find(|latency| latency.name == name)?;
        let share = (log(latency.nanoseconds)? - low) / (high - low).max(1e-9);
        Some(share * (WIDTH - 4.0) + 2.0)
    };
    let (Some(begin), Some(end)) = (at("min").or_else(|| at("50.00")), at("99.00")) else {
        return String::new();
    };
    let last = at("max").unwrap_or(end);
    format!(
        "<svg viewBox=\"0 0 {WIDTH} 16\" role=img aria-label=\"latency range\"><rect x=\"{begin:.1}\" y=\"4\" \
         width=\"{:.1}\" height=\"8\"/><line x1=\"{end:.1}\" y1=\"8\" x2=\"{last:.1}\" y2=\"8\"/></svg>",
        (end - begin).max(2.0)
    )
}
