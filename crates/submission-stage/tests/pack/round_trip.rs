//! Tests that the official commands open our packages, and that we open theirs.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Stdio},
};

use regatta_submission_stage::pack::{Package, Password, pack};
use regatta_test_requirements::official_tools;
use regatta_test_support::tree::{copy, files, put};
use tempfile::TempDir;

use crate::unpack;

const SECRET: &str = "a pass phrase with 'quotes' and $signs";

/// Returns a submission with difficult content: empty files, empty directories, programs, long names, many files.
fn submission() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let at = |path: &str| dir.path().join(path);
    put(
        &at("closed/ACME/results/sys/resnet/Offline/accuracy/accuracy.txt"),
        "accuracy=76.1\nhash=00\n",
    );
    put(&at("closed/ACME/systems/sys.json"), "{}");
    put(&at("closed/ACME/code/resnet/run.sh"), "#!/bin/sh\n");
    fs::set_permissions(
        at("closed/ACME/code/resnet/run.sh"),
        fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    put(&at("closed/ACME/code/empty"), "");
    put(
        &at(&format!("open/ACME/code/{}/{}", "d".repeat(120), "n".repeat(150))),
        vec![7; 200_000],
    );
    fs::create_dir_all(at("open/ACME/documentation")).unwrap();
    for number in 0..300 {
        put(
            &at(&format!("closed/ACME/measurements/{number}.json")),
            number.to_string(),
        );
    }
    dir
}

fn packed(input: &Path, into: &Path) -> Package {
    pack(input, "ACME", into, &Password::Text(SECRET.to_owned())).unwrap()
}

/// Runs the commands of the official script for `--pack` and `--unpack`, unchanged except for the password prompt.
fn official(directory: &Path, step: &str) {
    let script = match step {
        "--pack" => {
            "tar -cvzf - closed/ open/ | openssl enc -e -aes256 -out $T -pass env:SECRET && sha1sum $T | tee $S"
        }
        _ => {
            "if [ \"$(sha1sum $T)\" = \"$(cat $S)\" ]; then openssl enc -d -aes256 -in $T -pass env:SECRET | tar -xvz; \
             else exit 1; fi"
        }
    };
    let script =
        format!("T=mlperf_submission_ACME.tar.gz S=mlperf_submission_ACME.sha1; set -o pipefail; {script}");
    let status = Command::new("bash")
        .args(["-c", &script])
        .current_dir(directory)
        .env("SECRET", SECRET)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "{step}");
}

#[test]
fn ours_is_opened_by_the_official_commands() {
    let (tree, there) = (submission(), tempfile::tempdir().unwrap());
    let package = packed(tree.path(), there.path());
    assert_eq!(package.files, files(tree.path()).len() as u64);
    assert_eq!(package.bytes, fs::metadata(&package.tarball).unwrap().len());
    official(there.path(), "--unpack");
    for name in ["mlperf_submission_ACME.tar.gz", "mlperf_submission_ACME.sha1"] {
        fs::remove_file(there.path().join(name)).unwrap();
    }
    assert!(files(there.path()) == files(tree.path()));
    assert!(there.path().join("open/ACME/documentation").is_dir());
    let program = fs::metadata(there.path().join("closed/ACME/code/resnet/run.sh")).unwrap();
    assert_eq!(program.permissions().mode() & 0o777, 0o755);
}

#[test]
fn the_official_script_itself_opens_ours() {
    let Some(script) = official_tools("HEAD/tools/submission/pack_submission.sh") else {
        return;
    };
    let (tree, there) = (submission(), tempfile::tempdir().unwrap());
    packed(tree.path(), there.path());
    // Only the documented changes, and those for a test without a terminal.
    let script = fs::read_to_string(script).unwrap();
    let script = script.replace("SUBMITTER=COMPANY", "SUBMITTER=ACME").replace(
        "openssl enc -d -aes256",
        "openssl enc -d -aes256 -pass env:SECRET",
    );
    put(&there.path().join("pack.sh"), script);
    let output = Command::new("bash")
        .args(["pack.sh", "--unpack"])
        .current_dir(there.path())
        .env("SECRET", SECRET)
        .output()
        .unwrap();
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("sha1sum matches."),
        "{output:?}"
    );
    assert!(files(&there.path().join("closed")) == files(&tree.path().join("closed")));
    assert!(files(&there.path().join("open")) == files(&tree.path().join("open")));
}

#[test]
fn unpack_opens_packages_of_the_official_script() {
    let tree = submission();
    let expected = files(tree.path());
    official(tree.path(), "--pack");
    let there = tempfile::tempdir().unwrap();
    let output = there.path().join("tree");
    let count = unpack(tree.path(), "ACME", &output, &Password::Text(SECRET.to_owned())).unwrap();
    assert_eq!(count, expected.len() as u64);
    assert!(files(&output) == expected);
    assert!(output.join("open/ACME/documentation").is_dir());
}

#[test]
fn ours_is_opened_by_ours_with_the_network_division_in_it() {
    let (tree, there) = (submission(), tempfile::tempdir().unwrap());
    copy(&tree.path().join("closed"), &tree.path().join("network"));
    packed(tree.path(), there.path());
    // A second package replaces the first.
    put(&tree.path().join("open/ACME/late.txt"), "late");
    packed(tree.path(), there.path());
    assert_eq!(files(there.path()).len(), 2);
    let output = there.path().join("tree");
    unpack(there.path(), "ACME", &output, &Password::Text(SECRET.to_owned())).unwrap();
    assert!(files(&output) == files(tree.path()));
}

#[test]
fn other_files_in_the_root_stay_out() {
    let (tree, there) = (submission(), tempfile::tempdir().unwrap());
    put(&tree.path().join("notes.txt"), "private");
    put(&tree.path().join(".git/config"), "private");
    packed(tree.path(), there.path());
    let output = there.path().join("tree");
    unpack(there.path(), "ACME", &output, &Password::Text(SECRET.to_owned())).unwrap();
    assert!(
        files(&output)
            .keys()
            .all(|path| path.starts_with("closed/") || path.starts_with("open/"))
    );
}
