//! The width of a terminal, and text that fits into it. Text for pipes and files is not changed.

use std::{borrow::Cow, io::IsTerminal, os::fd::AsFd};

use regatta_text::wrap;

/// The width of a terminal that does not report one.
const USUAL: usize = 80;

/// Returns the number of columns of the terminal behind `stream`, or 80 if it does not report one. Returns `None` if `stream` is not a terminal.
#[must_use]
pub fn columns(stream: &(impl AsFd + IsTerminal)) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let reported = rustix::termios::tcgetwinsize(stream).map_or(0, |size| usize::from(size.ws_col));
    Some(if reported == 0 { USUAL } else { reported })
}

/// Wraps text to the width of the terminal behind `stream`. If `stream` is not a terminal, returns the text unchanged.
#[must_use]
pub fn fit<'a>(text: &'a str, stream: &(impl AsFd + IsTerminal)) -> Cow<'a, str> {
    columns(stream).map_or(Cow::Borrowed(text), |columns| wrap(text, columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gets_the_text_as_it_is() {
        let file = tempfile::tempfile().unwrap();
        let long = "word ".repeat(100);
        assert_eq!(columns(&file), None);
        assert_eq!(fit(&long, &file), long);
    }
}
