//! Text from a tree, a log or a device, made safe to show: on a terminal, in a text report, in a log line.
//!
//! It neither shortens text nor quotes it for a format: JSON, CSV and HTML have escapes of their own.

use std::{
    borrow::Cow,
    fmt::{self, Display, Write},
};

/// Text in which every character that steers a terminal or hides other text is replaced by its visible Rust escape:
/// `\n`, `\u{1b}`, `\u{202e}`.
///
/// Replaced are control characters (C0, DEL, C1), line and paragraph separators, bidirectional embeddings, overrides,
/// isolates and marks, zero-width and other invisible format characters, and tags. A backslash stays, so that escaping
/// twice changes nothing.
///
/// ```
/// assert_eq!(regatta_rules::escape("boat\x1b[2J\n\u{202e}PASS"), r"boat\u{1b}[2J\n\u{202e}PASS");
/// assert_eq!(regatta_rules::escape("Übung 3: ok"), "Übung 3: ok");
/// ```
#[must_use]
pub fn escape(text: &str) -> Cow<'_, str> {
    if text.contains(is_unsafe) {
        Cow::Owned(Escaped(text).to_string())
    } else {
        Cow::Borrowed(text)
    }
}

/// Escapes each line of a text as [`escape`] does, and leaves the lines.
///
/// ```
/// assert_eq!(regatta_rules::escape_lines("one\n\x1b[2Jtwo\r\n"), "one\n\\u{1b}[2Jtwo\\r\n");
/// ```
#[must_use]
pub fn escape_lines(text: &str) -> Cow<'_, str> {
    if text.contains(|c| c != '\n' && is_unsafe(c)) {
        Cow::Owned(text.split('\n').map(escape).collect::<Vec<_>>().join("\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Shows a value as [`escape`] shows its text: for paths and errors in messages. Width and alignment do not apply.
#[derive(Debug, Clone, Copy)]
pub struct Escaped<T>(
    /// What is shown.
    pub T,
);

impl<T: Display> Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(EscapingWriter(f), "{}", self.0)
    }
}

/// Passes text on with unsafe characters escaped.
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

/// Whether a character may not be shown as it is. The ranges are Unicode's `Bidi_Control` and `Default_Ignorable` format
/// characters and its line and paragraph separators.
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
    fn what_steers_a_terminal_becomes_visible() {
        for (given, shown) in [
            ("\x1b[2J\x1b[H", r"\u{1b}[2J\u{1b}[H"),
            ("PASS\r\nFAIL\t\0\x07\x7f", r"PASS\r\nFAIL\t\u{0}\u{7}\u{7f}"),
            ("\u{9b}31m", r"\u{9b}31m"),
            ("a\u{202e}b\u{2066}c\u{200f}", r"a\u{202e}b\u{2066}c\u{200f}"),
            ("a\u{2028}b\u{feff}\u{200b}", r"a\u{2028}b\u{feff}\u{200b}"),
        ] {
            assert_eq!(escape(given), shown);
        }
    }

    #[test]
    fn what_people_write_stays() {
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
        fn escaped_text_is_safe_and_stays_the_same(text in proptest::string::string_regex("(?s).{0,64}").unwrap()) {
            let escaped = escape(&text).into_owned();
            proptest::prop_assert!(!escaped.contains(is_unsafe));
            proptest::prop_assert_eq!(escape(&escaped), escaped.as_str());
        }
    }
}
