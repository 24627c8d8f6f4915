//! The agent's binary: parses the command line, runs the command, prints its failure once and exits with the documented
//! code.

use std::{
    io::{self, Write},
    process,
};

use clap::Parser;
use regatta_agent::{Cli, Failure};
use regatta_types::ExitCode;

fn main() -> process::ExitCode {
    let code = regatta_agent::run(Cli::parse()).unwrap_or_else(|failure| report(&failure));
    code.into()
}

/// Prints the failure with its causes as one line on standard error.
fn report(failure: &Failure) -> ExitCode {
    let text = format!("regatta-agent: {failure}");
    // Standard error may be closed.
    let _ = writeln!(io::stderr(), "{}", regatta_terminal::fit(&text, &io::stderr()));
    failure.code()
}
