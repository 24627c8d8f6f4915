//! Bounds the log of a daemon without a service manager, which appends its standard error to `agent.log` in the state directory for ever. Under
//! systemd, the journal has its own limits, and this does nothing.

use std::{
    fs::{self, OpenOptions},
    io,
    os::unix::fs::MetadataExt as _,
    path::Path,
};

/// The size from which on the log is set aside, in bytes.
const MAX_LOG: u64 = 8 << 20;
/// Name of the log, to which the installed service appends.
const LOG: &str = "agent.log";
/// Name of the log that was set aside before.
const FORMER_LOG: &str = "agent.log.1";
/// This process's standard error.
const STANDARD_ERROR: &str = "/proc/self/fd/2";

/// Copies the log aside and empties it if standard error is the log and is too large. Lines that are written in between are lost.
pub(crate) fn limit_size(state_dir: &Path) {
    match is_due(state_dir) {
        Ok(true) => {}
        // Standard error is something else, or there is no log.
        Ok(false) | Err(_) => return,
    }
    if let Err(e) = set_aside(state_dir) {
        tracing::warn!(
            "{LOG} has more than {} MiB and cannot be set aside: {e}",
            MAX_LOG >> 20
        );
    }
}

fn is_due(state_dir: &Path) -> io::Result<bool> {
    let (log, error) = (fs::metadata(state_dir.join(LOG))?, fs::metadata(STANDARD_ERROR)?);
    Ok((log.dev(), log.ino()) == (error.dev(), error.ino()) && log.len() > MAX_LOG)
}

fn set_aside(state_dir: &Path) -> io::Result<()> {
    let log = state_dir.join(LOG);
    fs::copy(&log, state_dir.join(FORMER_LOG))?;
    // The daemon appends, so that its next line is at the beginning.
    OpenOptions::new().write(true).open(&log)?.set_len(0)
}
