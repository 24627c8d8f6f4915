//! Colours of verdicts and states in results on a terminal. They are added last, to the printed words, so that every table, list and
//! sentence has the same ones. `NO_COLOR` switches them off (no-color.org).

use std::{
    borrow::Cow,
    env,
    io::{self, IsTerminal as _},
};

const GREEN: &str = "32";
const RED: &str = "31";
const YELLOW: &str = "33";

/// Verdicts, wherever they are in a text.
const VERDICTS: [(&str, &str); 8] = [
    ("VALID", GREEN),
    ("PASS", GREEN),
    ("OK", GREEN),
    ("INVALID", RED),
    ("FAIL", RED),
    ("FAILED", RED),
    ("UNFIT", RED),
    ("UNVERIFIED", YELLOW),
];

/// States, which are ordinary words too: only where one begins a column.
const STATES: [(&str, &str); 11] = [
    ("good", GREEN),
    ("better", GREEN),
    ("failed", RED),
    ("worse", RED),
    ("quarantined", RED),
    ("offline", RED),
    ("aborted", YELLOW),
    ("suspect", YELLOW),
    ("skipped", YELLOW),
    ("undecided", YELLOW),
    ("maintenance", YELLOW),
];

/// Returns whether results go to a terminal that may have colours.
pub(super) fn are_enabled() -> bool {
    io::stdout().is_terminal() && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Adds the colours of a text's verdicts and states.
pub(super) fn paint(text: &str) -> String {
    text.split('\n').map(paint_line).collect::<Vec<_>>().join("\n")
}

fn paint_line(line: &str) -> Cow<'_, str> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let mut painted = String::new();
    let (mut copied, mut from) = (0, 0);
    while let Some(start) = line[from..].find(is_part).map(|at| from + at) {
        let end = line[start..]
            .find(|c| !is_part(c))
            .map_or(line.len(), |at| start + at);
        let word = &line[start..end];
        let begins_column =
            line[..start].is_empty() || line[..start].ends_with("  ") || line[..start].ends_with(", ");
        let found = VERDICTS.iter().chain(STATES.iter().filter(|_| begins_column));
        if let Some((_, colour)) = found.into_iter().find(|(known, _)| *known == word) {
            painted.push_str(&format!(
                "{}\u{1b}[{colour}m{word}\u{1b}[0m",
                &line[copied..start]
            ));
            copied = end;
        }
        from = end;
    }
    if copied == 0 {
        return Cow::Borrowed(line);
    }
    painted.push_str(&line[copied..]);
    Cow::Owned(painted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_have_a_colour_and_ordinary_words_none() {
        let red = |word: &str| format!("\u{1b}[31m{word}\u{1b}[0m");
        for (text, painted) in [
            ("a   INVALID   12 ms", format!("a   {}   12 ms", red("INVALID"))),
            ("TEST FAIL", format!("TEST {}", red("FAIL"))),
            (
                "idle, quarantined   -",
                format!("idle, {}   -", red("quarantined")),
            ),
            (
                "2 failed, and INVALID_RATE is a key",
                "2 failed, and INVALID_RATE is a key".to_owned(),
            ),
            ("", String::new()),
        ] {
            assert_eq!(paint(text), painted);
        }
    }
}
