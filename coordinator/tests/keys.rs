//! Tests of `regatta serve` with wrong keys: it says so and does not start.

#![expect(clippy::unwrap_used, reason = "test code")]

mod support;

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use support::{eventually, free_port};
use tempfile::TempDir;

/// A lab with keys and free ports.
struct Lab(TempDir);

impl Lab {
    fn new() -> Self {
        let lab = Self(tempfile::tempdir().unwrap());
        let address = || format!("127.0.0.1:{}", free_port());
        let (listen, enroll, assets) = (address(), address(), address());
        let words = [
            "init",
            "--host",
            "127.0.0.1",
            "--listen",
            &listen,
            "--enroll-listen",
            &enroll,
            "--assets-listen",
            &assets,
        ];
        let made = lab.regatta(&words).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        lab
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn regatta(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_regatta"));
        command
            .arg("--workspace")
            .arg(self.0.path())
            .args(words)
            .stdin(Stdio::null());
        command
    }

    /// Runs `serve`, which must not start; returns exit code and errors.
    fn refused(&self) -> (Option<i32>, String) {
        let log = self.at("serve.log");
        let file = fs::File::create(&log).unwrap();
        let mut child = self
            .regatta(&["serve"])
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap();
        let printed = || fs::read_to_string(&log).unwrap();
        let ended = eventually("serve to end or to serve", 30, || {
            let ended = child.try_wait().unwrap();
            (ended.is_some() || printed().contains("serving")).then_some(ended)
        });
        let _ = child.kill();
        child.wait().unwrap();
        (ended.and_then(|status| status.code()), printed())
    }
}

fn mode(path: &Path, bits: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
}

#[test]
fn keys_that_are_not_in_order_are_refused_by_name() {
    let lab = Lab::new();
    let other = Lab::new();
    // The authority's certificate is another lab's: every device would be refused.
    fs::copy(other.at("keys/ca.pem"), lab.at("keys/ca.pem")).unwrap();
    let (code, printed) = lab.refused();
    assert_eq!(code, Some(3), "{printed}");
    assert!(
        printed.contains("ca.pem is not the certificate of ca.key"),
        "{printed}"
    );

    // A user with write access there can replace these keys.
    let lab = Lab::new();
    for (path, bits, good) in [
        ("keys", 0o777, 0o700),
        ("keys", 0o720, 0o700),
        ("keys/ca.pem", 0o666, 0o644),
        ("", 0o777, 0o755),
    ] {
        mode(&lab.at(path), bits);
        let (code, printed) = lab.refused();
        assert_eq!(code, Some(3), "{path}: {printed}");
        assert!(
            printed.contains("can be written by others") && printed.contains("chmod"),
            "{path}: {printed}"
        );
        mode(&lab.at(path), good);
    }
    let (code, printed) = lab.refused();
    assert_eq!(code, None, "it serves: {printed}");
}
