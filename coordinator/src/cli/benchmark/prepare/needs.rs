//! Determines the forms of samples that runs on the named devices need, and whether int8 engines need scales. Requests are resolved in the
//! same way as by `regatta run`.

use regatta_catalogue::{catalogue::Catalogue, round::SystemCategory};
use regatta_types::{Scenario, benchmark::Benchmark, samples::Form};

use crate::{cli::resolve::unresolved, exit::Failure};
use regatta_lab_runs::KnownRequest;
use regatta_lab_store::{DeviceLabel, DeviceRow, RunRequest, Store};
use regatta_lab_views::lookup::{self, add};

/// The samples of a benchmark that devices need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Needs {
    /// The forms, without duplicates.
    pub(super) forms: Vec<Form>,
    /// Whether any engine is an int8 engine without named scales.
    pub(super) needs_scales: bool,
}

/// Returns the devices with these names, ids and labels, without duplicates.
pub(super) fn devices(words: &[String], store: &Store) -> Result<Vec<DeviceRow>, Failure> {
    let mut found = Vec::new();
    for word in words {
        let rows = match lookup::devices(store, std::slice::from_ref(word)) {
            Ok(rows) => rows,
            Err(unknown) => match with_label(word, store)? {
                rows if rows.is_empty() => return Err(unknown.into()),
                rows => rows,
            },
        };
        rows.into_iter().for_each(|row| add(&mut found, row));
    }
    Ok(found)
}

fn with_label(word: &str, store: &Store) -> Result<Vec<DeviceRow>, Failure> {
    let Ok(label) = word.parse::<DeviceLabel>() else {
        return Ok(Vec::new());
    };
    let mut rows = store.devices().all()?;
    rows.retain(|row| row.labels.contains(&label));
    Ok(rows)
}

/// Returns the needs of the devices. Without devices, only the benchmark's own form is needed.
pub(super) fn needs(
    benchmark: &Benchmark,
    round: Option<&str>,
    devices: &[DeviceRow],
    catalogue: &Catalogue,
) -> Result<Needs, Failure> {
    let mut needs = Needs {
        forms: Vec::new(),
        needs_scales: false,
    };
    for device in devices {
        for scenario in scenarios(benchmark, round, catalogue)? {
            let mut request = RunRequest::new(&benchmark.name, scenario);
            request.round = round.map(str::to_owned);
            let known = KnownRequest::find(&request, catalogue).map_err(unresolved)?;
            let need = known.sample_need(device).map_err(unresolved)?;
            if !needs.forms.contains(&need.form) {
                needs.forms.push(need.form);
            }
            needs.needs_scales |= need.needs_scales;
        }
    }
    if needs.forms.is_empty() {
        needs.forms.push(benchmark.form());
    }
    Ok(needs)
}

/// Returns the scenarios that are required for an edge system. If the round does not have the benchmark for edge systems, returns all scenarios.
fn scenarios(
    benchmark: &Benchmark,
    round: Option<&str>,
    catalogue: &Catalogue,
) -> Result<Vec<Scenario>, Failure> {
    let round = catalogue.round(round).map_err(Failure::usage)?;
    let required = round.required_scenarios(benchmark, SystemCategory::Edge);
    Ok(required.unwrap_or(Scenario::ALL.as_slice()).to_vec())
}
