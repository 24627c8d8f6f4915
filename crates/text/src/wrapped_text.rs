//! Text for a terminal of a given width, wrapped at blanks.

use std::borrow::Cow;

/// The program whose commands are copied from messages.
const COMMAND: &str = "regatta";

/// Wraps every line of `text` that is longer than `columns` at blanks. The parts of a line keep its indentation; behind a label with a gap
/// they keep that of its value.
///
/// A word is never broken, and neither is a span in backquotes, which readers copy. A line that is a command of Regatta's stays as it is,
/// too.
#[must_use]
pub fn wrap(text: &str, columns: usize) -> Cow<'_, str> {
    if text.lines().all(|line| width(line) <= columns) {
        return Cow::Borrowed(text);
    }
    let wrapped: Vec<String> = text.split('\n').map(|line| wrap_line(line, columns)).collect();
    Cow::Owned(wrapped.join("\n"))
}

fn wrap_line(line: &str, columns: usize) -> String {
    let content = line.trim_start_matches(' ');
    if width(line) <= columns
        || content.starts_with(COMMAND)
            && !content.starts_with("regatta: ")
            && !content.starts_with("regatta-agent: ")
    {
        return line.to_owned();
    }
    let begin = line.len() - content.len();
    let (label, value) = line.split_at(begin + label_bytes(content));
    let indent = " ".repeat(width(label));
    let mut wrapped = label.to_owned();
    let mut length = 0;
    for word in words(value) {
        let needed = width(word);
        if length == 0 {
            length = indent.len() + needed;
        } else if length + 1 + needed <= columns {
            wrapped.push(' ');
            length += 1 + needed;
        } else {
            wrapped.truncate(wrapped.trim_end_matches(' ').len());
            wrapped.push('\n');
            wrapped.push_str(&indent);
            length = indent.len() + needed;
        }
        wrapped.push_str(word);
    }
    wrapped
}

/// Returns the bytes of a label at the beginning of a line, with the gap of two blanks or more behind it. 0 if there is none.
fn label_bytes(content: &str) -> usize {
    /// The most bytes of a label.
    const MAX: usize = 16;
    let gap = content.find("  ").filter(|gap| *gap <= MAX);
    gap.map_or(0, |gap| {
        content.len() - content[gap..].trim_start_matches(' ').len()
    })
}

/// Splits at single blanks outside of backquotes. Further blanks become empty words.
fn words(line: &str) -> impl Iterator<Item = &str> {
    // A backquote without its other half quotes nothing.
    let mut closing = line.matches('`').count() / 2 * 2;
    let mut is_quoted = false;
    line.split(move |c: char| {
        if c == '`' && closing > 0 {
            closing -= 1;
            is_quoted = !is_quoted;
        }
        c == ' ' && !is_quoted
    })
}

fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_break_at_blanks_and_keep_their_indentation() {
        let text =
            "regatta: the broker is gone\n  start it again with `regatta serve --workspace lab` there\nend";
        assert_eq!(
            wrap(text, 24),
            "regatta: the broker is\ngone\n  start it again with\n  `regatta serve --workspace lab`\n  there\nend"
        );
        assert_eq!(wrap("name   columns stay", 40), "name   columns stay");
        let labelled = "figures    early stopping estimate";
        assert_eq!(
            wrap(labelled, 20),
            "figures    early\n           stopping\n           estimate"
        );
        let command = "  regatta run --benchmark digits --scenario Offline";
        assert_eq!(wrap(command, 20), command);
    }

    proptest! {
        #[test]
        fn only_blanks_change(text in "([a-zé`]{1,9} ){0,12}", columns in 1_usize..40) {
            let wrapped = wrap(&text, columns).into_owned();
            let without = |text: &str| text.chars().filter(|c| !" \n".contains(*c)).collect::<String>();
            prop_assert_eq!(without(&text), without(&wrapped));
            for line in wrapped.lines().filter(|line| width(line) > columns) {
                // A longer line is one word, or one span in backquotes.
                prop_assert!(words(line.trim()).count() == 1, "{:?}", line);
            }
        }
    }
}
