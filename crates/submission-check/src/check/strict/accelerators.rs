//! Compares the number of accelerators in a system description with what its names say.

use serde_json::{Map, Value};

use crate::check::{finding::Findings, rules};

const COUNT: &str = "accelerators_per_node";
const MODEL: &str = "accelerator_model_name";
/// Model names that mean no accelerator.
const NO_MODEL: [&str; 5] = ["", "-", "n/a", "na", "none"];

/// Checks the description of the system `name`.
pub(super) fn check(path: &str, name: &str, json: &Map<String, Value>, findings: &mut Findings) {
    let Some(count) = number(json.get(COUNT)) else {
        return;
    };
    let nodes = number(json.get("number_of_nodes")).unwrap_or(1).max(1);
    let model = text(json, MODEL);
    for (place, stated) in [
        ("the directory's name", after_memory(name)),
        ("system_name", before_model(text(json, "system_name"), model)),
    ] {
        // Names of systems with several nodes count the accelerators of one node, or of all.
        if let Some(stated) =
            stated.filter(|&stated| stated != count && stated != count.saturating_mul(nodes))
        {
            let text = format!("{COUNT} is {count}, {place} says {stated}");
            findings.error(
                rules::SYSTEM,
                path,
                text,
                "state the accelerators that the runs used",
            );
        }
    }
    let unnamed = NO_MODEL.contains(&model.trim().to_ascii_lowercase().as_str());
    if json.contains_key(MODEL) && unnamed != (count == 0) {
        let text = format!("{COUNT} is {count}, {MODEL} is `{model}`");
        findings.warning(
            rules::SYSTEM,
            path,
            text,
            "let both describe the same accelerators",
        );
    }
}

fn text<'a>(json: &'a Map<String, Value>, key: &str) -> &'a str {
    json.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn number(value: Option<&Value>) -> Option<u64> {
    match value? {
        Value::String(text) => text.trim().parse().ok(),
        value => value.as_u64(),
    }
}

/// Returns the number in names such as `RTX_4000_32GBx5_TRT`.
fn after_memory(name: &str) -> Option<u64> {
    let (_, rest) = name.split_once("GBx")?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, rest) = rest.split_at_checked(end)?;
    // `1x1g` is a part of an accelerator.
    if !rest.is_empty() && !rest.starts_with(['_', '-']) {
        return None;
    }
    digits.parse().ok()
}

/// Returns the number before the model's name in texts such as `ProLiant (5x NVIDIA RTX 4000, TensorRT)`.
fn before_model(text: &str, model: &str) -> Option<u64> {
    let brand = model.split_whitespace().next().filter(|brand| brand.len() > 1)?;
    text.match_indices("x ").find_map(|(at, separator)| {
        let rest = text.get(at + separator.len()..)?;
        rest.starts_with(brand).then_some(())?;
        let before = text.get(..at)?;
        let digits = before.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        before.get(digits..)?.parse().ok()
    })
}
