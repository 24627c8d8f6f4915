//! FindPeakPerformance: the highest Server rate that meets the latency bound, by widening and bisection.

use regatta_types::Scenario;

use super::run::{PartFailed, Run};
use crate::{
    effective::EffectiveSettings,
    generate::Pass,
    load_gen::Phase,
    results::{Results, SeriesResult},
};

/// A rate that was measured.
struct Tried {
    settings: EffectiveSettings,
    result: SeriesResult,
}

impl Tried {
    fn keeps_bound(&self) -> bool {
        Results::new("", &self.settings, &self.result).constraints_met()
    }

    /// Formats the rate as `std::to_string` does.
    fn field(&self) -> String {
        field(&self.settings)
    }
}

fn field(settings: &EffectiveSettings) -> String {
    format!("{:.6}", settings.target_qps)
}

impl Run<'_> {
    pub(super) fn find_peak_performance(&mut self) -> Result<(), PartFailed> {
        self.log
            .info("generic_message", "Starting FindPeakPerformance mode");
        if self.effective.scenario != Scenario::Server {
            let reason = "Finding peak performance is only supported in Server scenarios.";
            return Err(self.fault("error_invalid_config", reason));
        }
        let base = self.effective.clone();
        self.say(&format!(
            "FindPeakPerformance: Check validity of the base settings field: {}",
            field(&base)
        ));
        let base = self.try_rate(base)?;
        if !base.keeps_bound() {
            let reason = "FindPeakPerformance: Initial lower bound does not satisfy performance constraints, msg: \
                        Reduce target QPS to improve latency.";
            self.log.error("error_runtime", reason);
            self.report(&base.settings, &base.result);
            return Ok(());
        }
        let (mut lower, mut upper) = self.widen(base)?;
        self.say(&format!(
            "FindPeakPerformance: Found boundaries: [{}, {})",
            lower.field(),
            upper.field()
        ));
        let sets = self.sets(&upper.settings, Pass::Performance)?;
        self.load(&sets[0])?;
        while !self.is_found(&lower, &upper) {
            let mut middle = lower.settings.clone();
            middle.target_qps += (upper.settings.target_qps - lower.settings.target_qps) / 2.0;
            self.say(&format!(
                "FindPeakPerformanceBinarySearch: Testing the mid value of bounds [{}, {}): {}",
                lower.field(),
                upper.field(),
                field(&middle)
            ));
            let result = self.series(&middle, &sets[0], Pass::Performance, Phase::Performance)?;
            let middle = Tried {
                settings: middle,
                result,
            };
            if middle.keeps_bound() {
                lower = middle
            } else {
                upper = middle
            }
        }
        self.say(&format!(
            "FindPeakPerformance: Found peak performance field: {}",
            lower.field()
        ));
        let unloaded = self.unload(&sets[0]);
        self.report(&lower.settings, &lower.result);
        unloaded
    }

    fn say(&mut self, text: &str) {
        self.log.info("generic_message", text);
    }

    /// Raises the rate until it no longer meets the bound.
    fn widen(&mut self, base: Tried) -> Result<(Tried, Tried), PartFailed> {
        let growth = 1.0 + self.requested.server_find_peak_qps_boundary_step_size;
        let mut lower = base;
        loop {
            let mut settings = lower.settings.clone();
            settings.target_qps *= growth;
            self.say(&format!(
                "FindBoundaries: Checking fields [{}, {})",
                lower.field(),
                field(&settings)
            ));
            let tried = self.try_rate(settings)?;
            if !tried.keeps_bound() {
                return Ok((lower, tried));
            }
            lower = tried;
        }
    }

    fn try_rate(&mut self, settings: EffectiveSettings) -> Result<Tried, PartFailed> {
        let sets = self.sets(&settings, Pass::Performance)?;
        self.load(&sets[0])?;
        let result = self.series(&settings, &sets[0], Pass::Performance, Phase::Performance)?;
        self.unload(&sets[0])?;
        Ok(Tried { settings, result })
    }

    fn is_found(&self, lower: &Tried, upper: &Tried) -> bool {
        let scale = 10_f64.powi(self.requested.server_find_peak_qps_decimals_of_precision);
        let steps = |tried: &Tried| (tried.settings.target_qps * scale).floor();
        steps(lower) + 1.0 >= steps(upper)
    }
}
