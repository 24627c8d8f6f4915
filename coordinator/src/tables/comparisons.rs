//! The table of a comparison.

use comfy_table::ContentArrangement;
use regatta_text::escape;

use super::{cell, fits, right, table};
use regatta_lab_views::{
    comparisons::{ComparisonReport, ComparisonRow},
    wording::{comparison_interval, comparison_medians, comparison_notes},
};

/// Formats a comparison for people: a line for each row, or two on a narrow terminal.
pub(crate) fn comparisons(report: &ComparisonReport) -> String {
    let wide = a_line_each(&report.rows);
    let table = if fits(&wide) {
        wide
    } else {
        two_lines_each(&report.rows)
    };
    let mut parts = vec![table, String::new()];
    parts.extend(comparison_notes(report));
    parts.join("\n")
}

fn a_line_each(rows: &[ComparisonRow]) -> String {
    let mut table = table([
        "device",
        "benchmark",
        "median A → B",
        "better",
        "B / A",
        "95 % interval",
        "pairs",
        "floor",
        "verdict on B",
    ]);
    table.set_content_arrangement(ContentArrangement::Disabled);
    for row in rows {
        table.add_row([
            cell(&row.device),
            cell(row.combination.short_text()),
            cell(comparison_medians(row)),
            cell(row.better),
            right(format!("{:.3}", row.ratio)),
            cell(comparison_interval(row)),
            right(row.pairs),
            right(floor(row)),
            cell(&row.verdict_text),
        ]);
    }
    table.trim_fmt()
}

fn two_lines_each(rows: &[ComparisonRow]) -> String {
    let mut table = table(["device and benchmark", "median A → B", "verdict on B"]);
    for row in rows {
        table.add_row([
            format!(
                "{}\n{}",
                escape(&row.device),
                escape(&row.combination.short_text())
            ),
            format!("{}\n{} is better", comparison_medians(row), row.better),
            format!(
                "{}\nB / A {:.3}, 95 % {}, pairs {}, floor {}",
                row.verdict_text,
                row.ratio,
                comparison_interval(row),
                row.pairs,
                floor(row)
            ),
        ]);
    }
    table.trim_fmt()
}

fn floor(row: &ComparisonRow) -> String {
    format!("{:.1} %", row.floor * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_lab_views::comparisons::{
        AS_FOUND, Combination, ComparisonVerdict, FULL_LENGTH, FloorOrigin,
    };

    fn row(device: &str, ratio: f64, words: &str) -> ComparisonRow {
        ComparisonRow {
            device: device.to_owned(),
            combination: Combination {
                benchmark: "resnet50".to_owned(),
                scenario: "SingleStream".to_owned(),
                mode: "PerformanceOnly".to_owned(),
                power: AS_FOUND.to_owned(),
                length: FULL_LENGTH.to_owned(),
                figure: String::new(),
                unit: "ns".to_owned(),
            },
            better: "smaller",
            runs_a: 12,
            runs_b: 12,
            median_a: 1_234_000.0,
            median_b: 1_234_000.0 * ratio,
            pairs: 12,
            ratio,
            interval: Some([ratio - 0.004, ratio + 0.006]),
            bootstrap_interval: None,
            floor: 0.01,
            floor_pairs: 0,
            is_floor_measured: true,
            floor_origin: FloorOrigin::NoDrift,
            verdict: ComparisonVerdict::Same,
            more_pairs: None,
            verdict_text: words.to_owned(),
            is_separated: false,
            compared_runs: Vec::new(),
        }
    }

    #[test]
    fn rows_fit_80_columns_in_two_lines() {
        let rows = [
            row("orin-1", 1.031, "worse by 3.1 %"),
            row("orin-nano-2", 1.012, "undecided: about 12 more pairs needed"),
        ];
        let printed = two_lines_each(&rows);
        let lines: Vec<&str> = printed.lines().map(str::trim).collect();
        assert!(
            lines[2].starts_with("orin-1") && lines[2].ends_with("worse by 3.1 %"),
            "{printed}"
        );
        assert!(
            lines[3].starts_with("resnet50 SingleStream   smaller is better")
                && lines[3].contains("B / A 1.031"),
            "{printed}"
        );
    }
}
