//! `regatta power`: makes sessions with the official programs or with Regatta's own, rehearses them, and judges them.

mod check;
mod client;
mod fetch;
mod lint;
mod list;
mod machines;
mod run;
mod server;
mod session_report;
mod sessions;
mod show;
mod simulate;
mod simulate_ptd;

pub(super) use machines::ClientFitnessArgs;

use super::Context;
use crate::exit::CommandResult;

/// What can be done with power measurements.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Check a measured session as the round's power checker does
    // `--version` is the round here, as in the official tools.
    #[command(disable_version_flag = true)]
    Check(check::CheckArgs),
    /// Check the configuration of the official server
    #[command(disable_version_flag = true)]
    Lint(lint::LintArgs),
    /// Measure a session per scenario, with a meter and a device of the lab
    Run(Box<run::RunArgs>),
    /// List the sessions, including those that failed
    List,
    /// Show a session: the verdicts of both checkers, its energy and its files
    Show(show::ShowArgs),
    /// Fetch the files of a session that are still on the device, and check it
    Fetch(fetch::FetchArgs),
    /// Rehearse a session on this machine: official client and server, a simulated PTDaemon, no measurement
    #[command(disable_version_flag = true)]
    Simulate(Box<simulate::SimulateArgs>),
    /// Serve power clients without the official programs; its sessions are never valid for submission
    Server(server::ServerArgs),
    /// Measure a workload without the official programs; its sessions are never valid for submission
    // `-V` are volts here, as in the official client.
    #[command(disable_version_flag = true)]
    Client(Box<client::ClientArgs>),
    /// Simulate PTDaemon for the official server (`simulate` starts it); it measures nothing
    #[command(disable_version_flag = true)]
    SimulatePtd(Box<simulate_ptd::SimulatePtdArgs>),
}

pub(super) fn run(command: &Command, context: &Context) -> CommandResult {
    match command {
        Command::Check(args) => check::check(args, context),
        Command::Lint(args) => lint::lint(args, context),
        Command::Run(args) => run::run(args, context),
        Command::List => list::list(context),
        Command::Show(args) => show::show(args, context),
        Command::Fetch(args) => fetch::fetch(args, context),
        Command::Simulate(args) => simulate::simulate(args, context),
        Command::Server(args) => server::serve(args, context),
        Command::Client(args) => client::measure(args, context),
        Command::SimulatePtd(args) => simulate_ptd::serve(args),
    }
}
