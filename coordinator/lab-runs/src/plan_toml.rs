//! Reads the TOML of plans, and finds all of its errors, not only the first: an entry with an error is blanked out, and the rest is read again.

use std::{fmt, ops::Range};

use regatta_text::nearest;
use serde::de::DeserializeOwned;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// The most errors that are reported at once.
const MAX_ERRORS: usize = 20;

/// An error at a place of a plan. [`fmt::Display`] shows the line and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanTomlError {
    /// The line, from 1. `None` when an error belongs to no line.
    pub line: Option<usize>,
    /// The reason.
    pub what: String,
    /// The line's text and carets below the place.
    pub excerpt: Option<String>,
}

impl PlanTomlError {
    /// Lists errors with their places. A single one, which is printed before, has only the place.
    pub fn list(errors: &[Self]) -> String {
        let shown = errors.iter().map(|error| match (&error.excerpt, errors.len()) {
            (Some(excerpt), 1) => excerpt.clone(),
            (None, 1) => String::new(),
            (Some(excerpt), _) => format!("{error}\n{excerpt}"),
            (None, _) => error.to_string(),
        });
        shown.collect::<Vec<_>>().join("\n")
    }
}

impl fmt::Display for PlanTomlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(&self.what)
    }
}

/// Returns the number of the line with a byte, from 1.
pub fn line_at(text: &str, byte: usize) -> usize {
    let before = text.as_bytes().iter().take(byte);
    before.filter(|byte| **byte == b'\n').count() + 1
}

/// Returns the line of a place with carets below the place: `batch = 1` and `^^^^^`.
pub fn excerpt(text: &str, span: &Range<usize>) -> Option<String> {
    let start = text.get(..span.start)?.rfind('\n').map_or(0, |at| at + 1);
    let line = text.get(start..)?.lines().next()?;
    let before = text.get(start..span.start)?.chars().count();
    let marked = text
        .get(span.start..span.end.min(start + line.len()))?
        .chars()
        .count();
    let number = line_at(text, span.start).to_string();
    let margin = " ".repeat(number.len());
    Some(format!(
        "{number} | {}\n{margin} | {}{}",
        line.replace('\t', " "),
        " ".repeat(before),
        "^".repeat(marked.max(1))
    ))
}

/// Reads a plan.
///
/// # Errors
/// Returns every error that was found, in the order of the text.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, Vec<PlanTomlError>> {
    let (_, mut syntax) = DeTable::parse_recoverable(text);
    if !syntax.is_empty() {
        syntax.sort_by_key(|error| error.span().map(|span| span.start));
        return Err(syntax.iter().map(|error| located(text, error, None)).collect());
    }
    let mut rest = text.to_owned();
    let mut errors: Vec<(Option<Range<usize>>, PlanTomlError)> = Vec::new();
    let mut blanked: Vec<Range<usize>> = Vec::new();
    loop {
        let error = match toml::from_str(&rest) {
            Ok(value) if errors.is_empty() => return Ok(value),
            Ok(_) => break,
            Err(error) => error,
        };
        let entry = error.span().and_then(|span| entry_at(&rest, span.start));
        let scope = match &entry {
            Some(entry) if entry.is_inline => Some(entry.range.clone()),
            _ => error.span().and_then(|span| section_at(&rest, span.start)),
        };
        // What is missing now may be a blanked entry: the rest of its table is correct.
        let lost = |scope: &Range<usize>| {
            blanked
                .iter()
                .any(|part| scope.start <= part.start && part.end <= scope.end)
        };
        let is_consequence = !errors.is_empty()
            && (error.message().starts_with("missing field") || scope.as_ref().is_some_and(lost));
        if !is_consequence {
            errors.push((error.span(), located(text, &error, entry.as_ref())));
        }
        let is_table = entry.is_none_or(|entry| !entry.is_inline);
        match scope {
            Some(scope) if (is_consequence || !is_table) && errors.len() < MAX_ERRORS => {
                blank(&mut rest, &scope);
                blanked.push(scope);
            }
            _ => break,
        }
    }
    errors.sort_by_key(|(span, _)| span.as_ref().map(|span| span.start));
    Err(errors.into_iter().map(|(_, error)| error).collect())
}

/// A key with its value.
struct Entry {
    key: String,
    range: Range<usize>,
    /// Whether it is `KEY = VALUE`, not a table with a header.
    is_inline: bool,
}

/// Returns the innermost entry with a byte.
fn entry_at(text: &str, byte: usize) -> Option<Entry> {
    fn in_table(table: &DeTable<'_>, text: &str, byte: usize) -> Option<Entry> {
        table.iter().find_map(|(key, value)| {
            let range = key.span().start..value.span().end.max(key.span().end);
            in_value(value, text, byte).or_else(|| {
                range.contains(&byte).then(|| Entry {
                    key: key.get_ref().to_string(),
                    is_inline: text
                        .get(key.span().end..value.span().start)
                        .is_some_and(|between| between.contains('=')),
                    range,
                })
            })
        })
    }
    fn in_value(value: &Spanned<DeValue<'_>>, text: &str, byte: usize) -> Option<Entry> {
        match value.get_ref() {
            DeValue::Table(table) => in_table(table, text, byte),
            DeValue::Array(values) => values.iter().find_map(|value| in_value(value, text, byte)),
            _ => None,
        }
    }
    in_table(DeTable::parse(text).ok()?.get_ref(), text, byte)
}

/// Returns the table with a header that contains a byte: from its header to the next one.
fn section_at(text: &str, byte: usize) -> Option<Range<usize>> {
    let mut starts = text.match_indices('[').map(|(at, _)| at);
    let begins_line = |at: &usize| {
        text.get(..*at)
            .is_some_and(|before| before.is_empty() || before.ends_with('\n'))
    };
    let headers: Vec<usize> = starts.by_ref().filter(begins_line).collect();
    let start = headers.iter().rev().find(|start| **start <= byte)?;
    let end = headers.iter().find(|end| *end > start).copied();
    Some(*start..end.unwrap_or(text.len()))
}

/// Replaces a range by spaces, and leaves every other byte in its place.
fn blank(text: &mut String, range: &Range<usize>) {
    if let Some(blanked) = text.get(range.clone()) {
        let blanked: String = blanked
            .bytes()
            .map(|byte| if byte == b'\n' { '\n' } else { ' ' })
            .collect();
        text.replace_range(range.clone(), &blanked);
    }
}

fn located(text: &str, error: &toml::de::Error, entry: Option<&Entry>) -> PlanTomlError {
    let span = error.span();
    PlanTomlError {
        line: span.as_ref().map(|span| line_at(text, span.start)),
        what: reworded(
            &error.message().replace('\n', ", "),
            entry.map(|entry| entry.key.as_str()),
        ),
        excerpt: span.and_then(|span| excerpt(text, &span)),
    }
}

/// Adds the name that was probably meant to a message of the parser, and the key to one about a type.
fn reworded(message: &str, key: Option<&str>) -> String {
    if let Some((found, expected)) = message
        .strip_prefix("invalid type: ")
        .and_then(|rest| rest.split_once(", expected "))
    {
        let key = key.map_or_else(String::new, |key| format!("`{key}`: "));
        let is_number = ["u8", "u16", "u32", "u64", "usize", "i64"].contains(&expected);
        let expected = if is_number { "an integer" } else { expected };
        return format!("{key}expected {expected}, found {found}");
    }
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let Some((unknown, names)) = quoted.split_first().filter(|_| message.starts_with("unknown ")) else {
        return message.to_owned();
    };
    let names: Vec<&str> = match message.split_once("known are ") {
        Some((_, known)) => known.split(", ").collect(),
        None => names.to_vec(),
    };
    match nearest(unknown, names.iter().copied()) {
        Some(meant) if message.starts_with("unknown field") => {
            format!("unknown field `{unknown}`; did you mean `{meant}`?")
        }
        Some(meant) => format!("{message}; did you mean `{meant}`?"),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        #[expect(dead_code, reason = "only read")]
        name: String,
        #[expect(dead_code, reason = "only read")]
        run: Vec<Run>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Run {
        #[expect(dead_code, reason = "only read")]
        mode: Option<String>,
        #[expect(dead_code, reason = "only read")]
        repeat: Option<u16>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Table {
        #[expect(dead_code, reason = "only read")]
        #[serde(default)]
        cell: Vec<Cell>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Cell {
        #[expect(dead_code, reason = "only read")]
        name: String,
    }

    #[test]
    fn all_errors_of_a_plan_are_found_with_their_places() {
        let text = "nmae = 'a'\nname = 'b'\n[[run]]\nmodes = ['x']\nrepeat = 'two'\n[[run]]\nrepeat = 3\nrepaet = 1\n";
        let errors = read::<File>(text).unwrap_err();
        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "line 1: unknown field `nmae`; did you mean `name`?",
                "line 4: unknown field `modes`; did you mean `mode`?",
                "line 5: `repeat`: expected an integer, found string \"two\"",
                "line 8: unknown field `repaet`; did you mean `repeat`?",
            ]
        );
        assert_eq!(
            errors[2].excerpt.as_deref(),
            Some("5 | repeat = 'two'\n  |          ^^^^^")
        );
    }

    #[test]
    fn a_missing_key_is_found_only_if_nothing_was_blanked() {
        let missing = read::<File>("run = []\n").unwrap_err();
        assert!(
            missing.len() == 1 && missing[0].what.contains("missing field `name`"),
            "{missing:?}"
        );
        let wrong = read::<File>("name = 1\nrun = []\n").unwrap_err();
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        let both = read::<Table>("zone = 1\n[[cell]]\nnmae = 'a'\n").unwrap_err();
        let lines: Vec<_> = both.iter().map(|error| error.line).collect();
        assert_eq!(lines, [Some(1), Some(3)], "{both:?}");
    }

    #[test]
    fn errors_of_the_syntax_are_found_together() {
        let errors = read::<File>("name = \nrun = [\n").unwrap_err();
        assert!(errors.len() > 1 && errors[0].line == Some(1), "{errors:?}");
    }
}
