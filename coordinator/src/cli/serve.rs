//! `regatta serve`: runs the daemon in the foreground until a signal ends it.

use anyhow::Context as _;
use regatta_text::quote_for_shell_if_needed;
use tokio::signal::unix::{SignalKind, signal};

use super::{Context, context::say, with_hint};
use crate::{
    daemon::{Daemon, DaemonFault},
    exit::{self, CommandResult, Failure},
};
use regatta_lab_net::keys::PAGE_CERTIFICATE;
use regatta_lab_store::{
    self as store,
    workspace::{DEFAULT_PAGE, Workspace, WorkspaceMoved},
};

pub(super) fn run(context: &Context) -> CommandResult {
    let workspace = context.open()?;
    runtime()?.block_on(serve(&workspace))
}

async fn serve(workspace: &Workspace) -> CommandResult {
    let daemon = Daemon::start(workspace)
        .await
        .map_err(|error| with_hint(error, workspace))?;
    // Before this line the signal ends the process at once, also while it waits for a locked store.
    let mut terminate = signal(SignalKind::terminate())?;
    say(&addresses(&daemon, workspace))?;
    let fault = tokio::select! {
        interrupted = tokio::signal::ctrl_c() => { interrupted?; None }
        _ = terminate.recv() => None,
        ended = daemon.watch() => Some(ended),
    };
    store::shorten_waits();
    daemon.stop().await?;
    match fault {
        None => Ok(exit::OK),
        Some(fault) => {
            let hint = remedy(&fault);
            Err(Failure::could_not(fault).hint(hint))
        }
    }
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
            "bring the directory back, or serve a copy of it; devices keep what was not acknowledged"
                .to_owned()
        }
    }
}

/// Describes each service with its address.
fn addresses(daemon: &Daemon, workspace: &Workspace) -> String {
    let mut lines = vec![format!(
        "serving {} at {}",
        workspace.root().display(),
        daemon.address()
    )];
    if let Some(address) = daemon.enrollment() {
        lines.push(format!(
            "devices enroll at {address}, with a token of `regatta device add`"
        ));
    }
    if let Some(address) = daemon.assets() {
        lines.push(format!("devices download models and data from https://{address}"));
    }
    if let Some(page) = daemon.page() {
        let why = page.displaced().map_or_else(String::new, |holder| {
            format!(", because {holder} has {DEFAULT_PAGE}")
        });
        lines.push(format!("live page at {}{why}", page.url()));
        if workspace.config().page_login {
            let certificate = workspace.keys().join(PAGE_CERTIFICATE);
            lines.push(format!(
                "browsers trust it once they import {}",
                certificate.display()
            ));
        }
        if page.lacks_tokens() {
            lines.push(
                "nobody can log in yet: add a token with `regatta dashboard token add NAME`".to_owned(),
            );
        }
    }
    if daemon.enrollment().is_some() {
        lines.push(format!(
            "devices reach this machine as {}",
            workspace.config().host
        ));
    }
    lines.join("\n")
}

/// Returns the runtime for the network. Two threads are enough, because disk access and hashing have their own.
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the network's threads")
}
