//! A network namespace for a test: power programs only use NTP's port 123, which is free and allowed there. Small disks can be mounted.

use std::{path::Path, process::Command};

use regatta_test_requirements::{Requirement, namespaces as can_make_namespaces, require};

const INSIDE: &str = "REGATTA_TEST_NAMESPACE";

/// Returns whether this process is in a namespace of its own. If not, the test runs again in one, unless this user can make none.
///
/// # Panics
/// Panics when the test fails there.
#[must_use]
pub fn continues_inside(test: &str) -> bool {
    continues(test, &["--user", "--map-root-user", "--net", "--mount"])
}

/// Does the same as [`continues_inside`], for tests with machines whose users are others, which needs root.
///
/// # Panics
/// Panics when the test fails there.
#[must_use]
pub fn continues_inside_as_root(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    require(
        is_root,
        Requirement::Right,
        "machines with their own users need root",
    ) && continues(test, &["--net"])
}

fn continues(test: &str, namespaces: &[&str]) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    if !can_make_namespaces(namespaces) {
        return false;
    }
    let own = std::env::current_exe().expect("a process knows its executable");
    let status = unshare(&own, namespaces)
        .args(["--exact", test, "--nocapture"])
        .status();
    assert!(
        status.expect("unshare starts").success(),
        "the test in the namespace"
    );
    false
}

fn unshare(program: &Path, namespaces: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(namespaces)
        .args(["sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]);
    command.arg(program).env(INSIDE, "1");
    command
}
