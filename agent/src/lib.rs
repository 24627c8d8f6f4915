//! The device's software: the commands of `regatta-agent`. [`run`] executes one command. Everything else is private,
//! except the delivery [`journal`], which the fuzz tests use. Each command has its own module.

mod assets;
mod bench;
mod build_info;
mod cli;
mod config;
mod config_file;
mod daemon;
mod doctor;
mod engine_command;
mod enrollment;
mod exit;
mod gpus;
mod identity;
mod run_process;
mod thread_counters;
mod timing_cpu;
mod tune;

use tracing::level_filters::LevelFilter;

use crate::cli::Command;
pub use crate::{cli::Cli, daemon::journal, exit::Failure};
use regatta_types::ExitCode;

/// Runs one command of the agent and returns its exit code. Starts logging to standard error, so a process calls it once.
///
/// # Errors
/// When the command ends without a result. The failure has the exit code, and is not printed yet.
pub fn run(cli: Cli) -> Result<ExitCode, Failure> {
    let Cli { command, log } = cli;
    run_process::daemon_bond::end_with_daemon();
    log.start(match command {
        Command::Serve(_) => LevelFilter::INFO,
        _ => LevelFilter::WARN,
    });
    match command {
        Command::Serve(args) => daemon::serve(&args),
        #[cfg(feature = "simulate")]
        Command::Simulate(args) => daemon::simulation::simulate(&args),
        Command::Enroll(args) => enrollment::enroll(&args),
        Command::Identity(args) => enrollment::identity(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::Tune(args) => tune::tune(&args),
        Command::Exec(args) => run_process::exec(&args),
        Command::Engine(command) => engine_command::engine(&command),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Gpus => gpus::print(),
    }
}
