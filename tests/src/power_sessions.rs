//! What tests of power sessions share: meters with a simulated PTDaemon, sessions of the simulated engine, and the processes that a session
//! leaves. It starts no lab.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

use crate::free_port;

/// Writes a program that is a simulated PTDaemon with these options.
///
/// # Panics
/// Panics when the file cannot be written.
pub fn write_simulated_ptd(program: &Path, regatta: &Path, options: &str) {
    let text = format!(
        "#!/bin/sh\nexec {} power simulate-ptd {options} \"$@\"\n",
        regatta.display()
    );
    fs::write(program, text).expect("PTDaemon's program");
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).expect("PTDaemon's program");
}

/// Completes `regatta` to a command that adds a meter on free ports, of which only what concerns the director's machine is missing.
pub fn add_meter<'a>(regatta: &'a mut Command, name: &str, power_dev: &Path, ptd: &Path) -> &'a mut Command {
    let meter = ["meter", "add", name, "--device-type", "49"];
    let ports = [free_port(), free_port()].map(|port| port.to_string());
    regatta
        .args(meter)
        .args(["--device-port", name, "--ntp", "127.0.0.1"])
        .args(["--port", &ports[0], "--ptd-port", &ports[1]])
        .arg("--power-dev")
        .arg(power_dev)
        .arg("--ptd")
        .arg(ptd)
}

/// Completes `regatta` to a session with a meter. The simulated engine takes its time by the clock, on every machine alike.
pub fn run_session<'a>(regatta: &'a mut Command, meter: &str) -> &'a mut Command {
    regatta
        .args(["power", "run", "--meter", meter])
        .args(["--benchmark", "digits", "--engine", "sim"])
        .args(["--scenario", "SingleStream", "--duration", "4s"])
}

/// Parses the JSON output of a command.
///
/// # Panics
/// Panics when it is no JSON.
#[must_use]
pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Returns the sessions with a meter in the output of `power list --format json`, newest first.
///
/// # Panics
/// Panics when the output is not such a list.
#[must_use]
pub fn sessions_of(list: &Value, meter: &str) -> Vec<Value> {
    let rows = list["sessions"].as_array().expect("a list").iter();
    rows.filter(|row| row["meter"] == meter).cloned().collect()
}

/// Returns a session's id.
///
/// # Panics
/// Panics when the document is not a session's.
#[must_use]
pub fn id(session: &Value) -> String {
    session["session"].as_str().expect("an id").to_owned()
}

/// Returns the processes whose command line meets a condition.
///
/// # Panics
/// Panics without `/proc`.
#[must_use]
pub fn processes(is_meant: impl Fn(&str) -> bool) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("/proc is there").flatten();
    let meant = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        is_meant(&String::from_utf8_lossy(&line).replace('\0', " ")).then_some(pid)
    });
    meant.collect()
}

/// Kills processes.
///
/// # Panics
/// Panics when one cannot be killed.
pub fn kill(processes: &[u32]) {
    for pid in processes {
        let killed = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        assert!(killed.expect("kill starts").success());
    }
}
