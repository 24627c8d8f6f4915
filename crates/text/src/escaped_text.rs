//! Untrusted text (from a tree, a log or a device), escaped for terminals, text reports and log lines.
//!
//! The functions do not quote text for a format. JSON, CSV and HTML have their own escapes.

use std::{
    borrow::Cow,
    fmt::{self, Display, Write},
};

/// Replaces every character that controls a terminal or hides other text by its visible Rust escape: `\n`, `\u{1b}`, `\u{202e}`.
///
/// It replaces control characters (C0, DEL, C1) and line and paragraph separators. It also replaces bidirectional embeddings, overrides,
/// isolates and marks, zero-width and other invisible format characters, and tags. A backslash stays, so that escaping twice changes
/// nothing.
///
/// ```
/// assert_eq!(regatta_text::escape("boat\x1b[2J\n\u{202e}PASS"), r"boat\u{1b}[2J\n\u{202e}PASS");
/// assert_eq!(regatta_text::escape("Übung 3: ok"), "Übung 3: ok");
/// ```
#[must_use]
pub fn escape(text: &str) -> Cow<'_, str> {
    if text.contains(is_unsafe) {
        Cow::Owned(Escaped(text).to_string())
    } else {
        Cow::Borrowed(text)
    }
}

/// Escapes the first `most` characters of a text.
///
/// ```
/// assert_eq!(regatta_text::escape_start("boat\x1b[2J\n1", 6), r"boat\u{1b}[");
/// assert_eq!(regatta_text::escape_start("long", 2), "lo");
/// ```
#[must_use]
pub fn escape_start(text: &str, most: usize) -> String {
    let end = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
    escape(text.get(..end).unwrap_or_default()).into_owned()
}

/// Escapes each line of a report as [`escape`] does; line feeds stay. It protects the terminal. Escape a value that must not
/// begin a line before it goes into the report.
///
/// ```
/// assert_eq!(regatta_text::escape_lines("1 error\n\x1b[2Ja.txt\n"), "1 error\n\\u{1b}[2Ja.txt\n");
/// ```
#[must_use]
pub fn escape_lines(text: &str) -> Cow<'_, str> {
    if text.contains(|c| is_unsafe(c) && c != '\n') {
        let lines: Vec<Cow<'_, str>> = text.split('\n').map(escape).collect();
        Cow::Owned(lines.join("\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Replaces the characters of a JSON document that [`escape`] replaces by JSON's own escapes, except line feeds between values.
/// Programs read the same values, and a terminal shows the document safely.
///
/// ```
/// assert_eq!(regatta_text::escape_json("[\n\"a\u{9b}\"]"), "[\n\"a\\u009b\"]");
/// ```
#[must_use]
pub fn escape_json(document: &str) -> Cow<'_, str> {
    let is_escaped = |c| is_unsafe(c) && c != '\n';
    if !document.contains(is_escaped) {
        return Cow::Borrowed(document);
    }
    let mut escaped = String::with_capacity(document.len());
    for c in document.chars() {
        if is_escaped(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// Formats a value with its text escaped as [`escape`] does, for paths and errors in messages. Width and alignment do not apply.
#[derive(Debug, Clone, Copy)]
pub struct Escaped<T>(
    /// The value.
    pub T,
);

impl<T: Display> Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(EscapingWriter(f), "{}", self.0)
    }
}

/// Writes text with unsafe characters escaped.
struct EscapingWriter<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for EscapingWriter<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some((at, character)) = rest.char_indices().find(|(_, c)| is_unsafe(*c)) {
            let (before, after) = rest.split_at(at);
            self.0.write_str(before)?;
            write!(self.0, "{}", character.escape_default())?;
            rest = &after[character.len_utf8()..];
        }
        self.0.write_str(rest)
    }
}

/// Returns whether a character is unsafe to show. The ranges are Unicode's `Bidi_Control` and `Default_Ignorable` format characters and
/// its line and paragraph separators.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        for (text, shown) in [
            ("\x1b[2J\x1b[H", r"\u{1b}[2J\u{1b}[H"),
            ("PASS\r\nFAIL\t\0\x07\x7f", r"PASS\r\nFAIL\t\u{0}\u{7}\u{7f}"),
            ("\u{9b}31m", r"\u{9b}31m"),
            ("a\u{202e}b\u{2066}c\u{200f}", r"a\u{202e}b\u{2066}c\u{200f}"),
            ("a\u{2028}b\u{feff}\u{200b}", r"a\u{2028}b\u{feff}\u{200b}"),
        ] {
            assert_eq!(escape(text), shown);
        }
    }

    #[test]
    fn printable_text_is_not_escaped() {
        for text in [
            "",
            "Jetson AGX Orin",
            r"C:\runs\n",
            "e\u{301}tude 東京 ✓",
            "it's \"quoted\"",
        ] {
            assert!(
                matches!(escape(text), Cow::Borrowed(same) if same == text),
                "{text}"
            );
        }
    }

    #[test]
    fn a_path_is_shown_escaped() {
        assert_eq!(Escaped(Path::new("a\nb/c").display()).to_string(), r"a\nb/c");
    }

    proptest::proptest! {
        #[test]
        fn an_escaped_document_has_the_same_values(text in proptest::string::string_regex("(?s).{0,64}").unwrap()) {
            let document = serde_json::to_string_pretty(&[&text, "\u{e0001}\u{7f}"]).unwrap();
            let escaped = escape_json(&document);
            proptest::prop_assert!(!escaped.contains(|c| is_unsafe(c) && c != '\n'));
            let read: Vec<String> = serde_json::from_str(&escaped).unwrap();
            proptest::prop_assert_eq!(&read[0], &text);
        }

        #[test]
        fn escaped_text_is_safe_and_stays_the_same(text in proptest::string::string_regex("(?s).{0,64}").unwrap()) {
            let escaped = escape(&text).into_owned();
            proptest::prop_assert!(!escaped.contains(is_unsafe));
            proptest::prop_assert_eq!(escape(&escaped), escaped.as_str());
        }
    }
}
