//! Compares `report.txt`, which people read, with the documents that programs read.

use serde_json::Value;

use super::{EndpointsJudge, prescribed::at};
use crate::check::{finding::Findings, rules};

/// The largest report that is read, in bytes.
const MAX_REPORT: u64 = 1 << 20;
/// Figures of the complete run: label, place in the summary, and divisor of the value there.
const TOTALS: [(&str, &str, f64); 8] = [
    ("Total samples issued", "n_samples_issued", 1.0),
    ("Total samples completed", "n_samples_completed", 1.0),
    ("Total samples failed", "n_samples_failed", 1.0),
    ("Duration", "duration_ns", 1e9),
    ("QPS", "qps", 1.0),
    ("TPS", "tps", 1.0),
    ("scheduler_random_seed", "run_config.scheduler_random_seed", 1.0),
    ("dataloader_random_seed", "run_config.dataloader_random_seed", 1.0),
];
/// Headings of statistics: heading, name in the summary, and divisor of the values there.
const SECTIONS: [(&str, &str, f64); 5] = [
    ("TTFT:", "ttft", 1e6),
    ("TPOT:", "tpot", 1e6),
    ("Latency:", "latency", 1e6),
    ("Input sequence lengths:", "input_sequence_lengths", 1.0),
    ("Output sequence lengths:", "output_sequence_lengths", 1.0),
];
const STATISTICS: [(&str, &str); 5] = [
    ("Min", "min"),
    ("Max", "max"),
    ("Median", "median"),
    ("Avg.", "avg"),
    ("Std Dev.", "std_dev"),
];

impl EndpointsJudge<'_> {
    /// Checks the figures of the report, if there is one.
    pub(super) fn report(&self, findings: &mut Findings) {
        let path = format!("{}/report.txt", self.case.results);
        let Ok(text) = self.case.context.tree.read(&path, MAX_REPORT) else {
            return;
        };
        let text = String::from_utf8_lossy(&text);
        let mut headings = ReportHeadings::default();
        for (line, text) in (1_u64..).zip(text.lines()) {
            headings.follow(text);
            let Some((label, figure)) = figure(text) else {
                continue;
            };
            let Some(expected) = self.expected(&headings, label) else {
                continue;
            };
            if !figure.rounds(expected) {
                let text = format!(
                    "{label} is {}, the harness's documents have {expected}",
                    figure.value
                );
                let fix = "put the report of the same run there";
                findings.error(rules::ENDPOINTS_FIGURES, (path.as_str(), Some(line)), text, fix);
            }
        }
    }

    /// Returns the value that a figure of the report repeats.
    fn expected(&self, headings: &ReportHeadings, label: &str) -> Option<f64> {
        let summary = &self.documents.summary.value;
        let number = |value: &Value, divisor: f64| Some(value.as_f64()? / divisor);
        if let Some((_, section, divisor)) = headings.section {
            let statistics = summary.get(section)?;
            let value = match headings.percentiles {
                Some(list) => statistics.get(list)?.get(label)?,
                None => statistics.get(STATISTICS.iter().find(|(name, _)| *name == label)?.1)?,
            };
            return number(value, divisor);
        }
        if let Some((_, path, divisor)) = TOTALS.iter().find(|(name, ..)| *name == label) {
            return number(at(summary, path)?, *divisor);
        }
        let entry = self.accuracy_scores().next()?;
        if entry.get("dataset_name").and_then(Value::as_str) == Some(label) {
            return number(entry.get("score")?, 1.0);
        }
        number(entry.get("breakdown")?.get("subset_scores")?.get(label)?, 1.0)
    }
}

/// The headings above a line.
#[derive(Default)]
struct ReportHeadings {
    section: Option<(&'static str, &'static str, f64)>,
    /// The list of percentiles.
    percentiles: Option<&'static str>,
}

impl ReportHeadings {
    fn follow(&mut self, line: &str) {
        if let Some(section) = SECTIONS.iter().find(|(heading, ..)| *heading == line) {
            self.section = Some(*section);
            self.percentiles = None;
        } else if line.trim() == "Percentiles:" {
            self.percentiles = Some("percentiles");
        } else if line.trim().starts_with("Early-stopping percentile estimates") {
            self.percentiles = Some("early_stopping_percentiles");
        }
    }
}

/// A printed number.
struct PrintedNumber {
    value: f64,
    /// The number of decimal places.
    places: i32,
}

impl PrintedNumber {
    /// Returns whether the figure is `exact`, rounded.
    fn rounds(&self, exact: f64) -> bool {
        (self.value - exact).abs() <= 0.51 * 10_f64.powi(-self.places)
    }
}

/// Splits a line such as `  Avg.: 280.74 ms` into its label and number.
fn figure(line: &str) -> Option<(&str, PrintedNumber)> {
    let (label, rest) = line.trim().rsplit_once(": ")?;
    let number = rest.split([' ', '%', '(']).next()?;
    let places = number.split_once('.').map_or(0, |(_, places)| places.len());
    let figure = PrintedNumber {
        value: number.parse().ok()?,
        places: i32::try_from(places).ok()?,
    };
    Some((label, figure))
}
