//! A separate network namespace for a rehearsal: the official programs only use NTP's port 123, which is free and allowed there.

use std::{
    ffi::OsString,
    io,
    os::unix::process::CommandExt as _,
    process::{Command, Stdio},
};

/// Brings up the namespace's loopback, and continues with a program.
const BEGIN: &str = "ip link set lo up && exec \"$@\"";

/// Returns whether this user can make a network namespace here. Some distributions refuse it, and iproute2 may be missing.
pub fn is_possible() -> bool {
    let mut command = unshare();
    command
        .arg("true")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Continues as the same command in a new namespace. Only returns when that fails.
pub fn enter() -> io::Error {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return error,
    };
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    unshare()
        .arg(program)
        .args(arguments)
        .arg("--in-namespace")
        .exec()
}

fn unshare() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "sh", "-c", BEGIN, "sh"]);
    command
}
