//! The CSV form of lists, from their JSON form.

use regatta_submission_check::check::format::csv_field;
use regatta_text::escape;
use serde_json::Value;

/// Formats JSON documents as one CSV line each, with a header, quoted by RFC 4180. `columns` are names, each with the place of its value.
pub(super) fn csv(columns: &[(&str, &str)], documents: &[Value]) -> String {
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let mut lines = vec![names.join(",")];
    for document in documents {
        let values = columns.iter().map(|(_, place)| match document.pointer(place) {
            None | Some(Value::Null) => String::new(),
            // A device's text must not control a terminal.
            Some(Value::String(text)) => csv_field(&escape(text)),
            Some(Value::Array(words)) => {
                let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
                csv_field(&escape(&words.join("; ")))
            }
            Some(Value::Object(fields)) => {
                let fields = fields.iter().map(|(key, value)| match value {
                    Value::String(text) => format!("{key}={text}"),
                    value => format!("{key}={value}"),
                });
                csv_field(&escape(&fields.collect::<Vec<_>>().join("; ")))
            }
            Some(value) => csv_field(&value.to_string()),
        });
        lines.push(values.collect::<Vec<_>>().join(","));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_with_a_comma_or_quote_is_quoted() {
        let columns = [
            ("run", "/run"),
            ("none", "/none"),
            ("value", "/metric/value"),
            ("reason", "/reason"),
            ("markers", "/markers"),
            ("settings", "/settings"),
        ];
        let document = serde_json::json!({
            "run": "1", "reason": "too \"few\", really", "metric": { "value": 1.25 }, "markers": ["simulated", "short"],
            "settings": { "batch_size": 16, "model": "a" },
        });
        let printed = csv(&columns, &[document]);
        assert_eq!(
            printed,
            "run,none,value,reason,markers,settings\n1,,1.25,\"too \"\"few\"\", really\",simulated; short,batch_size=16; model=a"
        );
    }
}
