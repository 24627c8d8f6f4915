//! The command line: commands, options and their help. Each command has its own file; [`context`] has what they share.

mod accuracy;
mod asset;
mod audit;
mod benchmark;
mod calibration_list;
mod campaign;
mod colours;
mod command_tree;
mod compare;
mod completers;
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
mod endpoints;
mod engine;
mod engine_cache;
mod events;
mod examination;
mod examples;
mod export;
mod health_text;
mod hints;
mod image;
mod init;
mod interrupts;
mod label;
mod membership;
mod meter;
mod misplaced_command;
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
mod store;
mod submission;
mod system;
mod target_devices;
mod top;
mod tune;
mod verify;
mod wait;
mod workspace_search;

use std::{env, ffi::OsString, io, path::PathBuf};

use clap::{FromArgMatches as _, Parser, Subcommand};
use clap_complete::env::CompleteEnv;
pub(crate) use context::say;
use context::{Context, Format};
pub(crate) use hints::with_hint;
pub(crate) use progress::{View, rows};
pub(crate) use resolve::resolve;
pub(crate) use serve::runtime;

use regatta_lab_views::wording;
use regatta_terminal::{EVERYWHERE, LogOptions};
use regatta_types::ExitCode;
use tracing::level_filters::LevelFilter;

use crate::exit::{CommandResult, Failure};

/// Run MLPerf Inference on fleets of devices: start runs, collect their logs and judge them.
#[derive(Debug, Parser)]
// Only the program has a version: `--version` of a command would succeed without doing what the user meant.
#[command(name = "regatta", version)]
#[command(after_help = "\
Examples:
  regatta quickstart
      try everything on this machine, without a board
  regatta init lab && regatta serve --detach
      create a lab in the directory `lab` and run its coordinator in the background
  regatta device deploy boat-1 user@192.168.1.20
      install the agent on a board and enroll it
  regatta run --device boat-1 --benchmark resnet50 --scenario Offline
      run a benchmark there and print the result")]
struct Cli {
    /// The lab's directory [default: REGATTA_WORKSPACE, or this directory or one around it, otherwise the only one directly below it]
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = context::WORKSPACE_VARIABLE,
        help_heading = EVERYWHERE
    )]
    workspace: Option<PathBuf>,
    /// Output format: text or json [default: text]
    #[arg(
        long,
        global = true,
        value_parser = context::text_or_json(),
        default_value = "text",
        help_heading = EVERYWHERE
    )]
    format: Format,
    /// Print times in UTC, not in the zone of this machine (TZ)
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    utc: bool,
    #[command(flatten)]
    log: LogOptions,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Try everything on this machine, without a board
    Quickstart(quickstart::Args),
    /// Create a workspace, with the keys of a new lab
    Init(init::Args),
    /// Run the coordinator: MQTT broker, records and the live page
    Serve(serve::Args),
    /// Show the state of the lab, and what needs attention
    ///
    /// The exit code is 1 if something needs attention.
    Status,
    /// Show the fleet on a live screen
    ///
    /// Each device has a line with its state, health, temperature, power and run. `q` ends the screen.
    Top,
    /// Add, deploy, show and remove devices
    #[command(subcommand)]
    Device(device::Command),
    /// Manage who may use the live page
    #[command(subcommand)]
    Dashboard(dashboard::Command),
    /// Show where the lab's database is, and move it to PostgreSQL
    #[command(subcommand)]
    Store(store::Command),
    /// Run benchmarks on devices
    Run(Box<run::Args>),
    /// Run many combinations on many devices, for days, unattended
    #[command(subcommand)]
    Campaign(campaign::Command),
    /// List, watch, export, verify, end and remove runs
    #[command(subcommand)]
    Runs(runs::Command),
    /// Print changes of devices, runs and campaigns as they happen
    ///
    /// With --format json, each is a document on a line.
    Events(events::Args),
    /// Compare two selections of runs
    ///
    /// The exit code is 1 if a figure is worse.
    Compare(compare::Args),
    /// Show the figures of devices over time, and where they changed
    History(compare::history::HistoryArgs),
    /// Show the engine settings that `run --set` accepts
    #[command(subcommand)]
    Settings(settings::Command),
    /// Build TensorRT engines on devices
    #[command(subcommand)]
    Engine(engine::Command),
    /// Search for the engine settings with which a benchmark runs best
    Tune(Box<tune::Args>),
    /// Manage the models, data and caches that devices download
    #[command(subcommand)]
    Asset(asset::Command),
    /// List and prepare benchmarks, and show which files are missing
    #[command(subcommand)]
    Benchmark(benchmark::Command),
    /// List the rounds of MLPerf with their benchmarks and audits
    #[command(subcommand)]
    Round(round::Command),
    /// List the systems: the settings with which boards run
    #[command(subcommand)]
    System(system::Command),
    /// Show where data sets and models are published; download them
    #[command(subcommand)]
    Data(data::Command),
    /// Preprocess a benchmark's data set
    Prep(prep::Args),
    /// Compute accuracies, and compare them with their targets
    Accuracy(accuracy::Args),
    /// Run and verify audits (compliance tests)
    #[command(subcommand)]
    Audit(audit::Command),
    /// Add and list the lab's power meters
    #[command(subcommand)]
    Meter(meter::Command),
    /// Run, rehearse and check power measurements
    #[command(subcommand)]
    Power(power::Command),
    /// Measure model servers with MLCommons' endpoints harness
    #[command(subcommand)]
    Endpoints(endpoints::Command),
    /// Stage, infer, check, truncate and pack submission trees
    #[command(subcommand)]
    Submission(submission::Command),
    /// Print the completion script of a shell
    Completions(completions::CompletionArgs),
    /// Write a man page for every command
    Man(completions::ManArgs),
}

/// Executes the command of this process's command line and returns its exit code.
///
/// # Errors
/// The command is wrong or could not do its work; the failure has the exit code and the text to print.
pub fn run() -> CommandResult {
    // For a shell that completes a command line, this prints the values and exits.
    CompleteEnv::with_factory(command_tree::command)
        .var(completions::COMPLETION_VARIABLE)
        .complete();
    let words = label::options_first(env::args_os().collect());
    let has_word = |word: &str| words.iter().any(|other| other == word);
    let is_json = has_word("--format=json")
        || words
            .windows(2)
            .any(|pair| pair[0] == "--format" && pair[1] == "json");
    let command = command_tree::command();
    // Times on the command line are parsed in the zone in which times are printed. The live page has readers elsewhere.
    let first = misplaced_command::positional(&words, &command).into_iter().next();
    let serves_page = matches!(first.as_deref(), Some("serve" | "quickstart"));
    if !has_word("--utc") && !serves_page {
        wording::use_local_time();
    }
    parse_and_execute(words, command).map_err(|failure| if is_json { failure.in_json() } else { failure })
}

fn parse_and_execute(words: Vec<OsString>, command: clap::Command) -> CommandResult {
    if let Some(failure) = misplaced_command::failure(&words, &command) {
        return Err(failure);
    }
    let parsed = command
        .try_get_matches_from(words)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => return Err(Failure::of_command_line(error)),
        // Help and version come this way too.
        Err(help) => {
            return match help.print() {
                // The reader of the pipe has read enough.
                Err(cut) if cut.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::Success),
                printed => printed.map(|()| ExitCode::Success).map_err(Failure::from),
            };
        }
    };
    cli.log.start(match &cli.command {
        Command::Serve(args) if args.serves_here() => LevelFilter::INFO,
        _ => LevelFilter::WARN,
    });
    if cli.log.is_quiet() {
        context::be_quiet();
    }
    let context = Context::new(cli.workspace, cli.format);
    execute(cli.command, &context).map_err(|failure| context.complete(failure))
}

fn execute(command: Command, context: &Context) -> CommandResult {
    match command {
        Command::Quickstart(args) => quickstart::run(&args, context),
        Command::Init(args) => init::run(&args, context),
        Command::Serve(args) => serve::run(&args, context),
        Command::Status => status::run(context),
        Command::Top => top::run(context),
        Command::Device(command) => device::run(&command, context),
        Command::Dashboard(command) => dashboard::run(&command, context),
        Command::Store(command) => store::run(&command, context),
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
        Command::Endpoints(command) => endpoints::run(&command, context),
        Command::Submission(command) => submission::run(&command, context),
        Command::Completions(args) => completions::completions(&args),
        Command::Man(args) => completions::man(&args),
    }
}
