//! Checks the log of a measured run from which another scenario's result is to be inferred.

use std::path::Path;

use regatta_catalogue::round::Inference;
use regatta_mllog::read::{DetailError, DetailLog, LogFileError, Value, detail_file, file_name};
use regatta_types::Scenario;

/// Why no other scenario's result can be inferred from a run.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotInferable {
    #[error("its performance run cannot be parsed: {0}")]
    Log(#[from] LogFileError<DetailError>),
    #[error("its {0} result is not measured itself")]
    NotMeasured(Scenario),
    #[error(
        "its {from} run has no {key}, from which {to} is computed: it had too few queries for the estimate"
    )]
    NoFigure {
        from: Scenario,
        key: &'static str,
        to: Scenario,
    },
}

/// The log of a scenario's performance run.
pub(super) struct Measured(DetailLog);

impl Measured {
    /// Reads the log from a scenario's directory.
    pub(super) fn read(scenario: &Path) -> Result<Self, NotInferable> {
        let path = scenario.join("performance").join("run_1").join(file_name::DETAIL);
        Ok(Self(detail_file(&path)?))
    }

    /// Checks that the other scenario's result may be inferred.
    ///
    /// The run must be measured itself. Its log must have the value from which the checkers compute the other result.
    pub(super) fn check_inferable(&self, inference: Inference) -> Result<(), NotInferable> {
        let Inference { from, to } = inference;
        let scenario = self.0.value("effective_scenario").and_then(Value::as_str);
        if scenario.and_then(|name| name.parse().ok()) != Some(from) {
            return Err(NotInferable::NotMeasured(from));
        }
        let key = match (from, to) {
            (Scenario::SingleStream, Scenario::MultiStream) => "early_stopping_latency_ms",
            (Scenario::SingleStream, _) => "result_qps_without_loadgen_overhead",
            _ => "result_mean_query_latency_ns",
        };
        let figure = self.0.value(key).and_then(Value::as_f64);
        if figure.is_some_and(|figure| figure > 0.0) {
            return Ok(());
        }
        Err(NotInferable::NoFigure { from, key, to })
    }
}
