//! What commands share: the workspace that was named, the format that was asked for, and printing.

use std::{
    borrow::Cow,
    fmt::Write as _,
    io::{self, IsTerminal as _, Write as _},
    path::PathBuf,
};

use clap::{
    ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};
use regatta_rules::{escape, escape_lines};
use serde::Serialize;

use crate::{
    exit::Failure,
    store::Store,
    workspace::{Workspace, WorkspaceError},
};

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// For programs: one JSON document.
    Json,
    /// For spreadsheets. Only `submission check` takes it.
    Csv,
    /// A page that needs nothing else. Only `submission check` takes it.
    Html,
}

/// What every command takes; one that has more formats declares a `--format` of its own over the global one.
pub(super) fn text_or_json() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(["text", "json"]).map(|word| match word.as_str() {
        "json" => Format::Json,
        _ => Format::Text,
    })
}

/// The global flags.
#[derive(Debug)]
pub(crate) struct Context {
    /// The workspace's directory.
    pub(crate) workspace: PathBuf,
    /// How results are printed.
    pub(crate) format: Format,
}

impl Context {
    /// Opens the workspace that was named.
    pub(crate) fn open(&self) -> Result<Workspace, Failure> {
        Workspace::open(&self.workspace).map_err(|error| match error {
            WorkspaceError::NotOne(_) => Failure::usage(error).way_out(
                "name one with --workspace DIR, make one with `regatta init --workspace DIR`, or try `regatta quickstart`",
            ),
            WorkspaceError::Config { .. } | WorkspaceError::Exists(_) => Failure::usage(error),
            WorkspaceError::Io { .. } => Failure::from(error),
        })
    }

    /// Opens the workspace and its store.
    pub(crate) fn open_store(&self) -> Result<(Workspace, Store), Failure> {
        let workspace = self.open()?;
        let store = Store::open(&workspace.database())?;
        Ok((workspace, store))
    }

    /// The workspace, if the directory is one: for commands that do not need one and respect its own files.
    pub(crate) fn open_if_there(&self) -> Result<Option<Workspace>, Failure> {
        match Workspace::open(&self.workspace) {
            Ok(workspace) => Ok(Some(workspace)),
            Err(WorkspaceError::NotOne(_)) => Ok(None),
            Err(error) => Err(Failure::usage(error)),
        }
    }

    /// Prints a result: a document for programs, or what `text` says for people.
    pub(crate) fn print(&self, document: &impl Serialize, text: impl FnOnce() -> String) -> io::Result<()> {
        match self.format {
            Format::Json => write_line(&ascii_escapes(&serde_json::to_string_pretty(document)?)),
            Format::Text | Format::Csv | Format::Html => say(&text()),
        }
    }

    /// Whether progress may be drawn on the terminal.
    pub(crate) fn is_lively(&self) -> bool {
        io::stderr().is_terminal()
    }
}

/// Prints text for people to standard output. What a log or a device has put into it steers no terminal.
pub(crate) fn say(text: &str) -> io::Result<()> {
    write_line(&escape_lines(text))
}

/// Prints as it is. A reader that has left (`| head`) is no error.
fn write_line(text: &str) -> io::Result<()> {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

/// Tells on standard error how things are going: progress, not results.
pub(crate) fn tell(text: &str) {
    // Nobody is left to tell when standard error is gone.
    let _ = writeln!(io::stderr(), "{}", escape_lines(text));
}

/// A JSON document whose strings hold no character that steers a terminal: the same document, with `\u` escapes. JSON's
/// own syntax has none of them but the line feed.
fn ascii_escapes(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || matches!(escape(c.encode_utf8(&mut [0; 4])), Cow::Borrowed(_)) {
            text.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_stays_the_same_and_steers_no_terminal() {
        let document =
            serde_json::json!({ "reason": "a\u{9b}2J\u{202e}b\u{e0041}\n\x1b[0m", "name": "Übung" });
        let text = ascii_escapes(&serde_json::to_string_pretty(&document).unwrap());
        assert!(
            text.contains(r"a\u009b2J\u202eb\udb40\udc41\n\u001b[0m") && text.contains("Übung"),
            "{text}"
        );
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap(),
            document
        );
    }
}
