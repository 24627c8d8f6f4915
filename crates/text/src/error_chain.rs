//! An error with its causes, as the programs print it.

use std::{
    error::Error,
    fmt::{self, Display},
};

use crate::{Escaped, escape_lines};

/// Shows an error and its causes as one sentence, `what failed: why: why`. It contains no terminal control characters, and no
/// name begins a line. A TOML parser's message keeps its lines, which show the place; they are indented.
///
/// ```
/// use std::io;
/// let error = io::Error::other("no such file: a\nPASS");
/// assert_eq!(regatta_text::ErrorChain(&error).to_string(), r"no such file: a\nPASS");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ErrorChain<'a>(
    /// The error.
    pub &'a (dyn Error + 'static),
);

impl Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut next = Some(self.0);
        let mut separator = "";
        while let Some(error) = next {
            f.write_str(separator)?;
            if error.is::<toml::de::Error>() || error.is::<Box<toml::de::Error>>() {
                let text = error.to_string();
                f.write_str(&escape_lines(text.trim_end()).replace('\n', "\n  "))?;
            } else {
                write!(f, "{}", Escaped(error))?;
            }
            next = error.source();
            separator = ": ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0} cannot be used")]
    struct Unusable(String, #[source] Box<toml::de::Error>);

    #[test]
    fn a_parser_shows_the_place_and_a_name_stays_on_its_line() {
        let source = toml::from_str::<toml::Table>("a = 1\nb = \n").unwrap_err();
        let error = Unusable("x\nPASS".to_owned(), Box::new(source));
        let shown = ErrorChain(&error).to_string();
        assert!(
            shown.starts_with(r"x\nPASS cannot be used: TOML parse error at line 2, column 5"),
            "{shown}"
        );
        assert!(shown.contains("\n  2 | b = "), "{shown}");
    }
}
