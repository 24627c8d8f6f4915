//! Reads a YAML document like PyYAML's `safe_load`, as a JSON value. The official checker reads `config.yaml` with it.
//!
//! A library parses the grammar. This module adds YAML 1.1's plain scalars and limits on depth and size. The limits are needed
//! because aliases in a few lines can expand to a document of any size. Merge keys (`<<`) and times are read as text.

use std::collections::HashMap;

use serde_json::{Map, Number, Value};
use yaml_rust2::{
    parser::{Event, Parser, Tag},
    scanner::{ScanError, TScalarStyle},
};

use super::parsed::Parsed;

/// The greatest nesting depth that is read.
const MAX_DEPTH: usize = 64;
/// The greatest number of nodes that are read, including the expansion of aliases.
const MAX_NODES: usize = 1 << 18;
/// The prefix of YAML's own tags.
const CORE_TAG: &str = "tag:yaml.org,2002:";

/// Why a document cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum YamlError {
    #[error(transparent)]
    Grammar(#[from] ScanError),
    #[error("{problem} at line {line}")]
    Refused { problem: Problem, line: usize },
}

/// What a document contains that is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Problem {
    #[error("an end without a beginning")]
    UnmatchedEnd,
    #[error("an alias of an incomplete node")]
    IncompleteAlias,
    #[error("a second document")]
    SecondDocument,
    #[error("nested too deeply")]
    TooDeep,
    #[error("more nodes than any configuration needs")]
    TooManyNodes,
    #[error("an unknown tag")]
    UnknownTag,
}

/// Reads the single document of `text`.
pub(super) fn read(text: &str) -> Result<Parsed, YamlError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut parser = Parser::new_from_str(text);
    let mut document = Builder::default();
    loop {
        let (event, mark) = parser.next_token()?;
        if event == Event::StreamEnd {
            return Ok(Parsed {
                value: document.root.unwrap_or(Value::Null),
                repeated: document.repeated,
            });
        }
        let line = mark.line();
        document
            .take(event, line)
            .map_err(|problem| YamlError::Refused { problem, line })?;
    }
}

/// An unfinished collection with its anchor.
enum Open {
    List(usize, Vec<Value>),
    Map(usize, Map<String, Value>, Option<YamlKey>),
}

/// A key of a map. Only text keys can be looked up, so entries with other keys are dropped.
enum YamlKey {
    Text(String),
    Other,
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: HashMap<usize, Value>,
    root: Option<Value>,
    nodes: usize,
    /// The message about the first key that a map has twice.
    repeated: Option<String>,
}

impl Builder {
    fn take(&mut self, event: Event, line: usize) -> Result<(), Problem> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let value = scalar(text, style, tag.as_ref())?;
                self.finished(anchor, value, line)
            }
            Event::SequenceStart(anchor, tag) => {
                known(tag.as_ref())?;
                self.begin(Open::List(anchor, Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                known(tag.as_ref())?;
                self.begin(Open::Map(anchor, Map::new(), None))
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List(anchor, list)) => self.finished(anchor, Value::Array(list), line),
                Some(Open::Map(anchor, map, _)) => self.finished(anchor, Value::Object(map), line),
                None => Err(Problem::UnmatchedEnd),
            },
            Event::Alias(anchor) => {
                let value = self.anchors.get(&anchor).cloned();
                let value = value.ok_or(Problem::IncompleteAlias)?;
                self.nodes += size(&value);
                self.finished(0, value, line)
            }
            Event::DocumentStart if self.root.is_some() => Err(Problem::SecondDocument),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, open: Open) -> Result<(), Problem> {
        if self.open.len() >= MAX_DEPTH {
            return Err(Problem::TooDeep);
        }
        self.open.push(open);
        Ok(())
    }

    fn finished(&mut self, anchor: usize, value: Value, line: usize) -> Result<(), Problem> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(Problem::TooManyNodes);
        }
        if anchor > 0 {
            self.nodes += size(&value);
            self.anchors.insert(anchor, value.clone());
        }
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some(Open::List(_, list)) => list.push(value),
            Some(Open::Map(_, map, key)) => match (key.take(), value) {
                (None, Value::String(text)) => *key = Some(YamlKey::Text(text)),
                (None, _) => *key = Some(YamlKey::Other),
                (Some(YamlKey::Text(text)), value) => {
                    if map.contains_key(&text) {
                        let message = format!("duplicate key `{text}`, again at line {line}");
                        self.repeated.get_or_insert(message);
                    }
                    map.insert(text, value);
                }
                (Some(YamlKey::Other), _) => {}
            },
        }
        Ok(())
    }
}

/// Returns the number of nodes in a value.
fn size(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(size).sum::<usize>(),
        Value::Object(map) => 1 + map.values().map(size).sum::<usize>(),
        _ => 1,
    }
}

/// Refuses tags other than YAML's own, as `safe_load` does.
fn known(tag: Option<&Tag>) -> Result<(), Problem> {
    match tag {
        Some(tag) if !format!("{}{}", tag.handle, tag.suffix).starts_with(CORE_TAG) => {
            Err(Problem::UnknownTag)
        }
        _ => Ok(()),
    }
}

fn scalar(text: String, style: TScalarStyle, tag: Option<&Tag>) -> Result<Value, Problem> {
    known(tag)?;
    let is_text = style != TScalarStyle::Plain || tag.is_some_and(|tag| tag.suffix == "str");
    Ok(if is_text { Value::String(text) } else { plain(text) })
}

/// Returns the value of a scalar without quotes.
fn plain(text: String) -> Value {
    let lower = text.to_ascii_lowercase();
    let cased = [lower.clone(), text.to_ascii_uppercase(), capitalised(&lower)].contains(&text);
    match lower.as_str() {
        "" | "~" => return Value::Null,
        "null" if cased => return Value::Null,
        "true" | "yes" | "on" if cased => return Value::Bool(true),
        "false" | "no" | "off" if cased => return Value::Bool(false),
        _ => {}
    }
    whole(&lower)
        .or_else(|| fraction(&lower))
        .unwrap_or(Value::String(text))
}

fn capitalised(lower: &str) -> String {
    let mut letters = lower.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Parses an integer in one of YAML 1.1's notations. Integers beyond 64 bits become the nearest float.
fn whole(text: &str) -> Option<Value> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.strip_prefix('0') {
        Some(rest) if rest.starts_with('x') => (16, &rest[1..]),
        Some(rest) if rest.starts_with('b') => (2, &rest[1..]),
        Some(rest) if !rest.is_empty() => (8, rest),
        _ => (10, digits),
    };
    if !digits.starts_with(|c: char| c.is_digit(radix)) {
        return None;
    }
    let digits = digits.replace('_', "");
    let size = match u128::from_str_radix(&digits, radix) {
        Ok(size) => size,
        Err(_) if radix == 10 && digits.bytes().all(|byte| byte.is_ascii_digit()) => u128::MAX,
        Err(_) => return None,
    };
    let number = match (negative, u64::try_from(size)) {
        (false, Ok(size)) => Number::from(size),
        (true, Ok(size)) if size <= i64::MAX as u64 => Number::from(-size.cast_signed()),
        _ => Number::from_f64(if negative { -(size as f64) } else { size as f64 })?,
    };
    Some(Value::Number(number))
}

/// Parses a float, which has a decimal point, and a sign in its exponent. Infinities and `.nan` stay texts, because JSON does not
/// have them.
fn fraction(text: &str) -> Option<Value> {
    let body = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = body.split_once('e').unwrap_or((body, "+0"));
    let (before, after) = mantissa.split_once('.')?;
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let signed = exponent.strip_prefix(['-', '+'])?;
    let good = digits(before)
        && digits(after)
        && !(before.is_empty() && after.is_empty())
        && !before.starts_with('_')
        && !signed.is_empty()
        && signed.bytes().all(|byte| byte.is_ascii_digit());
    let value = text.replace('_', "").parse::<f64>().ok().filter(|_| good)?;
    Number::from_f64(value).map(Value::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::read;

    #[test]
    fn plain_scalars_are_those_of_yaml_1_1() {
        let text = "a: 16159082839903944936\nb: 0x1F\nc: 017\nd: yes\ne: 1e5\nf: 1.5e+3\ng: ~\nh: '12'\ni: -3\nj: nO\nk: .5\n\
                    l: 1_000\nm: 2026-08-20\nn: 0\n50: x\n\"50.0\": y\n";
        let expected = json!({
            "a": 16_159_082_839_903_944_936_u64, "b": 31, "c": 15, "d": true, "e": "1e5", "f": 1500.0, "g": null, "h": "12",
            "i": -3, "j": "nO", "k": 0.5, "l": 1000, "m": "2026-08-20", "n": 0, "50.0": "y",
        });
        let parsed = read(text).unwrap();
        assert_eq!((parsed.value, parsed.repeated), (expected, None));
    }

    #[test]
    fn a_repeated_key_is_named_with_its_line() {
        let parsed = read("a: 1\nb: {c: 2}\na: 3\n").unwrap();
        assert_eq!(parsed.value, json!({ "a": 3, "b": { "c": 2 } }));
        let repeated = parsed.repeated.unwrap();
        assert!(
            repeated.contains("duplicate key `a`, again at line 3"),
            "{repeated}"
        );
    }

    #[test]
    fn hostile_documents_end_with_a_reason() {
        let deep = "[".repeat(100_000);
        assert!(read(&deep).is_err());
        let lines: Vec<_> = (1..40)
            .map(|level| {
                format!(
                    "a{level}: &a{level} [*a{}, *a{0}, *a{0}, *a{0}, *a{0}, *a{0}]",
                    level - 1
                )
            })
            .collect();
        let bomb = format!("a0: &a0 [x, x, x]\n{}\n", lines.join("\n"));
        assert!(read(&bomb).err().unwrap().to_string().contains("more nodes"));
        assert!(read("a: !python/object:os.system x\n").is_err());
        assert!(
            read("a: 1\n---\nb: 2\n")
                .err()
                .unwrap()
                .to_string()
                .contains("second document")
        );
        assert!(read("a: &x [*x]\n").is_err());
        assert!(read("a: [1\nb: }").is_err());
    }
}
