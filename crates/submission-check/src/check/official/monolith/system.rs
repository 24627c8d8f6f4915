//! The monolith's check of a system description.

use std::sync::Arc;

use regatta_catalogue::round::Checker;
use serde_json::{Map, Value};

use super::super::{Context, Note, crash::Crash, object, python::truthy};
use crate::check::place::SystemPlace;

const STATUSES: [&str; 3] = ["available", "preview", "rdi"];
const TYPES: [&str; 4] = ["datacenter", "edge", "datacenter,edge", "edge,datacenter"];

/// The properties of a system from its description.
#[derive(Debug, Clone)]
pub(super) struct DescribedSystem {
    pub(super) json: Arc<Map<String, Value>>,
    /// The value of `system_type`.
    pub(super) kind: String,
    /// Whether `is_network` is true.
    pub(super) network: bool,
}

impl DescribedSystem {
    /// Describes a contradiction between `is_network` and the division.
    pub(super) fn network_fault(&self, division: &str) -> Option<String> {
        let expected = match division {
            "network" => true,
            "closed" => false,
            _ => return None,
        };
        (expected != self.network)
            .then(|| format!("is_network is {}, the division is {division}", self.network))
    }
}

/// Returns the system, or `None` if the check fails without a traceback.
pub(super) fn check(
    context: &Context<'_>,
    place: SystemPlace<'_>,
    notes: &mut Vec<Note>,
) -> Result<Option<DescribedSystem>, Crash> {
    let path = place.description();
    let (division, submitter) = (place.division, place.submitter);
    let json = object::read(context, &path)?;
    let mut fault = |text: String| {
        let path = path.clone();
        notes.push(Note {
            path,
            text,
            fatal: true,
        });
    };
    let lower = |key: &str| match json.get(key) {
        Some(Value::String(text)) => Ok(text.to_lowercase()),
        _ => Err(Crash(format!("{path}: {key} is not text"))),
    };
    let status = lower("status")?;
    if !STATUSES.contains(&status.as_str()) {
        fault(format!("status `{status}` is none of {}", STATUSES.join(", ")));
        return Ok(None);
    }
    let kind = match json.get("system_type") {
        Some(Value::String(kind)) if TYPES.contains(&kind.as_str()) => kind.clone(),
        other => {
            let found = other.map_or_else(|| "nothing".to_owned(), Value::to_string);
            fault(format!("system_type {found} is none of {}", TYPES.join("; ")));
            return Ok(None);
        }
    };
    let network = match json.get("is_network") {
        None | Some(Value::Null) => false,
        Some(_) => lower("is_network")? == "true",
    };
    let system = DescribedSystem {
        json: Arc::new(json.clone()),
        kind,
        network,
    };
    let mut faults: Vec<String> = system.network_fault(division).into_iter().collect();
    faults.extend(fields(context, &json, network));
    let named = lower("submitter")?;
    if named != submitter.to_lowercase() {
        faults.push(format!("submitter `{named}`, the directory is `{submitter}`"));
    }
    if json.get("division").and_then(Value::as_str) != Some(division) {
        faults.push(format!("division is not `{division}`"));
    }
    let good = faults.is_empty();
    faults.into_iter().for_each(fault);
    Ok(good.then_some(system))
}

fn fields(context: &Context<'_>, json: &Map<String, Value>, network: bool) -> Vec<String> {
    let rules = &context.round.submission;
    let further = network.then_some(&rules.network_fields).into_iter().flatten();
    rules
        .system_fields
        .iter()
        .chain(further)
        .filter_map(|field| match json.get(field) {
            None => Some(format!("field {field} is missing")),
            Some(value) if rules.system_fields_filled.contains(field) && !truthy(value) => {
                Some(format!("field {field} is empty"))
            }
            Some(_) => None,
        })
        .collect()
}

/// Returns whether `system_power_only` is set and the checker supports it.
pub(super) fn power_only(checker: &Checker, system: &DescribedSystem) -> bool {
    use regatta_catalogue::round::Trait;
    checker.has(Trait::PowerOnlySystems)
        && match system.json.get("system_power_only") {
            Some(Value::String(text)) => text.eq_ignore_ascii_case("true"),
            Some(value) => truthy(value),
            None => false,
        }
}
