//! The package's check of a system description.

use serde_json::Value;

use super::{
    super::{Context, path_fault::PathFault, python::truthy},
    Faults,
    loaded::Loaded,
};

const STATUSES: [&str; 3] = ["available", "preview", "rdi"];
const TYPES: [&str; 4] = ["datacenter", "edge", "datacenter,edge", "edge,datacenter"];

/// Checks the description of the scenario's system.
pub(super) fn check(context: &Context<'_>, loaded: &Loaded<'_>, faults: &mut Faults) {
    let job = loaded.job;
    let json = &job.description;
    let path = format!("{}/systems/{}.json", loaded.job.place.home(), job.place.system);
    let mut fault = |text: String| faults.push(PathFault::new(path.clone(), text));
    let text = |key: &str| json.get(key).and_then(Value::as_str);
    if !text("status").is_some_and(|status| STATUSES.contains(&status.to_lowercase().as_str())) {
        fault(format!("status is none of {}", STATUSES.join(", ")));
    }
    if !text("system_type").is_some_and(|kind| TYPES.contains(&kind)) {
        fault(format!("system_type is none of {}", TYPES.join("; ")));
    }
    if let Some(wrong) = network_fault(loaded) {
        fault(wrong);
    }
    let rules = &context.round.submission;
    // Any true value in Python makes it a network system here, including the text `false`.
    let network = json.get("is_network").is_some_and(truthy);
    let further = network.then_some(&rules.network_fields).into_iter().flatten();
    for field in rules.system_fields.iter().chain(further) {
        match json.get(field) {
            None => fault(format!("field {field} is missing")),
            Some(value) if rules.system_fields_filled.contains(field) && !truthy(value) => {
                fault(format!("field {field} is empty"));
            }
            Some(_) => {}
        }
    }
    for (key, directory) in [
        ("submitter", &job.place.submitter),
        ("division", &job.place.division),
    ] {
        if text(key).is_none_or(|value| value.to_lowercase() != directory.to_lowercase()) {
            fault(format!("{key} is not `{directory}`"));
        }
    }
}

/// Returns whether the system is reached over a network, or `None` if `is_network` is not a text.
pub(super) fn network(loaded_json: &serde_json::Map<String, Value>) -> Option<bool> {
    match loaded_json.get("is_network") {
        None | Some(Value::Null) => Some(false),
        Some(Value::String(text)) => Some(text.eq_ignore_ascii_case("true")),
        Some(_) => None,
    }
}

fn network_fault(loaded: &Loaded<'_>) -> Option<String> {
    let Some(network) = network(&loaded.job.description) else {
        return Some("is_network is not text".to_owned());
    };
    wrong_network(network, &loaded.job.place.division)
}

/// Describes a contradiction between `is_network` and the division.
pub(super) fn wrong_network(network: bool, division: &str) -> Option<String> {
    let wrong = (network && division == "closed") || (!network && division == "network");
    wrong.then(|| format!("is_network is {network}, the division is {division}"))
}
