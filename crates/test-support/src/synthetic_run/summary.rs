//! The summary of a synthetic run.

use regatta_mllog::{
    format::{detail, fixed},
    latency_keys::LISTED_PERCENTILES,
};
use regatta_types::{Mode, Scenario};
use serde_json::Value;

use super::{Figures, SyntheticRun, parameters};

impl SyntheticRun {
    /// Formats the run's `mlperf_log_summary.txt`.
    #[must_use]
    pub fn summary(&self, figures: &Figures) -> String {
        if self.settings.mode != Mode::PerformanceOnly {
            return "\nNo warnings encountered during test.\n\nNo errors encountered during test.\n"
                .to_owned();
        }
        let bar = "=".repeat(48);
        let scenario = self.settings.scenario;
        let latency = figures.latency;
        let share = fixed(figures.effective.target_latency_percentile * 100.0, 1);
        let metric = match scenario {
            Scenario::SingleStream | Scenario::MultiStream => {
                format!("{share}th percentile latency (ns) : {latency}")
            }
            Scenario::Server => format!(
                "Completed samples per second    : {}",
                fixed(figures.server_rates()[1], 2)
            ),
            Scenario::Offline => format!("Samples per second: {}", detail(figures.rate())),
        };
        let mut text = format!(
            "{bar}\nMLPerf Results Summary\n{bar}\nSUT name : {}\nScenario : {scenario}\nMode     : PerformanceOnly\n{metric}\n\
         Result is : VALID\n",
            self.sut
        );
        if scenario == Scenario::Server {
            text += "  Performance constraints satisfied : Yes\n";
        }
        text += "  Min duration satisfied : Yes\n  Min queries satisfied : Yes\n  Early stopping satisfied: Yes\n";
        if scenario != Scenario::Offline && !self.settings.use_token_latencies {
            text += &format!("Early Stopping Result:\n{}\n", figures.stopping(latency));
        }
        text += &format!("\n{bar}\nAdditional Stats\n{bar}\n");
        for (label, value) in [("Min", latency), ("Max", latency), ("Mean", latency)] {
            text += &format!("{label} latency (ns)                : {value}\n");
        }
        for percentile in LISTED_PERCENTILES {
            let name = percentile.name;
            text += &format!("{name} percentile latency (ns)   : {latency}\n");
        }
        text += &format!("\n{bar}\nTest Parameters Used\n{bar}\n");
        for (label, value) in parameters(&figures.effective) {
            let value = match value {
                Value::Bool(flag) => u8::from(flag).to_string(),
                value => value.to_string(),
            };
            // The summary writes a unit in brackets: `min_duration (ms)`.
            let unit = ["ms", "ns"].into_iter().find_map(|unit| {
                let name = label.strip_suffix(unit)?.strip_suffix('_')?;
                Some(format!("{name} ({unit})"))
            });
            text += &format!("{} : {value}\n", unit.as_deref().unwrap_or(label));
        }
        text + "\nNo warnings encountered during test.\n\nNo errors encountered during test.\n"
    }
}
