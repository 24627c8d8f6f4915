//! Comparison of the system clock with the measuring clock. A drift between them shows that one was set during the run.

use jiff::Timestamp;

use super::{clock::now_ns, run_log::RunLog};

/// Readings of both clocks at one time.
pub(super) struct Clocks {
    measuring_ns: i64,
    system: Timestamp,
}

impl Clocks {
    pub(super) fn now() -> Self {
        Self {
            measuring_ns: now_ns(),
            system: Timestamp::now(),
        }
    }

    /// Logs the drift between the clocks, if it exceeds the limits.
    pub(super) fn compare(&self, log: &mut RunLog) {
        let measured_ms = (now_ns() - self.measuring_ns) / 1_000_000;
        let system_ms = Timestamp::now().duration_since(self.system).as_millis();
        #[expect(clippy::cast_precision_loss, reason = "a ratio of milliseconds")]
        let ratio = measured_ms as f64 / system_ms as f64;
        let off_by = |limit: f64| ratio > 1.0 + limit || ratio < 1.0 - limit;
        let shown = regatta_mllog::format::general(ratio);
        if off_by(0.01) {
            let text = format!("PerfClock and system_clock differ by more than 1%!  pc_sc_ratio: {shown}");
            log.error("error_runtime", &text);
        } else if off_by(0.001) {
            log.warning(&format!(
                "PerfClock and system_clock differ by more than 0.1%!  pc_sc_ratio: {shown}"
            ));
        }
    }
}

/// Formats a time in UTC.
pub(super) fn stamp(time: Timestamp, format: &str) -> String {
    time.strftime(format).to_string()
}
