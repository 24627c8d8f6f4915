//! Tests of simultaneous asset commands: `gc` does not remove what `add` stores, and `add` notices a source that changes. Tests of whole labs cover
//! the devices.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use regatta_test_support::{eventually, strace::Strace};
use serde_json::Value;

/// Assets that are added at the same time, each with a simultaneous `gc`.
const ASSETS: u8 = 6;
const BYTES: usize = 1 << 20;

fn regatta(workspace: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_regatta"));
    command
        .args(words)
        .arg("--workspace")
        .arg(workspace)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn succeeded(output: Output) -> Vec<u8> {
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    output.stdout
}

#[test]
fn garbage_collection_keeps_assets_being_added() {
    let workspace = tempfile::tempdir().unwrap();
    let workspace = workspace.path();
    succeeded(regatta(workspace, &["init"]).output().unwrap());
    let scratch = workspace.join("scratch");
    fs::create_dir_all(&scratch).unwrap();
    let names: Vec<String> = (0..ASSETS).map(|number| number.to_string()).collect();
    for (name, byte) in names.iter().zip(0..) {
        fs::write(scratch.join(name), vec![byte; BYTES]).unwrap();
    }
    let at_once: Vec<_> = names
        .iter()
        .flat_map(|name| [vec!["asset", "add", name], vec!["asset", "gc"]])
        .map(|words| regatta(workspace, &words).spawn().unwrap())
        .collect();
    for command in at_once {
        succeeded(command.wait_with_output().unwrap());
    }
    let list = regatta(workspace, &["asset", "list", "--format", "json"]).output();
    let list: Value = serde_json::from_slice(&succeeded(list.unwrap())).unwrap();
    let kept = list["assets"].as_array().unwrap();
    assert_eq!(kept.len(), usize::from(ASSETS));
    for asset in kept {
        let sha256 = asset["sha256"].as_str().unwrap();
        let place = workspace.join("assets").join(&sha256[..2]).join(sha256);
        assert_eq!(fs::metadata(&place).unwrap().len(), BYTES as u64);
    }
}

/// The second file is opened late, so that the first one can change after it was copied.
#[test]
fn a_source_that_changes_during_the_copy_is_not_added() {
    let Some(strace) = Strace::find() else { return };
    let workspace = tempfile::tempdir().unwrap();
    let workspace = workspace.path();
    succeeded(regatta(workspace, &["init"]).output().unwrap());
    let source = workspace.join("scratch/samples");
    fs::create_dir_all(&source).unwrap();
    for name in ["a.npy", "b.npy", ".b.npy.new"] {
        fs::write(source.join(name), name).unwrap();
    }
    let add = |delay: &str| {
        let add = regatta(workspace, &["asset", "add", "samples", "--format", "json"]);
        let program = add.get_program().to_str().unwrap();
        let mut traced = strace.before(program, &[&source.join("b.npy")], delay);
        traced
            .args(add.get_args())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        traced
    };
    let adding = add("openat:delay_enter=3000000").spawn().unwrap();
    eventually("the second file to be opened", 30, || {
        strace.seen().contains("b.npy").then_some(())
    });
    // The same size, as of samples of another scale.
    fs::write(source.join("a.npy"), "A.NPY").unwrap();
    let output = adding.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{printed}");
    assert!(
        printed.contains("a.npy has changed while it was copied"),
        "{printed}"
    );
    let list = regatta(workspace, &["asset", "list", "--format", "json"]).output();
    let list: Value = serde_json::from_slice(&succeeded(list.unwrap())).unwrap();
    assert_eq!(list["assets"], Value::Array(Vec::new()));
    let added: Value =
        serde_json::from_slice(&succeeded(add("openat:delay_enter=1").output().unwrap())).unwrap();
    // Temporary files are no part of it.
    assert_eq!(added["assets"][0]["files"], 2, "{added:#}");
}
