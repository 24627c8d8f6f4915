//! `regatta serve --detach`: starts a coordinator in the background, which keeps running when the terminal is closed, and waits until it listens.
//!
//! The background process runs in a new session. Once it listens, it writes its addresses as a document to a pipe and closes the pipe. If the pipe is
//! closed without a document, the process has failed, and its log contains the reason.

use std::{
    env,
    ffi::OsString,
    io::{self, Read as _},
    process::{Child, ChildStdout, Command, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use serde_json::json;

use super::{addresses::Addresses, log_file::LogFile};
use crate::{
    cli::{
        Context,
        context::{WORKSPACE_VARIABLE, notify, tell},
    },
    exit::{CommandResult, Failure},
};
use regatta_lab_store::workspace::Workspace;
use regatta_types::ExitCode;

/// The option that makes a process the background process.
pub(super) const IN_BACKGROUND: &str = "in-background";

/// The time after which a waiting command prints that it waits.
const PATIENCE: Duration = Duration::from_secs(5);
/// The maximum time until a coordinator listens.
const MAX_START: Duration = Duration::from_secs(60);
/// The maximum size of the document with the addresses in bytes.
const MAX_DOCUMENT: u64 = 64 << 10;

/// Starts a coordinator unless one already serves the workspace. The exit code is 0 in both cases.
pub(super) fn start(context: &Context) -> CommandResult {
    let workspace = context.open()?;
    let log = LogFile::of(&workspace);
    if workspace.is_served() {
        return report_running(&workspace, &log, context);
    }
    let before = log.bytes();
    let mut child = spawn(&workspace, &log)?;
    match wait_for_addresses(&mut child, &log)? {
        Some(addresses) => report(&addresses, &workspace, &log, context),
        None => report_failure(&mut child, &log, before),
    }
}

/// Starts the background process with the options of this one. The process creates its session itself, and belongs to this terminal until then.
fn spawn(workspace: &Workspace, log: &LogFile) -> Result<Child, Failure> {
    let unusable =
        |error: io::Error| Failure::could_not(format!("cannot write {}: {error}", log.path().display()));
    let stderr = log.open().map_err(unusable)?;
    let mut command = Command::new(env::current_exe()?);
    command
        .args(options_in_background(env::args_os().skip(1)))
        .env(WORKSPACE_VARIABLE, std::path::absolute(workspace.root())?)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(stderr);
    Ok(command.spawn()?)
}

fn options_in_background(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let replaced = |word: OsString| match word == "--detach" {
        true => format!("--{IN_BACKGROUND}").into(),
        false => word,
    };
    words.map(replaced).collect()
}

/// Waits until the process listens. Returns `None` if it has failed.
fn wait_for_addresses(child: &mut Child, log: &LogFile) -> Result<Option<Addresses>, Failure> {
    let Some(pipe) = child.stdout.take() else {
        return Ok(None);
    };
    let (sender, reply) = mpsc::channel();
    thread::spawn(move || {
        // Sending fails if the command no longer waits for the addresses.
        let _ = sender.send(read(pipe));
    });
    let path = log.path().display();
    let text = match reply.recv_timeout(PATIENCE) {
        Err(RecvTimeoutError::Timeout) => {
            tell(&format!(
                "waiting until the coordinator listens; its log is {path}"
            ));
            reply.recv_timeout(MAX_START - PATIENCE)
        }
        received => received,
    };
    let text = text.map_err(|_| {
        Failure::could_not(format!(
            "the coordinator (process {}) does not listen after {} s",
            child.id(),
            MAX_START.as_secs()
        ))
        .hint(format!(
            "{path} may contain the reason; `regatta serve --stop` ends it"
        ))
    })?;
    Ok(serde_json::from_str(&text?).ok())
}

fn read(pipe: ChildStdout) -> io::Result<String> {
    let mut text = String::new();
    pipe.take(MAX_DOCUMENT).read_to_string(&mut text)?;
    Ok(text)
}

fn report(addresses: &Addresses, workspace: &Workspace, log: &LogFile, context: &Context) -> CommandResult {
    let process = addresses.process();
    let document = json!({
        "workspace": workspace.root(),
        "process": process,
        "started": true,
        "log": log.path(),
        "addresses": addresses,
    });
    context.print(&document, || {
        format!(
            "{}\nin the background as process {process}, with its log in {}; `regatta serve --stop` ends it",
            addresses.text(),
            log.path().display()
        )
    })?;
    Ok(ExitCode::Success)
}

fn report_running(workspace: &Workspace, log: &LogFile, context: &Context) -> CommandResult {
    let process = workspace.serving_process();
    let page = workspace.store()?.service().state()?.page;
    let document = json!({
        "workspace": workspace.root(),
        "process": process,
        "started": false,
        "log": log.path(),
        "page": page,
    });
    context.print(&document, || {
        let which = process.map_or_else(String::new, |process| format!(" (process {process})"));
        let page = page.map_or_else(String::new, |page| format!("; live page at {page}"));
        format!(
            "a coordinator{which} serves {} already{page}; `regatta serve --stop` ends it",
            workspace.root().display()
        )
    })?;
    Ok(ExitCode::Success)
}

/// Repeats the reason of a failed start. The exit code is that of the process.
fn report_failure(child: &mut Child, log: &LogFile, before: u64) -> CommandResult {
    let status = child.wait()?;
    let printed = log.added(before).unwrap_or_default();
    notify(reason(&printed));
    match ExitCode::of(status) {
        Some(code) if code != ExitCode::Success => Ok(code),
        _ => Err(Failure::could_not(format!(
            "the coordinator ended with {status} before it listened; its log is {}",
            log.path().display()
        ))),
    }
}

/// Returns the failure message, which a command prints last, or the complete output if there is none.
fn reason(printed: &str) -> &str {
    const BEGINNING: &str = "regatta: ";
    let printed = printed.trim_end();
    let lines = printed.rmatch_indices(BEGINNING).map(|(place, _)| place);
    let mut beginnings = lines.filter(|&place| place == 0 || printed[..place].ends_with('\n'));
    beginnings.next().map_or(printed, |place| &printed[place..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_failure_is_its_last_message() {
        let printed = "2026-01-01 INFO starts\nregatta: port 1883 is in use\n  set another: regatta: x\n";
        assert_eq!(
            reason(printed),
            "regatta: port 1883 is in use\n  set another: regatta: x"
        );
        assert_eq!(reason("thread panicked\n"), "thread panicked");
        assert_eq!(reason(""), "");
    }

    #[test]
    fn the_process_in_the_background_has_the_other_options() {
        let words = ["--workspace", "lab", "serve", "--detach", "-v"].map(OsString::from);
        assert_eq!(
            options_in_background(words.into_iter()),
            ["--workspace", "lab", "serve", "--in-background", "-v"]
        );
    }
}
