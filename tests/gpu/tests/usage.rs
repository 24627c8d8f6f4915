//! Tests of the kit's command line. The checks themselves run in the archive, which `tests/tests/gpu_kit.rs` builds.

use std::process::Command;

#[test]
fn every_check_is_listed_and_wrong_use_has_its_exit_code() {
    let kit = env!("CARGO_BIN_EXE_gpu-kit");
    let listed = Command::new(kit).arg("list").output().unwrap();
    let listed = (listed.status.code(), String::from_utf8(listed.stdout).unwrap());
    assert_eq!(listed.0, Some(0), "{}", listed.1);
    assert!(listed.1.lines().count() > 20, "{}", listed.1);
    let wrong = Command::new(kit).args(["run", "--unknown"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
}
