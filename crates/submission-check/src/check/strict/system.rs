//! Checks the system description.

use regatta_catalogue::round::Layout;
use serde_json::{Map, Value};

use super::{StrictContext, accelerators};
use crate::check::{
    finding::{Findings, Rule, Severity},
    official::truthy,
    place::SystemPlace,
    rules,
};

/// The largest JSON file that is read, in bytes.
const MAX: u64 = 16 << 20;
const STATUSES: [&str; 3] = ["available", "preview", "rdi"];
const TYPES: [&str; 4] = ["datacenter", "edge", "datacenter,edge", "edge,datacenter"];

/// The properties of a system that later checks use.
#[derive(Debug, Default)]
pub(super) struct SystemProperties {
    /// The value of `system_type`, or an empty string if it is invalid.
    pub(super) kind: String,
    /// Whether the system is reached over a network.
    pub(super) network: bool,
}

/// Reads a JSON object. Adds a finding and returns `None` if it cannot be read or parsed.
pub(super) fn object(
    context: &StrictContext<'_>,
    path: &str,
    rule: Rule,
    findings: &mut Findings,
) -> Option<Map<String, Value>> {
    let bytes = match context.tree.read(path, MAX) {
        Ok(bytes) => bytes,
        Err(error) => {
            findings.error(rule, path, context.unread(path, error), "add the file");
            return None;
        }
    };
    match serde_json::from_slice(&bytes) {
        Ok(object) => Some(object),
        Err(error) => {
            let line = u64::try_from(error.line()).ok().filter(|&line| line > 0);
            findings.error(
                rule,
                (path, line),
                format!("is not a JSON object: {error}"),
                "fix the JSON",
            );
            None
        }
    }
}

/// Checks the description of a system.
pub(super) fn check(
    context: &StrictContext<'_>,
    place: SystemPlace<'_>,
    findings: &mut Findings,
) -> SystemProperties {
    let path = place.description();
    let SystemPlace {
        division,
        submitter,
        system: name,
    } = place;
    let Some(json) = object(context, &path, rules::SYSTEM, findings) else {
        return SystemProperties::default();
    };
    let text = |key: &str| json.get(key).and_then(Value::as_str);
    if !text("status").is_some_and(|status| STATUSES.contains(&status.to_lowercase().as_str())) {
        let fix = format!("set it to one of {}", STATUSES.join(", "));
        findings.error(
            rules::SYSTEM,
            &path,
            format!("status is {}", shown(&json, "status")),
            fix,
        );
    }
    let kind = text("system_type")
        .filter(|kind| TYPES.contains(kind))
        .unwrap_or_default();
    if kind.is_empty() {
        let fix = format!("set it to exactly one of: {}", TYPES.join("; "));
        let found = format!("system_type is {}", shown(&json, "system_type"));
        findings.error(rules::SYSTEM_TYPE, &path, found, fix);
    }
    if !text("submitter").is_some_and(|value| value.eq_ignore_ascii_case(submitter)) {
        let found = format!(
            "submitter is {}, the directory {submitter}",
            shown(&json, "submitter")
        );
        findings.error(rules::SUBMITTER, &path, found, "use one name");
    }
    check_division(context, &path, division, &json, findings);
    let network = check_network(&path, division, &json, findings);
    check_fields(context, &path, network, &json, findings);
    accelerators::check(&path, name, &json, findings);
    SystemProperties {
        kind: kind.to_owned(),
        network,
    }
}

fn shown(json: &Map<String, Value>, key: &str) -> String {
    json.get(key)
        .map_or_else(|| "missing".to_owned(), Value::to_string)
}

fn check_division(
    context: &StrictContext<'_>,
    path: &str,
    division: &str,
    json: &Map<String, Value>,
    findings: &mut Findings,
) {
    let found = json.get("division").and_then(Value::as_str).unwrap_or_default();
    if found == division {
        return;
    }
    // The official comparison is case-sensitive up to v5.1 and ignores case since then.
    let tolerated =
        context.round.submission.layout == Layout::ResultsOnly && found.eq_ignore_ascii_case(division);
    let severity = if tolerated {
        Severity::Warning
    } else {
        Severity::Error
    };
    let text = format!(
        "division is {}, the directory {division}",
        shown(json, "division")
    );
    findings.add(
        severity,
        rules::DIVISION,
        path,
        text,
        format!("set it to \"{division}\""),
    );
}

fn check_network(path: &str, division: &str, json: &Map<String, Value>, findings: &mut Findings) -> bool {
    let network = match json.get("is_network") {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => text.eq_ignore_ascii_case("true"),
        Some(Value::Bool(value)) => {
            let fix = "write \"true\" or \"false\" as text: the official checker dies at anything else";
            findings.error(rules::NETWORK, path, "is_network is not text", fix);
            *value
        }
        Some(_) => {
            findings.error(
                rules::NETWORK,
                path,
                "is_network is not text",
                "write \"true\" or \"false\"",
            );
            false
        }
    };
    let wrong = (network && division == "closed") || (!network && division == "network");
    if wrong {
        let text = format!("is_network is {network}, the division is {division}");
        let fix = "systems that are reached over a network go into the network division";
        findings.error(rules::NETWORK, path, text, fix);
    }
    network
}

fn check_fields(
    context: &StrictContext<'_>,
    path: &str,
    network: bool,
    json: &Map<String, Value>,
    findings: &mut Findings,
) {
    let submission = &context.round.submission;
    let further = network
        .then_some(&submission.network_fields)
        .into_iter()
        .flatten();
    for field in submission.system_fields.iter().chain(further) {
        match json.get(field) {
            None => {
                let text = format!("the field {field} is missing");
                findings.error(rules::SYSTEM, path, text, "add it");
            }
            Some(value) if submission.system_fields_filled.contains(field) && !truthy(value) => {
                let text = format!("the field {field} is empty");
                findings.error(
                    rules::SYSTEM,
                    path,
                    text,
                    "fill it in; a number 0 counts as empty, write it as text",
                );
            }
            Some(_) => {}
        }
    }
    for field in ["number_of_nodes", "accelerators_per_node"] {
        let whole = match json.get(field) {
            None => true,
            Some(Value::String(text)) => text.trim().parse::<i64>().is_ok(),
            Some(Value::Number(number)) => number.is_i64() || number.is_u64(),
            Some(_) => false,
        };
        if !whole {
            let text = format!("{field} is {}, which is not an integer", shown(json, field));
            findings.warning(
                rules::SYSTEM,
                path,
                text,
                "the official CSV multiplies it: write an integer",
            );
        }
    }
}
