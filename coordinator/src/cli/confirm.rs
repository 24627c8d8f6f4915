//! Prompts for a confirmation on a terminal. Without a terminal the user confirms with `--yes`.

use std::io::{self, IsTerminal as _, Write as _};

use regatta_text::escape_lines;

use crate::exit::Failure;

/// Prompts for a confirmation, unless the user has given it already.
///
/// # Errors
/// Returns an error when the user declines, or when there is neither `--yes` nor a terminal.
pub(super) fn confirm(question: &str, is_confirmed: bool) -> Result<(), Failure> {
    if is_confirmed {
        return Ok(());
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        // An error is one line.
        let question = question
            .split('\n')
            .map(str::trim_start)
            .collect::<Vec<_>>()
            .join(" ");
        return Err(
            Failure::misuse(format!("{question} This needs a confirmation")).hint("confirm with --yes")
        );
    }
    let mut terminal = io::stderr().lock();
    write!(terminal, "{} [y/N] ", escape_lines(question))?;
    terminal.flush()?;
    drop(terminal);
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    if matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        Ok(())
    } else {
        Err(Failure::misuse("not confirmed: nothing was changed"))
    }
}
