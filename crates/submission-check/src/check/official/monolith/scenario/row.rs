//! The CSV rows of a scenario.

use regatta_catalogue::round::{BenchmarkRules, SubmittedScenario, Trait};
use serde_json::Value;

use super::{
    super::{
        super::{Row, python::Number, result},
        Crash, system,
    },
    Assessed, MonolithJudge, Performance,
};

impl MonolithJudge<'_> {
    pub(super) fn row(
        &mut self,
        rules: &BenchmarkRules,
        accuracy: &str,
        performance: &Performance,
        assessed: Assessed,
    ) -> Result<(), Crash> {
        let json = &self.job.description.json;
        for (key, needed) in [
            ("system_name", true),
            ("host_processor_model_name", true),
            ("accelerator_model_name", true),
            ("framework", false),
            ("operating_system", false),
            ("hw_notes", false),
        ] {
            let text = match json.get(key) {
                Some(value) => matches!(value, Value::String(_)),
                None => !needed,
            };
            if !text {
                return Err(Crash(format!(
                    "{key} of system {} is not text",
                    self.job.place.system
                )));
            }
        }
        let Some(scenario) = self.scenario else {
            return Err(Crash(format!("{} has no unit", self.job.place.scenario)));
        };
        let row = Row {
            submitter: self.job.place.submitter.clone(),
            division: self.job.place.division.clone(),
            system_type: self.job.description.kind.clone(),
            system: self.job.place.system.clone(),
            model: self.job.place.model.clone(),
            benchmark: self.job.benchmark.clone(),
            scenario: scenario.as_str().to_owned(),
            result: performance.result.to_string(),
            value: performance.result.value(),
            units: self.unit(rules, scenario),
            power: false,
            accuracy: accuracy.to_owned(),
            location: self.outcome.path.clone(),
            errors: 0,
            inferred: performance.inferred,
            has_power: performance.power.is_some_and(|metric| metric > 0.0),
            compliant: assessed.compliant,
            weights: assessed.weights,
            design_power: String::new(),
            system_json: json.clone(),
        };
        let metric = performance.power.filter(|&metric| metric > 0.0);
        if metric.is_none() || !system::power_only(self.context.checker, &self.job.description) {
            self.outcome.rows.push(row.clone());
        }
        if let Some(metric) = metric {
            let joules = self.context.checker.has(Trait::PowerInJoules);
            self.outcome.rows.push(Row {
                result: Number::Float(metric).to_string(),
                value: metric,
                units: result::power_unit(scenario, joules).to_owned(),
                power: true,
                ..row
            });
        }
        Ok(())
    }

    fn unit(&self, rules: &BenchmarkRules, scenario: SubmittedScenario) -> String {
        let by_directory = self.context.checker.has(Trait::UnitsByDirectory);
        let own = !by_directory || self.job.place.model == self.job.benchmark;
        let unit = if own {
            rules.unit(scenario)
        } else {
            BenchmarkRules::general_unit(scenario)
        };
        unit.to_owned()
    }
}
