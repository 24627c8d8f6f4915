//! `regatta serve`: the daemon in the foreground, until it is told to end.

use anyhow::Context as _;
use regatta_text::EscapedLog;
use tokio::signal::unix::{SignalKind, signal};
use tracing::Level;
use tracing_subscriber::{filter::Targets, layer::SubscriberExt as _, util::SubscriberInitExt as _};

use super::{Context, context::say, with_hint};
use crate::{
    daemon::Daemon,
    exit::{self, CommandResult, Failure},
    store,
    workspace::Workspace,
};

pub(super) fn run(context: &Context) -> CommandResult {
    let workspace = context.open()?;
    start_log();
    runtime()?.block_on(serve(&workspace))
}

async fn serve(workspace: &Workspace) -> CommandResult {
    let daemon = Daemon::start(workspace)
        .await
        .map_err(|error| with_hint(error, workspace))?;
    // Only now: until here the signal ends the process at once, also while it waits for a locked store.
    let mut terminate = signal(SignalKind::terminate())?;
    say(&format!(
        "serving {} at {}",
        workspace.root().display(),
        daemon.address()
    ))?;
    if let Some(enrolment) = daemon.enrolment() {
        say(&format!(
            "devices enrol at {enrolment}, with a token of `regatta device add`"
        ))?;
    }
    let fault = tokio::select! {
        interrupted = tokio::signal::ctrl_c() => { interrupted?; None }
        _ = terminate.recv() => None,
        ended = daemon.watch() => Some(ended),
    };
    store::shorten_waits();
    daemon.stop().await?;
    match fault {
        None => Ok(exit::OK),
        Some(part) => Err(
            Failure::could_not(format!("the coordinator's {part} thread ended by itself"))
                .hint("start it again: everything that was acknowledged is on disk"),
        ),
    }
}

/// The daemon's threads for the network. Two suffice: disk and hashing have threads of their own.
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the network's threads")
}

/// Logs to standard error. `REGATTA_LOG` sets our own level (error, warn, info, debug or trace); of the libraries below
/// us only errors are told.
fn start_log() {
    let level = std::env::var("REGATTA_LOG")
        .ok()
        .and_then(|level| level.parse().ok());
    let ours = Targets::new()
        .with_default(Level::ERROR)
        .with_target("regatta", level.unwrap_or(Level::INFO));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(|| EscapedLog(std::io::stderr()))
        // Colours are escape sequences, too.
        .with_ansi(false)
        .with_target(false);
    tracing_subscriber::registry().with(lines).with(ours).init();
}
