//! The processes of labs: each is the campaign's program again, alone in namespaces of its own, several at a time.

use std::{
    ffi::OsString,
    io::{self, Read as _},
    process::{self, Stdio},
    sync::{Mutex, PoisonError, mpsc},
    thread,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, bail};
use serde::de::DeserializeOwned;

use crate::shell;

/// Returns a seed that differs from call to call.
pub(super) fn new_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::from(now.subsec_nanos()) ^ now.as_secs()
}

/// Runs orders, at most `parallel` at a time, and passes each result on as soon as it is there.
///
/// # Errors
/// Returns the first error of `done`.
pub(super) fn in_parallel<O: Send, R: Send>(
    orders: Vec<O>,
    parallel: usize,
    run: impl Fn(&O) -> R + Sync,
    mut done: impl FnMut(O, R) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let waiting = Mutex::new(orders.into_iter());
    let (sender, results) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..parallel.max(1) {
            let (sender, waiting, run) = (sender.clone(), &waiting, &run);
            scope.spawn(move || {
                loop {
                    let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some(order) = next else { return };
                    let result = run(&order);
                    if sender.send((order, result)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        results
            .into_iter()
            .try_for_each(|(order, result)| done(order, result))
    })
}

/// Starts this program again with other arguments, alone in its namespaces, and reads the last line that it prints as JSON. The pipe to it
/// is what keeps it alive.
///
/// # Errors
/// Returns an error when it does not start, fails, or prints something else.
pub fn start_alone<T: DeserializeOwned>(arguments: impl IntoIterator<Item = OsString>) -> anyhow::Result<T> {
    let mut unshare = shell::command("unshare")?;
    unshare
        .args([
            "--mount",
            "--net",
            "--ipc",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
        ])
        .arg(std::env::current_exe()?)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = unshare.spawn().context("unshare does not start")?;
    let held = child.stdin.take();
    let output = child.wait_with_output()?;
    drop(held);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!("the lab ended with {}: {text}", output.status);
    }
    serde_json::from_str(text.lines().last().unwrap_or_default()).context("the lab's report cannot be read")
}

/// Ends this process when its parent ends, which closes the pipe on standard input. The kernel then ends every process and mount of its
/// namespaces.
pub fn end_with_the_parent() {
    thread::spawn(|| {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        process::exit(1);
    });
}
