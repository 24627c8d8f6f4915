//! A row of the official `summary.csv`, and the format in which each checker writes it.

use std::fmt::Write as _;

use regatta_catalogue::round::{Checker, CheckerKind, Trait};
use serde_json::{Map, Value};

use super::python;

/// A row of the CSV: a result, or the power metric of a result. Texts are as the official checker prints them.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The `Organization` column.
    pub submitter: String,
    /// The `Division` column.
    pub division: String,
    /// The `SystemType` column.
    pub system_type: String,
    /// The `Platform` column: the system's directory.
    pub system: String,
    /// The `Model` column: the benchmark's directory.
    pub model: String,
    /// The `MlperfModel` column: the official benchmark.
    pub benchmark: String,
    /// The `Scenario` column.
    pub scenario: String,
    /// The `Result` column.
    pub result: String,
    /// The result as a number.
    pub value: f64,
    /// The `Units` column.
    pub units: String,
    /// Whether this is the row of the power metric.
    pub power: bool,
    /// The `Accuracy` column.
    pub accuracy: String,
    /// The `Location` column.
    pub location: String,
    /// The number of errors in the model's scenarios up to this one. Only the monolith counts them.
    pub errors: u64,
    /// Whether the result is inferred from another scenario's run.
    pub inferred: bool,
    /// The `has_power` column.
    pub has_power: bool,
    /// Whether the compliance tests passed.
    pub compliant: bool,
    /// The `weight_data_types` column.
    pub weights: String,
    /// The `design_power_watts` column, if the checker has it.
    pub design_power: String,
    pub(super) system_json: std::sync::Arc<Map<String, Value>>,
}

const MONOLITH_QUOTED: [&str; 9] = [
    "SystemType",
    "SystemName",
    "host_processor_model_name",
    "accelerator_model_name",
    "accelerators_per_node",
    "framework",
    "operating_system",
    "notes",
    "weight_data_types",
];

/// Returns the file `summary.csv` as `checker` writes it.
#[must_use]
pub fn csv(checker: &Checker, version: &str, rows: &[Row]) -> String {
    let columns = columns(checker);
    let mut text = columns.join(",");
    text.push('\n');
    for row in rows {
        for (index, column) in columns.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let value = row.field(column, checker, version);
            let bare = *column == "accelerators_per_node" && checker.has(Trait::BareAcceleratorCount);
            let quoted = checker.kind == CheckerKind::Package || (MONOLITH_QUOTED.contains(column) && !bare);
            // The official checkers do not escape quotes.
            let quote = if quoted { "\"" } else { "" };
            // Writing to a String cannot fail.
            let _ = write!(text, "{comma}{quote}{value}{quote}");
        }
        text.push('\n');
    }
    text
}

fn columns(checker: &Checker) -> Vec<&'static str> {
    let package = checker.kind == CheckerKind::Package;
    let mut columns = vec![
        "Organization",
        "Availability",
        "Division",
        "SystemType",
        "SystemName",
        "Platform",
        "Model",
        "MlperfModel",
        "Scenario",
        "Result",
        "Accuracy",
        "number_of_nodes",
        "host_processor_model_name",
        "host_processors_per_node",
        "host_processor_core_count",
        "accelerator_model_name",
        "accelerators_per_node",
    ];
    if package {
        columns.push("total_accelerators");
    }
    columns.extend(["Location", "framework", "operating_system", "notes"]);
    columns.push(if checker.has(Trait::MisspeltCompliance) {
        "compilance"
    } else {
        "compliance"
    });
    columns.extend(["errors", "version", "inferred", "has_power", "Units"]);
    if checker.has(Trait::WeightDataTypes) {
        columns.push("weight_data_types");
    }
    if package && !checker.has(Trait::NoDesignColumns) {
        columns.extend(["design_power_watts", "PrivateID"]);
    }
    columns
}

impl Row {
    /// Returns the field of the named column, in the official format.
    fn field(&self, column: &str, checker: &Checker, version: &str) -> String {
        let package = checker.kind == CheckerKind::Package;
        match column {
            "Organization" => self.submitter.clone(),
            "Availability" => self.availability(package),
            "Division" => self.division.clone(),
            "SystemType" => self.system_type.clone(),
            "SystemName" => python::text(self.system_json.get("system_name")),
            "Platform" => self.system.clone(),
            "Model" => self.model.clone(),
            "MlperfModel" => self.benchmark.clone(),
            "Scenario" => self.scenario.clone(),
            "Result" => self.result.clone(),
            "Accuracy" => self.accuracy.clone(),
            "total_accelerators" => self.total_accelerators(),
            "Location" => self.location.clone(),
            "notes" => self.notes(),
            "compliance" if package => self.division.clone(),
            "compliance" | "compilance" => u8::from(self.compliant).to_string(),
            "errors" => self.errors.to_string(),
            "version" => version.to_owned(),
            "inferred" => u8::from(self.inferred).to_string(),
            "has_power" => if self.has_power { "True" } else { "False" }.to_owned(),
            "Units" => self.units.clone(),
            "weight_data_types" if package => self.weights.clone(),
            "weight_data_types" => self.weights.replace('"', "'"),
            "design_power_watts" => self.design_power.clone(),
            "PrivateID" => String::new(),
            name => python::text(self.system_json.get(name)),
        }
    }

    fn availability(&self, package: bool) -> String {
        let status = python::text(self.system_json.get("status"));
        if package { status } else { status.to_lowercase() }
    }

    fn total_accelerators(&self) -> String {
        let count = |name: &str| integer(self.system_json.get(name));
        let total = count("number_of_nodes").zip(count("accelerators_per_node"));
        total.map_or_else(String::new, |(nodes, each)| (nodes * each).to_string())
    }

    fn notes(&self) -> String {
        let hardware = python::text(Some(self.system_json.get("hw_notes").unwrap_or(&Value::from(""))));
        match self
            .system_json
            .get("sw_notes")
            .filter(|notes| python::truthy(notes))
        {
            None => hardware,
            Some(software) if hardware.is_empty() => python::text(Some(software)),
            Some(software) => format!("{hardware}. {}", python::text(Some(software))),
        }
    }
}

/// Converts a JSON value like Python's `int()`.
pub(super) fn integer(value: Option<&Value>) -> Option<i64> {
    match value? {
        Value::String(text) => text.trim().parse().ok(),
        Value::Number(number) => number
            .as_i64()
            .or_else(|| number.as_f64().map(|value| value as i64)),
        Value::Bool(value) => Some(i64::from(*value)),
        _ => None,
    }
}
