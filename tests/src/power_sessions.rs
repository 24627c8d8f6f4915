//! The common part of tests of power sessions: meters with a simulated PTDaemon, sessions of the simulated engine, and the processes that a
//! session leaves. A lab is started elsewhere.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

use crate::{Lab, Process, eventually, free_port, printed, regatta};

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

/// Completes `regatta` to a command that adds a meter on free ports. Only the options of the director's machine are missing.
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
    run_session_of(regatta, meter, "4s")
}

/// As [`run_session`], with another duration of both runs.
pub fn run_session_of<'a>(regatta: &'a mut Command, meter: &str, duration: &str) -> &'a mut Command {
    regatta
        .args(["power", "run", "--meter", meter])
        .args(["--benchmark", "digits", "--engine", "sim"])
        .args(["--scenario", "SingleStream", "--duration", duration])
}

/// Adds a meter with a simulated PTDaemon, and a device of the same name: a session has both for itself.
///
/// # Panics
/// Panics when either cannot be added.
pub fn add_meter_and_device(lab: &Lab, power_dev: &Path, name: &str, options: &str) {
    let program = lab.workspace().join(format!("ptd-{name}"));
    write_simulated_ptd(&program, &regatta(), options);
    lab.add_device(name);
    let added = add_meter(&mut lab.regatta(), name, power_dev, &program)
        .output()
        .expect("regatta starts");
    assert!(added.status.success(), "{}", printed(&added));
}

/// Returns a command that makes a session with a meter of [`add_meter_and_device`].
#[must_use]
pub fn session(lab: &Lab, meter: &str) -> Command {
    let mut command = lab.regatta();
    run_session(&mut command, meter).args(["--device", meter]);
    command
}

/// The sessions with a meter, newest first.
#[must_use]
pub fn sessions(lab: &Lab, meter: &str) -> Vec<Value> {
    sessions_of(&lab.json(&["power", "list"]), meter)
}

/// Checks that a session has ended for this reason within a minute from now.
///
/// # Panics
/// Panics when it has not, or for another reason.
pub fn expect_recorded_failure(lab: &Lab, meter: &str, process: &mut Process, reason: &str) {
    eventually("the session to end", 60, || !process.is_running());
    let row = sessions(lab, meter).remove(0);
    assert!(
        row["reason"].as_str().is_some_and(|words| words.contains(reason)),
        "{row}\n{}",
        process.output()
    );
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

/// Returns LoadGen's `power_begin` and `power_end` in a detail log, in seconds of the day. `None` without them.
#[must_use]
pub fn power_window(detail_log: &str) -> Option<(f64, f64)> {
    let time_of = |key: &str| {
        let line = detail_log.lines().find(|line| line.contains(key))?;
        seconds_of_day(line.split("\"value\": \"").nth(1)?.split('"').next()?)
    };
    time_of("power_begin").zip(time_of("power_end"))
}

/// Returns the seconds of the day of a stamp `MM-DD-YYYY HH:MM:SS.mmm`. `None` when it is none.
#[must_use]
pub fn seconds_of_day(stamp: &str) -> Option<f64> {
    let (_, clock) = stamp.split_once(' ')?;
    let mut parts = clock.split(':').map(|part| part.parse::<f64>().ok());
    Some(parts.next()?? * 3600.0 + parts.next()?? * 60.0 + parts.next()??)
}

/// Python reads this when it starts. The wall clock is off by the number of seconds in one file, and other clocks are unchanged. Every disk has
/// the number of free MiB in another file. With `SETTLE`, the official waits of 10 s are shortened to that number of seconds. Python itself
/// changes these values, because its sleeps fail under libfaketime.
const CHANGED_SYSTEM: &str = "\
import os, shutil, time
real, sleep = time.time, time.sleep
def stepped():
    try:
        with open(os.environ['CLOCK']) as file:
            return real() + float(file.read())
    except (OSError, ValueError):
        return real()
time.time = stepped
usage = shutil.disk_usage
def filled(path):
    try:
        with open(os.environ['FREE']) as file:
            return usage(path)._replace(free=int(file.read()) << 20)
    except (OSError, ValueError):
        return usage(path)
shutil.disk_usage = filled
if 'SETTLE' in os.environ:
    time.sleep = lambda seconds: sleep(float(os.environ['SETTLE']) if seconds == 10 else seconds)
";

/// Writes a `python` into a directory. [`set_python_clock`] steps its clock, and [`set_python_free_space`] changes the free space that it sees.
/// With `settle`, the official waits of 10 s are shortened to that number of seconds.
///
/// # Panics
/// Panics when a file cannot be written.
pub fn write_python(directory: &Path, settle: Option<u32>) {
    let site = directory.join("site");
    fs::create_dir_all(&site).expect("a directory");
    fs::write(site.join("sitecustomize.py"), CHANGED_SYSTEM).expect("Python's changes");
    let wait = settle.map_or_else(String::new, |seconds| format!(" SETTLE={seconds}"));
    let text = format!(
        "#!/bin/sh\nexport PYTHONPATH={} CLOCK={} FREE={}{wait}\nexec python3 \"$@\"\n",
        site.display(),
        directory.join("clock").display(),
        directory.join("free").display()
    );
    let python = directory.join("python");
    fs::write(&python, text).expect("Python");
    fs::set_permissions(python, fs::Permissions::from_mode(0o755)).expect("Python");
    set_python_clock(directory, 0.0);
}

/// Sets the clock of a Python of [`write_python`] to an offset in seconds.
///
/// # Panics
/// Panics when the file cannot be written.
pub fn set_python_clock(directory: &Path, offset: f64) {
    replace(&directory.join("clock"), &format!("{offset:+}\n"));
}

/// Sets the free space that a Python of [`write_python`] sees, in MiB.
///
/// # Panics
/// Panics when the file cannot be written.
pub fn set_python_free_space(directory: &Path, mib: u32) {
    replace(&directory.join("free"), &format!("{mib}\n"));
}

/// Replaces a file, which a reader sees either as before or afterwards.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).expect("a file beside it");
    fs::rename(new, path).expect("the file");
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
