//! The processes of a lab, which has a PID namespace of its own, and signals to them.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// Returns every process of the lab except zombies and the campaign itself, with its command line. Spaces separate the arguments.
pub fn lab_processes() -> impl Iterator<Item = (Pid, String)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let process = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        let line = command_line(process.as_raw_nonzero().get());
        // The campaign is the first process. Zombies and kernel threads have no command line.
        (!process.is_init() && !line.is_empty()).then_some((process, line))
    })
}

/// Returns the arguments of a process with spaces between them; nothing when the process has ended.
#[must_use]
pub fn command_line(process: i32) -> String {
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line)
        .replace('\0', " ")
        .trim_end()
        .to_owned()
}

/// Sends a signal to the processes whose command line meets a condition. Returns whether one received it.
pub fn signal_processes(signal: Signal, is_meant: impl Fn(&str) -> bool) -> bool {
    lab_processes()
        .filter(|(process, line)| is_meant(line) && kill_process(*process, signal).is_ok())
        .count()
        > 0
}
