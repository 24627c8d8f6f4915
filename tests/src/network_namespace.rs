//! A network namespace for a test: power programs only use NTP's port 123, which is free and allowed there. Small disks can be mounted.

use std::{path::Path, process::Command};

/// Set in the namespace.
const INSIDE: &str = "REGATTA_TEST_NAMESPACE";

/// Returns whether this process is in a namespace of its own. If not, the test runs again in one, unless this user can make none.
///
/// # Panics
/// Panics when the test fails there.
#[must_use]
pub fn continues_inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let possible = unshare(Path::new("true")).status();
    if !possible.is_ok_and(|status| status.success()) {
        println!("left out: power sessions: this user can make no network namespace");
        return false;
    }
    let own = std::env::current_exe().expect("a process knows its executable");
    let status = unshare(&own).args(["--exact", test, "--nocapture"]).status();
    assert!(
        status.expect("unshare starts").success(),
        "the test in the namespace"
    );
    false
}

fn unshare(program: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "--mount", "sh", "-c"]);
    command.args(["ip link set lo up && exec \"$@\"", "sh"]);
    command.arg(program).env(INSIDE, "1");
    command
}
