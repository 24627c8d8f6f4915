//! Tests with pipes and devices in place of a user's files or of files in a foreign run's directory. Commands refuse them by
//! name, and neither wait nor read without end.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use tempfile::TempDir;

/// Runs a command for at most ten seconds; returns exit code and output. `timeout` exits with 124 when it hangs.
fn regatta(workspace: &Path, words: &[&str]) -> (Option<i32>, String) {
    let output = Command::new("timeout")
        .args(["10", env!("CARGO_BIN_EXE_regatta"), "--workspace"])
        .arg(workspace)
        .args(words)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let mut printed = String::from_utf8(output.stdout).unwrap();
    printed.push_str(&String::from_utf8(output.stderr).unwrap());
    (output.status.code(), printed)
}

fn pipe(path: &Path) {
    let _ = fs::remove_file(path);
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn workspace() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(
        dir.path().join("regatta.toml"),
        "schema = 1\nlisten = \"127.0.0.1:1883\"\n",
    )
    .unwrap();
    dir
}

#[test]
fn pipes_and_devices_are_refused_by_name() {
    let dir = workspace();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (endless, run, settings) = (at("endless"), at("run"), at("regatta.toml"));
    fs::create_dir_all(Path::new(&run).join("files")).unwrap();
    let refused = |words: &[&str], named: &str, kind: &str| {
        let (code, printed) = regatta(dir.path(), words);
        assert!(matches!(code, Some(2 | 3)), "{words:?}: {code:?} {printed}");
        let why = format!("it is a {kind}, not a regular file");
        assert!(
            printed.contains(named) && printed.contains(&why),
            "{words:?}: {printed}"
        );
    };
    pipe(Path::new(&endless));
    for (path, kind) in [(endless.as_str(), "named pipe"), ("/dev/zero", "device")] {
        refused(&["run", path], path, kind);
        refused(&["device", "deploy", "--hosts", path], path, kind);
    }
    for file in ["record.json", "files/evidence.json"] {
        let path = Path::new(&run).join(file);
        pipe(&path);
        refused(&["runs", "verify", &run], &run, "named pipe");
        fs::remove_file(&path).unwrap();
    }
    for kind in ["benchmarks", "rounds", "systems"] {
        let directory = dir.path().join("configs").join(kind);
        fs::create_dir_all(&directory).unwrap();
        let file = directory.join("mine.toml");
        pipe(&file);
        let words = [
            "run",
            "--benchmark",
            "digits",
            "--scenario",
            "Offline",
            "--no-wait",
        ];
        refused(&words, "mine.toml", "named pipe");
        fs::remove_file(&file).unwrap();
    }
    pipe(Path::new(&settings));
    refused(&["runs", "list"], &settings, "named pipe");
}
