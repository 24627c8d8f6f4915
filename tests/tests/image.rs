//! Tests of the files of `regatta device image`. The overlay is unpacked, and a daemon that finds its token enrolls as soon as
//! there is a coordinator. `tests/emulated-boards/board-root.sh` boots boards with it.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use regatta_test_requirements::{Requirement, require};
use regatta_tests::{Broker, DEVICE, Lab, eventually, succeed_output};

/// Makes an image for the lab's device around a program of one line, and unpacks its overlay.
fn image(lab: &Lab, directory: &Path) {
    let program = directory.join("program");
    fs::write(&program, "#!/bin/sh\n").unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/package.sh");
    let mut command = Command::new(script);
    command.args(["--arch", "arm64", "--binary"]).arg(&program);
    let _ = succeed_output(command.arg("--out").arg(directory.join("dist")));
    let mut command = lab.regatta();
    command.args([
        "device",
        "image",
        DEVICE,
        "--coordinator",
        "127.0.0.1",
        "--package",
    ]);
    command
        .arg(directory.join("dist"))
        .arg("--output")
        .arg(directory.join("image"));
    let _ = succeed_output(&mut command);
    fs::create_dir(directory.join("root")).unwrap();
    let mut command = Command::new("tar");
    command.arg("-xpzf").arg(directory.join("image/overlay.tar.gz"));
    let _ = succeed_output(command.arg("-C").arg(directory.join("root")));
}

#[test]
fn a_board_with_the_images_token_enrolls_by_itself() {
    let mut lab = Lab::secure(Broker::Embedded).unwrap();
    let directory = tempfile::tempdir().unwrap();
    image(&lab, directory.path());
    let root = directory.path().join("root");
    let here = root.join("usr/lib/regatta-first-boot");

    // Only root can read the token, on the workstation and on the board.
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&here.join("token")), 0o600);
    for file in ["overlay.tar.gz", "user-data", "meta-data"] {
        assert_eq!(mode(&directory.path().join("image").join(file)), 0o600, "{file}");
    }
    let link = root.join("etc/systemd/system/multi-user.target.wants/regatta-first-boot.service");
    assert!(link.exists(), "the unit is enabled, by a link that leads to it");
    let _ = succeed_output(Command::new("sh").arg("-n").arg(here.join("first-boot")));
    // The package is the one that was named, byte for byte, and so is its copy for cloud-init.
    let package = fs::read(here.join("regatta-agent.deb")).unwrap();
    let made = fs::read(directory.path().join("dist/regatta-agent_0.1.0_arm64.deb")).unwrap();
    assert_eq!(package, made);
    let config = fs::read_to_string(here.join("agent.toml")).unwrap();
    assert!(
        config.contains("\nname = \"boat\"\n") && config.contains("\nstate_dir = \"/var/lib/regatta\"\n")
    );

    // The board boots before the coordinator starts.
    fs::create_dir_all(lab.state()).unwrap();
    let token = lab.state().join("enrollment-token");
    fs::copy(here.join("token"), &token).unwrap();
    lab.start_unenrolled_device();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert!(token.exists(), "kept until it has been used");
    lab.start_coordinator();
    eventually("the board to enroll by itself", 30, || {
        !token.exists() && lab.state().join("enrollment.json").exists()
    });
    lab.wait_for_device();
}

#[test]
fn cloud_init_gets_the_same_files() {
    let lab = Lab::secure(Broker::Embedded).unwrap();
    let directory = tempfile::tempdir().unwrap();
    image(&lab, directory.path());
    // Another YAML parser reads it, where Python has one.
    let script = "import sys, yaml, base64, os, stat\n\
        data = yaml.safe_load(open(sys.argv[1]))\n\
        for file in data['write_files']:\n\
        \x20   path = sys.argv[2] + file['path']\n\
        \x20   assert base64.b64decode(file['content']) == open(path, 'rb').read(), path\n\
        \x20   assert int(file['permissions'], 8) == stat.S_IMODE(os.stat(path).st_mode), path\n\
        print(len(data['write_files']), data['runcmd'])\n";
    let mut python = Command::new("/usr/bin/python3");
    let has_yaml = python
        .args(["-c", "import yaml"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !require(
        has_yaml,
        Requirement::Package,
        "python3 has no YAML (Debian: python3-yaml)",
    ) {
        return;
    }
    let mut python = Command::new("/usr/bin/python3");
    python.args(["-c", script]);
    let read = python
        .arg(directory.path().join("image/user-data"))
        .arg(directory.path().join("root"))
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&read.stdout).into_owned() + &String::from_utf8_lossy(&read.stderr);
    assert!(read.status.success(), "{printed}");
    assert_eq!(
        printed.trim(),
        "5 [['systemctl', 'enable', '--now', '--no-block', 'regatta-first-boot.service']]"
    );
    let user_data = fs::read_to_string(directory.path().join("image/user-data")).unwrap();
    assert!(
        user_data.starts_with("#cloud-config\n"),
        "cloud-init goes by the first line"
    );
}
