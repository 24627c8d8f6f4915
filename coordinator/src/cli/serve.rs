//! `regatta serve`: runs the daemon in the foreground until a signal ends it.

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
    // Before this line the signal ends the process at once, also while it waits for a locked store.
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

/// The runtime for the network. Two threads are enough, because disk access and hashing have their own.
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the network's threads")
}

/// Logs to standard error. `REGATTA_LOG` sets Regatta's own level (error, warn, info, debug or trace). The libraries log only errors.
fn start_log() {
    let level = std::env::var("REGATTA_LOG")
        .ok()
        .and_then(|level| level.parse().ok());
    let ours = Targets::new()
        .with_default(Level::ERROR)
        .with_target("regatta", level.unwrap_or(Level::INFO));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(|| EscapedLog(std::io::stderr()))
        // Colours are escape sequences too.
        .with_ansi(false)
        .with_target(false);
    tracing_subscriber::registry().with(lines).with(ours).init();
}
