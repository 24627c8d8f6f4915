//! Python's formatting and truth rules for values, because the official checkers' output is reproduced.

use regatta_mllog::read::Value as LogValue;
use serde_json::Value;

/// The message of an exception that an official checker would raise.
#[derive(Debug, Clone)]
pub(super) struct Raised(pub(super) String);

impl Raised {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

/// A number that is formatted as in Python: integers have no decimal point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Integer(i128),
    Float(f64),
}

impl Number {
    pub(super) fn value(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            Self::Float(value) => value,
        }
    }

    /// Converts a log value to a number for arithmetic. Booleans count as integers, as in Python.
    pub(super) fn of(value: Option<&LogValue>) -> Result<Self, Raised> {
        match value {
            Some(LogValue::Unsigned(value)) => Ok(Self::Integer(i128::from(*value))),
            Some(LogValue::Signed(value)) => Ok(Self::Integer(i128::from(*value))),
            Some(LogValue::Float(value)) => Ok(Self::Float(*value)),
            Some(LogValue::Bool(value)) => Ok(Self::Integer(i128::from(*value))),
            None | Some(LogValue::Null) => Err(Raised::new("a value is missing from the log")),
            Some(_) => Err(Raised::new("a value in the log is not a number")),
        }
    }

    /// Converts a log value like Python's `float()`, which also accepts numbers in texts.
    pub(super) fn float(value: Option<&LogValue>) -> Result<f64, Raised> {
        if let Some(LogValue::Text(text)) = value {
            let number = text.trim().parse();
            return number.map_err(|_| Raised::new(format!("`{text}` is not a number")));
        }
        Self::of(value).map(Self::value)
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(f),
            Self::Float(value) => f.write_str(&float(*value)),
        }
    }
}

/// Formats a float like Python's `repr`: the shortest digits that parse back, with an exponent below 1e-4 and from 1e16.
pub(crate) fn float(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    let text = value.to_string();
    if text.contains('.') {
        text
    } else {
        format!("{text}.0")
    }
}

/// Formats a JSON value like Python's `str()`.
pub(super) fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        other => repr(other.unwrap_or(&Value::Null)),
    }
}

fn repr(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (None, None, Some(value)) => float(value),
            _ => number.to_string(),
        },
        Value::String(text) if text.contains('\'') && !text.contains('"') => format!("\"{text}\""),
        Value::String(text) => format!("'{}'", text.replace('\'', "\\'")),
        Value::Array(values) => {
            let values: Vec<_> = values.iter().map(repr).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<_> = fields
                .iter()
                .map(|(key, value)| format!("'{key}': {}", repr(value)))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
    }
}

/// Returns whether Python treats a JSON value as true: it is not null, empty, zero or false.
pub(crate) fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(values) => !values.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

/// Returns whether Python treats a log value as true.
pub(super) fn log_truthy(value: Option<&LogValue>) -> bool {
    match value {
        None | Some(LogValue::Null) => false,
        Some(LogValue::Bool(value)) => *value,
        Some(LogValue::Text(text)) => !text.is_empty(),
        Some(LogValue::List(values)) => !values.is_empty(),
        Some(LogValue::Map(values)) => !values.is_empty(),
        Some(number) => number.as_f64() != Some(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::float;

    #[test]
    fn floats_print_as_in_python() {
        for (value, text) in [
            (0.646245, "0.646245"),
            (19210.7, "19210.7"),
            (29.0, "29.0"),
            (0.0, "0.0"),
            (0.00001, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (1e16, "1e+16"),
            (123456789012345680.0, "1.2345678901234568e+17"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(float(value), text);
        }
    }
}
