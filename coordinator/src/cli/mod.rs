//! The command line: commands, options and their help. Each command has its own file; [`context`] has what they share.

mod accuracy;
mod asset;
mod audit;
mod benchmark;
mod calibration_list;
mod campaign;
mod compare;
mod completions;
mod confirm;
mod context;
mod csv;
mod dashboard;
mod data;
mod deploy;
mod device;
mod device_availability;
mod device_check;
mod device_health;
mod device_job;
mod device_watch;
mod engine;
mod events;
mod examination;
mod export;
mod health_text;
mod hints;
mod image;
mod init;
mod interrupts;
mod label;
mod membership;
mod meter;
mod operations;
mod power;
mod prep;
mod progress;
mod quickstart;
mod report;
mod resolve;
mod round;
mod run;
mod run_lines;
mod runs;
mod screen;
mod serve;
mod setting_flags;
mod settings;
mod ssh_hint;
mod status;
mod submission;
mod system;
mod target_devices;
mod top;
mod tune;
mod verify;
mod wait;

use std::{env, io, path::PathBuf};

use clap::{Parser, Subcommand};
pub(crate) use context::say;
use context::{Context, Format};
pub(crate) use hints::with_hint;
pub(crate) use progress::{View, rows};
pub(crate) use resolve::resolve;
pub(crate) use serve::runtime;

use regatta_output::{EVERYWHERE, LogOptions};
use tracing::level_filters::LevelFilter;

use crate::exit::{self, CommandResult, Failure};

/// Runs MLPerf Inference on fleets of devices: starts runs, collects their logs and judges them.
#[derive(Debug, Parser)]
// Only the program has a version: `--version` of a command would succeed without doing what the user meant.
#[command(name = "regatta", version)]
struct Cli {
    /// The workspace: configuration, store and runs
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = context::WORKSPACE_VARIABLE,
        default_value = ".",
        help_heading = EVERYWHERE
    )]
    workspace: PathBuf,
    /// How results are printed
    #[arg(
        long,
        global = true,
        value_parser = context::text_or_json(),
        default_value = "text",
        help_heading = EVERYWHERE
    )]
    format: Format,
    #[command(flatten)]
    log: LogOptions,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the whole flow on this machine, on the bundled model and data
    Quickstart(quickstart::Args),
    /// Makes a workspace, with the keys of a new lab
    Init(init::Args),
    /// Runs the coordinator: broker, ingest, records
    Serve,
    /// Shows coordinator, broker, disk, devices and runs, and what needs attention; exit code 1 if something does
    Status,
    /// Shows the fleet on a screen that follows it: state, health, temperature, power and the run of each device
    Top,
    /// Adds, shows and removes devices
    #[command(subcommand)]
    Device(device::Command),
    /// Manages who may use the live page
    #[command(subcommand)]
    Dashboard(dashboard::Command),
    /// Runs benchmarks on devices
    Run(Box<run::Args>),
    /// Runs many cells on many devices, for days, unattended
    #[command(subcommand)]
    Campaign(campaign::Command),
    /// Lists, watches, exports, verifies, ends and removes runs
    #[command(subcommand)]
    Runs(runs::Command),
    /// Prints changes of devices, runs and campaigns as they happen; with --format json, a document per line
    Events(events::Args),
    /// Compares two selections of runs; exit code 1 if something is worse
    Compare(compare::Args),
    /// Shows devices' figures over time, and where they changed
    History(compare::history::HistoryArgs),
    /// Shows the engine settings that `run --set` takes
    #[command(subcommand)]
    Settings(settings::Command),
    /// Builds TensorRT engines on devices
    #[command(subcommand)]
    Engine(engine::Command),
    /// Searches for the engine settings that run a benchmark best, on devices
    Tune(Box<tune::Args>),
    /// Keeps models, preprocessed data and caches for devices
    #[command(subcommand)]
    Asset(asset::Command),
    /// Lists benchmarks with their rounds, scenarios and targets, and which of their files are present
    #[command(subcommand)]
    Benchmark(benchmark::Command),
    /// Lists the rounds of MLPerf Inference with their benchmarks and audits
    #[command(subcommand)]
    Round(round::Command),
    /// Lists the systems: how boards run benchmarks
    #[command(subcommand)]
    System(system::Command),
    /// Shows where a benchmark's data set and model are published
    #[command(subcommand)]
    Data(data::Command),
    /// Preprocesses a benchmark's data set
    Prep(prep::Args),
    /// Judges the accuracy of logged answers
    Accuracy(accuracy::Args),
    /// Runs and verifies audits (compliance tests)
    #[command(subcommand)]
    Audit(audit::Command),
    /// Adds and lists the lab's power meters
    #[command(subcommand)]
    Meter(meter::Command),
    /// Makes, rehearses and judges power measurements
    #[command(subcommand)]
    Power(power::Command),
    /// Stages, infers, checks, truncates and packs submission trees
    #[command(subcommand)]
    Submission(submission::Command),
    /// Prints the completions of a shell
    Completions(completions::CompletionArgs),
    /// Writes a man page for every command
    Man(completions::ManArgs),
}

/// Executes the command of this process's command line and returns its exit code.
///
/// # Errors
/// The command is wrong or could not do its work; the failure has the exit code and the text to print.
pub fn run() -> CommandResult {
    let words = label::options_first(env::args_os().collect());
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come this way too, and are no misuse.
            let code = if error.use_stderr() { exit::USAGE } else { exit::OK };
            return match error.print() {
                // The reader of the pipe has read enough.
                Err(cut) if cut.kind() == io::ErrorKind::BrokenPipe => Ok(code),
                printed => printed.map(|()| code).map_err(Failure::from),
            };
        }
    };
    cli.log.start(match cli.command {
        Command::Serve => LevelFilter::INFO,
        _ => LevelFilter::WARN,
    });
    if cli.log.is_quiet() {
        context::be_quiet();
    }
    let context = Context {
        workspace: cli.workspace,
        format: cli.format,
    };
    execute(cli.command, &context).map_err(|failure| context.complete(failure))
}

fn execute(command: Command, context: &Context) -> CommandResult {
    match command {
        Command::Quickstart(args) => quickstart::run(&args, context),
        Command::Init(args) => init::run(&args, context),
        Command::Serve => serve::run(context),
        Command::Status => status::run(context),
        Command::Top => top::run(context),
        Command::Device(command) => device::run(&command, context),
        Command::Dashboard(command) => dashboard::run(&command, context),
        Command::Run(args) => run::run(&args, context),
        Command::Campaign(command) => campaign::run(&command, context),
        Command::Runs(command) => runs::run(&command, context),
        Command::Events(args) => events::run(&args, context),
        Command::Compare(args) => compare::run(args, context),
        Command::History(args) => compare::history::run(args, context),
        Command::Settings(command) => settings::run(&command, context),
        Command::Engine(command) => engine::run(&command, context),
        Command::Tune(args) => tune::run(&args, context),
        Command::Asset(command) => asset::run(&command, context),
        Command::Benchmark(command) => benchmark::run(&command, context),
        Command::Round(command) => round::run(&command, context),
        Command::System(command) => system::run(&command, context),
        Command::Data(command) => data::run(&command, context),
        Command::Prep(args) => prep::run(&args, context),
        Command::Accuracy(args) => accuracy::run(&args, context),
        Command::Audit(command) => audit::run(&command, context),
        Command::Meter(command) => meter::run(&command, context),
        Command::Power(command) => power::run(&command, context),
        Command::Submission(command) => submission::run(&command, context),
        Command::Completions(args) => completions::completions(&args),
        Command::Man(args) => completions::man(&args),
    }
}
