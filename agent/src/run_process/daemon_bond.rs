//! Ends the run process and its children with the daemon that started them. A run whose daemon was killed is lost anyway, and its process would
//! use the device unseen until a new daemon starts.

use std::{env, process};

use rustix::process::{Pid, Signal, set_parent_process_death_signal, test_kill_process};

/// The variable with the daemon's process id. Children of the run process inherit it.
pub(crate) const VARIABLE: &str = "REGATTA_AGENT_PID";

/// Makes the kernel kill this process when its parent dies, if a daemon started it. Ends it at once if the daemon is dead already.
pub(crate) fn end_with_daemon() {
    let Some(daemon) = env::var(VARIABLE)
        .ok()
        .and_then(|pid| Pid::from_raw(pid.parse().ok()?))
    else {
        return;
    };
    // It fails for no signal that exists.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    if test_kill_process(daemon).is_err() {
        process::exit(1);
    }
}
