//! `regatta`: runs the command of the command line, prints an error and returns the exit code. The library does the work.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

fn main() -> ExitCode {
    match regatta_coordinator::run() {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            let text = failure.to_string();
            // The message is lost when standard error is closed.
            let _ = writeln!(io::stderr(), "{}", regatta_terminal::fit(&text, &io::stderr()));
            ExitCode::from(failure.code())
        }
    }
}
