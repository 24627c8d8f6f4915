//! A workstation with the released archive in a directory, and nothing else. The commands of the page are executed there by a shell, in one
//! directory, with an empty home and the system's search path.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use regatta_tests::{deploy_lab::architecture, printed, regatta, succeed_output};
use serde_json::Value;

pub(crate) struct Workstation {
    directory: tempfile::TempDir,
}

impl Workstation {
    /// Unpacks the archive, which contains the packages of the agent, as the page requires.
    pub(crate) fn with_archive(packages: &Path) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("home")).unwrap();
        let parts = tempfile::tempdir().unwrap();
        let stripped = parts.path().join("regatta");
        let _ = succeed_output(Command::new("strip").arg("-o").arg(&stripped).arg(regatta()));
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/coordinator.sh");
        let mut pack = Command::new(script);
        pack.args(["--arch", architecture(), "--level", "1", "--binary"])
            .arg(&stripped);
        let packed = succeed_output(
            pack.arg("--packages")
                .arg(packages)
                .arg("--out")
                .arg(parts.path()),
        );
        let packed = String::from_utf8(packed.stdout).unwrap();
        let archive = packed.lines().find(|line| line.ends_with(".tar.gz")).unwrap();
        let mut unpack = Command::new("tar");
        unpack.args(["--strip-components", "1", "-xzf", archive, "-C"]);
        let _ = succeed_output(unpack.arg(directory.path()));
        Self { directory }
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.directory.path().join(below)
    }

    /// Executes a command line with this input.
    pub(crate) fn execute(&self, line: &str, input: &str) -> Output {
        let home = self.path("home");
        let mut shell = Command::new("sh")
            .args(["-c", line])
            .current_dir(self.directory.path())
            .env_clear()
            .env("HOME", &home)
            .env("PATH", format!("{}/.local/bin:/usr/bin:/bin", home.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that reads nothing may have ended already.
        let _ = shell.stdin.take().unwrap().write_all(input.as_bytes());
        shell.wait_with_output().unwrap()
    }

    /// Executes a command line that must end with one of these exit codes, and returns its output.
    pub(crate) fn ends(&self, line: &str, input: &str, codes: &[i32]) -> String {
        println!("$ {line}");
        let output = self.execute(line, input);
        let text = printed(&output);
        println!("{text}");
        let code = output.status.code();
        assert!(code.is_some_and(|code| codes.contains(&code)), "{line}: {code:?}");
        text
    }

    /// Returns the JSON document of a command, whose verdict may be bad.
    pub(crate) fn document(&self, line: &str) -> Value {
        let output = self.execute(&format!("{line} --format json"), "");
        assert!(
            matches!(output.status.code(), Some(0 | 1)),
            "{line}: {}",
            printed(&output)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

impl Drop for Workstation {
    fn drop(&mut self) {
        let stopped = self.execute("regatta serve --stop", "");
        if std::thread::panicking() {
            let log = fs::read_to_string(self.path("lab/serve.log")).unwrap_or_default();
            let tail: Vec<&str> = log.lines().rev().take(60).collect();
            println!(
                "--- serve.log, backwards\n{}\n--- serve --stop: {stopped:?}",
                tail.join("\n")
            );
        }
    }
}
