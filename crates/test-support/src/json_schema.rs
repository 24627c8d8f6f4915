//! Checks JSON documents against a JSON schema (draft 2020-12). It knows the keywords that the repository's schemas use, and refuses a
//! schema with any other.

#![expect(clippy::expect_used, clippy::panic, reason = "test code")]

use serde_json::Value;

/// Keywords that describe and do not check.
const DESCRIBING: [&str; 8] = [
    "$schema",
    "$id",
    "$defs",
    "title",
    "description",
    "default",
    "format",
    "writeOnly",
];

/// Returns the differences of `document` from the definition `name` of `schema`, one line per finding.
///
/// # Panics
/// Panics when the schema has no such definition, or uses an unknown keyword.
#[must_use]
pub fn findings(document: &Value, schema: &Value, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    let rules = definition(schema, name);
    check(document, rules, schema, name, &mut found);
    found
}

/// Returns the differences of a document of `regatta` from the definition `name` in `coordinator/commands.schema.json`.
///
/// # Panics
/// As [`findings`].
#[must_use]
pub fn command_findings(document: &Value, name: &str) -> Vec<String> {
    let schema = include_str!("../../../coordinator/commands.schema.json");
    let schema = serde_json::from_str(schema).expect("a JSON schema");
    findings(document, &schema, name)
}

fn definition<'a>(schema: &'a Value, name: &str) -> &'a Value {
    let found = schema["$defs"].get(name);
    found.unwrap_or_else(|| panic!("the schema has no definition `{name}`"))
}

fn check(value: &Value, rules: &Value, schema: &Value, at: &str, found: &mut Vec<String>) {
    let rules = rules
        .as_object()
        .unwrap_or_else(|| panic!("{at}: a schema is an object"));
    for (keyword, rule) in rules {
        match keyword.as_str() {
            "$ref" => {
                let name = rule.as_str().and_then(|path| path.strip_prefix("#/$defs/"));
                check(
                    value,
                    definition(schema, name.expect("a local reference")),
                    schema,
                    at,
                    found,
                );
            }
            "type" => {
                let allowed: Vec<&str> = match rule {
                    Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
                    one => one.as_str().into_iter().collect(),
                };
                let actual = type_of(value);
                let is_number = actual == "integer" && allowed.contains(&"number");
                if !is_number && !allowed.contains(&actual) {
                    found.push(format!("{at} is {actual}, expected {}", allowed.join(" or ")));
                }
            }
            "enum" => {
                if !rule.as_array().expect("an array").contains(value) {
                    found.push(format!("{at} is {value}, expected one of {rule}"));
                }
            }
            "const" => {
                if value != rule {
                    found.push(format!("{at} is {value}, expected {rule}"));
                }
            }
            "oneOf" | "anyOf" => either(value, rule, schema, at, found),
            "minimum" | "maximum" => {
                let (own, bound) = (value.as_f64(), rule.as_f64());
                let is_within = |(own, bound)| {
                    if keyword == "minimum" {
                        own >= bound
                    } else {
                        own <= bound
                    }
                };
                if own.zip(bound).is_some_and(|pair: (f64, f64)| !is_within(pair)) {
                    found.push(format!("{at} is {value}, its {keyword} is {rule}"));
                }
            }
            "minItems" | "maxItems" => {
                let (own, bound) = (
                    value.as_array().map(Vec::len),
                    rule.as_u64().unwrap_or(0) as usize,
                );
                let is_within = |own| {
                    if keyword == "minItems" {
                        own >= bound
                    } else {
                        own <= bound
                    }
                };
                if own.is_some_and(|own| !is_within(own)) {
                    found.push(format!("{at} has another length than {rule}"));
                }
            }
            "required" => {
                for key in rule
                    .as_array()
                    .expect("an array")
                    .iter()
                    .filter_map(Value::as_str)
                {
                    if value.is_object() && value.get(key).is_none() {
                        found.push(format!("{at} has no `{key}`"));
                    }
                }
            }
            "properties" => {
                for (key, rules) in rule.as_object().expect("an object") {
                    if let Some(value) = value.get(key) {
                        check(value, rules, schema, &format!("{at}.{key}"), found);
                    }
                }
            }
            "additionalProperties" => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    let known = rules.get("properties").and_then(|known| known.get(key));
                    if known.is_some() {
                        continue;
                    }
                    if rule == &Value::Bool(false) {
                        found.push(format!("{at} has an unknown `{key}`"));
                    } else {
                        check(value, rule, schema, &format!("{at}.{key}"), found);
                    }
                }
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(item, rule, schema, &format!("{at}[{index}]"), found);
                }
            }
            keyword => assert!(DESCRIBING.contains(&keyword), "{at}: unknown keyword `{keyword}`"),
        }
    }
}

/// Checks a value that must suit one of several schemas. Of none, the findings are those of the schema that suits best.
fn either(value: &Value, rules: &Value, schema: &Value, at: &str, found: &mut Vec<String>) {
    let of = |rules: &Value| {
        let mut own = Vec::new();
        check(value, rules, schema, at, &mut own);
        own
    };
    let rules = rules.as_array().expect("an array");
    let mut findings: Vec<Vec<String>> = rules.iter().map(of).collect();
    findings.sort_by_key(Vec::len);
    // Words are a choice of constants: every one of them is the expectation.
    let words: Vec<&Value> = rules.iter().filter_map(|one| one.get("const")).collect();
    match findings.into_iter().next() {
        Some(best) if !best.is_empty() && words.len() == rules.len() => {
            let words = words
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(",");
            found.push(format!("{at} is {value}, expected one of [{words}]"));
        }
        best => found.extend(best.into_iter().flatten()),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_keyword_finds_its_violation() {
        let schema = json!({ "$defs": {
            "list": { "type": "object", "required": ["runs"], "additionalProperties": false,
                "properties": { "runs": { "type": "array", "items": { "$ref": "#/$defs/run" } } } },
            "run": { "type": "object", "properties": {
                "state": { "enum": ["VALID"] }, "took": { "type": ["number", "null"] } } },
        } });
        let good = json!({ "runs": [{ "state": "VALID", "took": 1 }, { "took": null }] });
        assert_eq!(findings(&good, &schema, "list"), Vec::<String>::new());
        let bad = json!({ "runs": [{ "state": "GOOD", "took": "1 s" }], "more": 1 });
        assert_eq!(
            findings(&bad, &schema, "list"),
            [
                "list has an unknown `more`",
                "list.runs[0].state is \"GOOD\", expected one of [\"VALID\"]",
                "list.runs[0].took is string, expected number or null",
            ]
        );
        assert_eq!(findings(&json!({}), &schema, "list"), ["list has no `runs`"]);
    }
}
