//! Tests of a `./dist` release, apart from the builds: bills of materials, notes, checksums, tags, and the archive that installs the coordinator on a
//! workstation.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use regatta_test_requirements::program;
use regatta_tests::{printed, regatta, succeed_output};

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn dist(arguments: &[&str]) -> Output {
    Command::new(checkout().join("dist"))
        .args(arguments)
        .output()
        .unwrap()
}

/// Returns the files in a directory with their contents.
fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect()
}

#[test]
fn bills_of_materials_notes_and_checksums_have_the_same_bytes_twice() {
    let directory = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| {
        let out = directory.path().join(name);
        let output = dist(&["--only", "sbom,notes", "--out", out.to_str().unwrap()]);
        assert!(output.status.success(), "{}", printed(&output));
        out
    });
    let files = contents(&first);
    assert_eq!(files, contents(&second));
    assert_eq!(
        files.keys().map(String::as_str).collect::<Vec<_>>(),
        [
            "SHA256SUMS",
            "regatta-0.1.0.cdx.json",
            "regatta-agent-0.1.0.cdx.json",
            "release-notes-0.1.0.md"
        ]
    );
    let _ = succeed_output(
        Command::new("sha256sum")
            .args(["--quiet", "--check", "SHA256SUMS"])
            .current_dir(&first),
    );
    let notes = String::from_utf8(files["release-notes-0.1.0.md"].clone()).unwrap();
    assert!(
        notes.starts_with("## 0.1.0,") && notes.contains("**Submission**"),
        "{notes}"
    );

    // It lists exactly the linked packages: the agent is built without the CPU engine, which tests are linked with.
    let bill: serde_json::Value = serde_json::from_slice(&files["regatta-agent-0.1.0.cdx.json"]).unwrap();
    let components = bill["components"].as_array().unwrap();
    let named = |name: &str| components.iter().find(|component| component["name"] == name);
    let rustls = named("rustls").unwrap();
    assert_eq!(rustls["hashes"][0]["alg"], "SHA-256");
    assert_eq!(rustls["licenses"][0]["expression"], "Apache-2.0 OR ISC OR MIT");
    assert!(named("tract-onnx").is_none() && named("proptest").is_none());
    assert_eq!(bill["metadata"]["component"]["name"], "regatta-agent");
}

#[test]
fn a_tag_of_another_version_or_without_a_date_is_refused() {
    for (tag, part) in [
        (
            "v9.9.9",
            "the tag v9.9.9 is not v0.1.0, the version in Cargo.toml",
        ),
        ("v0.1.0", "CHANGELOG.md has no date for 0.1.0"),
    ] {
        let output = dist(&["--only", "notes", "--tag", tag, "--out", "/nonexistent/out"]);
        assert_eq!(output.status.code(), Some(3));
        assert!(printed(&output).contains(part), "{}", printed(&output));
    }
    let unknown = dist(&["--only", "agent-riscv64"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        printed(&unknown).contains("known are agent-arm64 agent-amd64 coordinator-arm64 coordinator-amd64"),
        "{}",
        printed(&unknown)
    );
}

/// Packs the coordinator, together with one agent package, into `out`.
fn pack_coordinator(work: &Path, out: &Path) {
    let agent = work.join("agent");
    fs::write(&agent, "#!/bin/sh\n").unwrap();
    let packaging = checkout().join("packaging");
    for (script, binary, architecture) in [
        ("package.sh", agent.as_path(), "arm64"),
        ("coordinator.sh", &work.join("stripped"), "amd64"),
    ] {
        let mut command = Command::new(packaging.join(script));
        command
            .args(["--level", "1", "--arch", architecture, "--binary"])
            .arg(binary);
        let _ = succeed_output(command.arg("--out").arg(out));
    }
}

#[test]
fn the_archive_installs_the_coordinator_with_its_packages_and_removes_it() {
    let Some(strip) = program("strip", "binutils") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let work = directory.path();
    let _ = succeed_output(
        Command::new(strip)
            .arg("-o")
            .arg(work.join("stripped"))
            .arg(regatta()),
    );
    let (out, again) = (work.join("out"), work.join("again"));
    pack_coordinator(work, &out);
    pack_coordinator(work, &again);
    assert!(
        contents(&out) == contents(&again),
        "packed twice, the bytes differ"
    );

    let home = work.join("home");
    fs::create_dir(&home).unwrap();
    let archive = out.join("regatta-0.1.0-amd64.tar.gz");
    let _ = succeed_output(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&home));
    let unpacked = home.join("regatta-0.1.0-amd64");
    let prefix = home.join(".local");
    let install = |arguments: &[&str]| {
        let mut command = Command::new("sh");
        command.arg(unpacked.join("install.sh")).args(arguments);
        command
            .arg("--prefix")
            .arg(&prefix)
            .env("HOME", &home)
            .output()
            .unwrap()
    };
    let installed = install(&[]);
    assert!(installed.status.success(), "{}", printed(&installed));
    assert!(
        printed(&installed).contains("is not in PATH yet"),
        "{}",
        printed(&installed)
    );
    let version = succeed_output(Command::new(prefix.join("bin/regatta")).arg("--version"));
    assert_eq!(printed(&version).trim(), "regatta 0.1.0");
    for file in [
        "share/regatta/packages/regatta-agent_0.1.0_arm64.deb",
        "share/regatta/packages/regatta-agent-0.1.0-arm64.tar.gz",
        "share/man/man1/regatta-device-deploy.1.gz",
        "share/zsh/site-functions/_regatta",
    ] {
        assert!(prefix.join(file).is_file(), "{file}");
    }

    // A program that does not run here does not replace the installed one.
    let program = unpacked.join("bin/regatta");
    fs::write(
        &program,
        "#!/bin/sh\necho 'libssl.so.3: not found' >&2\nexit 127\n",
    )
    .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let broken = install(&[]);
    assert_eq!(broken.status.code(), Some(3));
    assert!(
        printed(&broken).contains("libssl.so.3: not found; hint: it needs Debian 12"),
        "{}",
        printed(&broken)
    );
    let _ = succeed_output(Command::new(prefix.join("bin/regatta")).arg("--version"));

    // The man page of an agent in the same prefix is kept.
    let agents = prefix.join("share/man/man1/regatta-agent-bench.1.gz");
    fs::write(&agents, "").unwrap();
    let removed = install(&["--remove"]);
    assert!(removed.status.success(), "{}", printed(&removed));
    let left = succeed_output(Command::new("find").arg(&prefix).args(["-type", "f"]));
    assert_eq!(printed(&left).trim(), agents.to_str().unwrap());
}
