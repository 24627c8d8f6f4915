//! Identifies run processes across restarts of the daemon, and kills one that has outlived its daemon.

use std::{
    fs,
    time::{Duration, Instant},
};

use regatta_board::FactsReader;
use rustix::process::{Pid, Signal, kill_process_group};

use super::job::ProcessIdentity;

/// Time that a leftover process may take to die.
const KILL_PATIENCE: Duration = Duration::from_secs(2);
/// Fields 3 and 22 of `/proc/PID/stat`, counted from the field after the command.
const STATE: usize = 0;
const START_TIME: usize = 19;

/// Kills a run process of an earlier daemon if it still runs, and waits until it is dead. Returns whether it was
/// running.
pub(crate) fn kill_leftover(identity: &ProcessIdentity) -> bool {
    let Some(pid) = Pid::from_raw(identity.pid) else {
        return false;
    };
    if identity.start_ticks == 0 || !is_running(pid, identity) {
        return false;
    }
    signal_group(pid, Signal::KILL);
    let begin = Instant::now();
    while is_running(pid, identity) && begin.elapsed() < KILL_PATIENCE {
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// Returns whether this process exists and is not a zombie.
fn is_running(pid: Pid, identity: &ProcessIdentity) -> bool {
    let is_same = ProcessIdentity::of(pid) == *identity;
    is_same && stat_field(pid, STATE).is_some_and(|state| state != "Z" && state != "X")
}

/// Sends a signal to a process group. Logs only a failure: the process may have ended already.
pub(crate) fn signal_group(pid: Pid, signal: Signal) {
    if let Err(e) = kill_process_group(pid, signal) {
        tracing::debug!("process group {pid:?}: {e}");
    }
}

impl ProcessIdentity {
    /// Reads the identity of a running process.
    pub(crate) fn of(pid: Pid) -> Self {
        Self {
            pid: pid.as_raw_nonzero().get(),
            start_ticks: start_ticks(pid).unwrap_or(0),
            boot_id: FactsReader::of_this_machine().boot_id().unwrap_or_default(),
        }
    }
}

fn start_ticks(pid: Pid) -> Option<u64> {
    stat_field(pid, START_TIME)?.parse().ok()
}

/// Reads a field of `/proc/PID/stat`. Index 0 is the field after the command's closing parenthesis, because a command
/// may contain spaces and parentheses. Returns `None` if the process does not exist.
fn stat_field(pid: Pid, field: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let (_, behind_command) = stat.rsplit_once(')')?;
    behind_command
        .split_ascii_whitespace()
        .nth(field)
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;

    use super::*;
    use crate::daemon::executor::run_process::describe_end;

    #[test]
    fn leftover_process_is_killed_but_not_a_reused_pid() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .process_group(0)
            .spawn()
            .unwrap();
        let identity = ProcessIdentity::of(Pid::from_child(&child));
        let other = ProcessIdentity {
            start_ticks: identity.start_ticks + 1,
            ..identity.clone()
        };
        let other_boot = ProcessIdentity {
            boot_id: "another".to_owned(),
            ..identity.clone()
        };
        assert!(!kill_leftover(&other) && !kill_leftover(&other_boot));
        assert_eq!(child.try_wait().unwrap(), None);
        assert!(kill_leftover(&identity));
        let ended = child.wait();
        assert_eq!(
            describe_end(&ended),
            "the run process was killed by signal 9 (SIGKILL)"
        );
        assert!(!kill_leftover(&identity), "it is gone");
    }
}
