//! `regatta`: runs the command of the command line, prints an error and returns the exit code. The library does the work.

use std::{io::Write as _, process::ExitCode};

fn main() -> ExitCode {
    match regatta_coordinator::run() {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            // The message is lost when standard error is closed.
            let _ = writeln!(std::io::stderr(), "{failure}");
            ExitCode::from(failure.code())
        }
    }
}
