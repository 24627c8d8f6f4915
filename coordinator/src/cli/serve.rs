//! `regatta serve`: runs the daemon in the foreground until a signal ends it, starts it in the background, or stops it there.

mod addresses;
mod detach;
mod log_file;
mod stop;

use std::io;

use anyhow::Context as _;
use regatta_text::quote_for_shell_if_needed;
use regatta_types::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

use self::{addresses::Addresses, log_file::LogFile};
use super::{
    Context,
    context::{notify, print},
    with_hint,
};
use crate::{
    daemon::{Daemon, DaemonFault},
    exit::{CommandResult, Failure},
};
use regatta_lab_store::{
    self as store,
    workspace::{Workspace, WorkspaceMoved},
};

/// Flags of `serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  regatta serve
      until Ctrl-C, with the log on this terminal
  regatta serve --detach
      in the background, also after this terminal is closed
  regatta serve --stop
      end it, and wait until it has ended

With --detach the log is serve.log in the workspace; at 8 MiB it becomes serve.log.1. If a coordinator serves the workspace
already, --detach says so and succeeds, as does --stop if none does.")]
pub(super) struct Args {
    /// Serve in the background, and return once it listens
    #[arg(long)]
    detach: bool,
    /// Stop the coordinator that serves the workspace
    #[arg(long, conflicts_with = "detach")]
    stop: bool,
    /// Run as the process that --detach starts
    #[arg(long = detach::IN_BACKGROUND, hide = true, conflicts_with_all = ["detach", "stop"])]
    is_in_background: bool,
}

impl Args {
    /// Returns whether this process will be the coordinator.
    pub(super) const fn serves_here(&self) -> bool {
        !self.detach && !self.stop
    }
}

pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    if args.detach {
        return detach::start(context);
    }
    if args.stop {
        return stop::stop(context);
    }
    if args.is_in_background {
        // In a session of its own, the process survives the end of this terminal.
        rustix::process::setsid().map_err(io::Error::from)?;
    }
    let workspace = context.open()?;
    runtime()?.block_on(serve(&workspace, args.is_in_background, context))
}

async fn serve(workspace: &Workspace, is_in_background: bool, context: &Context) -> CommandResult {
    let daemon = Daemon::start(workspace)
        .await
        .map_err(|error| with_hint(error, workspace))?;
    // Before this line the signal ends the process at once, also while it waits for a locked store.
    let mut terminate = signal(SignalKind::terminate())?;
    let addresses = Addresses::of(&daemon, workspace);
    if is_in_background {
        report_from_background(&addresses, LogFile::of(workspace))?;
    } else {
        context.print(&addresses, || addresses.text())?;
    }
    let fault = tokio::select! {
        interrupted = tokio::signal::ctrl_c() => { interrupted?; None }
        _ = terminate.recv() => None,
        ended = daemon.watch() => Some(ended),
    };
    store::shorten_waits();
    daemon.stop().await?;
    match fault {
        None => Ok(ExitCode::Success),
        Some(fault) => {
            let hint = remedy(&fault);
            Err(Failure::could_not(fault).hint(hint))
        }
    }
}

/// Reports to the command that started this process that it listens. Keeps the size of the log bounded from then on.
fn report_from_background(addresses: &Addresses, log: LogFile) -> Result<(), Failure> {
    notify(&addresses.text());
    print(&serde_json::to_string(addresses)?)?;
    log.take_standard_output()?;
    tokio::spawn(log.keep_bounded());
    Ok(())
}

/// Returns what to do after a fault.
fn remedy(fault: &DaemonFault) -> String {
    match fault {
        DaemonFault::ThreadEnded(_) => {
            "start it again: everything that was acknowledged is on disk".to_owned()
        }
        DaemonFault::WorkspaceMoved(WorkspaceMoved { to: Some(to), .. }) => format!(
            "everything that was acknowledged has moved with it; serve it there: regatta serve --workspace {}",
            quote_for_shell_if_needed(&to.to_string_lossy())
        ),
        DaemonFault::WorkspaceMoved(_) => {
            "bring the directory back, or serve a copy of it; devices keep all data that was not acknowledged"
                .to_owned()
        }
    }
}

/// Returns the runtime for the network. Two threads are enough, because disk access and hashing have their own.
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the network's threads")
}
