//! The agent's binary: reads the command line, hands over to the command, prints its failure once and ends with the
//! documented exit code. What the commands do lives in their own modules.

mod assets;
mod bench;
mod cli;
mod config;
#[cfg(test)]
mod counting_allocator;
mod daemon;
mod digest;
mod doctor;
mod engine_command;
mod engines;
mod enrolment;
mod exit;
mod facts;
#[cfg(test)]
#[path = "../tests/support/fixture.rs"]
mod fixture;
mod harness;
mod identity;
mod logging;
mod npy_header;
mod panics;
mod run_process;
mod thread_counters;
mod timing_cpu;
mod tune;
#[cfg(test)]
#[path = "../tests/support/twins.rs"]
mod twins;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::Parser;
use tracing::level_filters::LevelFilter;

use crate::{
    cli::{Cli, Command},
    exit::Failure,
};

fn main() -> ExitCode {
    let command = Cli::parse().command;
    logging::start(match command {
        Command::Serve(_) => LevelFilter::INFO,
        _ => LevelFilter::WARN,
    });
    let outcome = match command {
        Command::Serve(args) => daemon::serve(&args),
        Command::Enroll(args) => enrolment::enroll(&args),
        Command::Identity(args) => enrolment::identity(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::Tune(args) => tune::tune(&args),
        Command::Exec(args) => run_process::exec(&args),
        Command::Engine(command) => engine_command::engine(&command),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Gpus => facts::gpu::print(),
    };
    let code = outcome.unwrap_or_else(|failure| report(&failure));
    ExitCode::from(code)
}

/// Prints the failure with its causes as one line on standard error.
fn report(failure: &Failure) -> u8 {
    // Nobody is left to tell when standard error is closed.
    let _ = writeln!(io::stderr(), "regatta-agent: {failure}");
    failure.code()
}
