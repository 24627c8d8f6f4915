//! Tests of the scripts on this machine, as root and with sudo. Root must not follow a link that the owner of the state has created. A
//! password must never become a script's input. The tests need root and a user `nobody`.

use std::{
    fs,
    io::{Read, Write as _},
    os::unix::fs::{PermissionsExt as _, lchown, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use regatta_ssh::END;
use regatta_test_requirements::{Requirement, require};
use tempfile::TempDir;

use super::*;
use crate::identity::Identity;

/// The user who owns the state and has no other rights.
const OWNER: &str = "nobody";
const OWNER_ID: u32 = 65_534;
const PASSWORD: &str = "a rope & an 'anchor'";

/// This machine as a board. `accounts` is a directory of files that replace those in /etc. The login is then [`OWNER`].
struct ThisMachine {
    accounts: Option<PathBuf>,
}

impl Board for ThisMachine {
    fn run(
        &self,
        _doing: &str,
        line: &str,
        input: &mut dyn Read,
        _sent: &mut dyn FnMut(u64),
    ) -> Result<Output, LinkLost> {
        let mut command = match &self.accounts {
            None => Command::new("sh"),
            Some(accounts) => {
                let mut command = Command::new("unshare");
                command.args(["--mount", "--propagation", "private", "sh", "-c"]);
                let script = "for file in sudoers shadow; do mount --bind \"$0/$file\" \"/etc/$file\" || exit 1; done\n\
                              exec setpriv --reuid nobody --regid nogroup --clear-groups sh \"$@\"";
                command.arg(script).arg(accounts);
                command
            }
        };
        command.args(["-c", line]).stdin(Stdio::piped());
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut bytes = Vec::new();
        input.read_to_end(&mut bytes).unwrap();
        // A script that ends early closes its input.
        let _ = child.stdin.take().unwrap().write_all(&bytes);
        let output = child.wait_with_output().unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        Ok(Output {
            code: output.status.code().unwrap_or(-1),
            out: out.replace(&format!("\n{END}\n"), ""),
            err: String::from_utf8(output.stderr).unwrap(),
        })
    }
}

/// Returns whether the tests can run here. Records a skipped test when they cannot.
fn has_root_and(programs: &[&str]) -> bool {
    let there = programs.iter().all(|program| Path::new(program).exists());
    let can = there && rustix::process::geteuid().is_root();
    require(
        can,
        Requirement::Right,
        format!("root and {programs:?} are needed"),
    )
}

/// A board in a directory: a program that logs its user, and a state owned by [`OWNER`].
struct Fixture {
    directory: TempDir,
}

impl Fixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let fixture = Self { directory };
        let (state, program) = (fixture.at("state"), fixture.at("agent"));
        fs::set_permissions(fixture.at(""), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(&state).unwrap();
        fs::write(fixture.at("agent.toml"), "").unwrap();
        // The program writes to the state, which only the owner can.
        let script = format!(
            "#!/bin/sh\ncat >/dev/null\necho \"$1 $(id -un)\" >>{}/log\n",
            state.display()
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        lchown(&state, Some(OWNER_ID), Some(OWNER_ID)).unwrap();
        fixture
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file to the state as its owner.
    fn owners(&self, name: &str, text: &str) {
        let path = self.at("state").join(name);
        fs::write(&path, text).unwrap();
        lchown(&path, Some(OWNER_ID), Some(OWNER_ID)).unwrap();
    }

    fn installation<'a>(&self, board: &'a dyn Board) -> BoardInstallation<'a> {
        let text = |name| self.at(name).display().to_string();
        BoardInstallation {
            board,
            root: Some(Root::Already),
            way: InstallMethod::System,
            places: Places {
                program: text("agent"),
                config: text("agent.toml"),
                state: text("state"),
                owner: OWNER,
            },
            cache: text("cache"),
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.at("state/log")).unwrap_or_default()
    }
}

#[test]
fn root_writes_nothing_through_links_in_the_state() {
    if !has_root_and(&["/usr/sbin/runuser"]) {
        return;
    }
    let machine = ThisMachine { accounts: None };
    let fixture = Fixture::new();
    let installation = fixture.installation(&machine);
    fs::create_dir(fixture.at("etc")).unwrap();
    fs::write(fixture.at("etc/shadow"), "root's").unwrap();
    // The backup before the enrollment would overwrite root's file through this link.
    fixture.owners("enrollment.json", "the owner's words");
    symlink(
        fixture.at("etc/shadow"),
        fixture.at("state/enrollment.json.before-deploy"),
    )
    .unwrap();
    let refused = installation.enroll("token").unwrap_err().to_string();
    assert!(refused.contains("ermission denied"), "{refused}");
    assert_eq!(fs::read_to_string(fixture.at("etc/shadow")).unwrap(), "root's");

    // The restored file would appear in root's directory through this link.
    fs::remove_file(fixture.at("state/enrollment.json.before-deploy")).unwrap();
    fs::remove_file(fixture.at("state/enrollment.json")).unwrap();
    fixture.owners("enrollment.json.before-deploy", "the owner's words");
    symlink(fixture.at("etc"), fixture.at("state/enrollment.json")).unwrap();
    // A failure to start the daemon does not matter here.
    let _ = installation.undo(false);
    let entries = fs::read_dir(fixture.at("etc")).unwrap();
    assert_eq!(entries.count(), 1, "only root's own file");
    assert_eq!(
        fs::read_to_string(fixture.at("state/enrollment.json")).unwrap(),
        "the owner's words",
        "the owner's link is replaced, not followed"
    );
}

#[test]
fn the_agent_is_started_as_the_owner_of_its_state() {
    if !has_root_and(&["/usr/sbin/runuser"]) {
        return;
    }
    let machine = ThisMachine { accounts: None };
    let fixture = Fixture::new();
    let installation = fixture.installation(&machine);
    installation.enroll("token").unwrap();
    Identity::of(&machine, installation.root.as_ref(), &installation.places).unwrap();
    assert_eq!(fixture.log(), "enroll nobody\nidentity nobody\n");
    // Without systemd, root neither starts the daemon nor reads its log.
    fixture.owners("agent.log", "the log\n");
    if !Path::new("/run/systemd/system").exists() {
        let refused = installation.start("start").unwrap_err().to_string();
        assert!(refused.contains("systemd does not answer"), "{refused}");
        assert_eq!(installation.log(), "");
    }
    assert_eq!(fixture.log(), "enroll nobody\nidentity nobody\n");
}

#[test]
fn a_password_is_never_a_scripts_input() {
    if !has_root_and(&["/usr/bin/sudo", "/usr/bin/setpriv", "/usr/bin/openssl"]) {
        return;
    }
    let fixture = Fixture::new();
    let hash = Command::new("openssl")
        .args(["passwd", "-6", PASSWORD])
        .output()
        .unwrap();
    let hash = String::from_utf8(hash.stdout).unwrap();
    let shadow = fs::read_to_string("/etc/shadow").unwrap();
    let accounts = shadow.lines().filter(|line| !line.starts_with("nobody:"));
    let mut shadow: String = accounts.map(|line| format!("{line}\n")).collect();
    shadow.push_str(&format!("nobody:{}:19000:0:99999:7:::\n", hash.trim()));
    fs::write(fixture.at("shadow"), shadow).unwrap();
    let machine = ThisMachine {
        accounts: Some(fixture.at("")),
    };
    let text = "name = \"boat\"\nsecond line\n";
    let read = |sudoers: &str| {
        let file = fixture.at("sudoers");
        let _ = fs::remove_file(&file);
        fs::write(&file, sudoers).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o440)).unwrap();
        let script = Script {
            doing: "reading",
            text: "id -un; cat",
            words: &[],
        };
        let root = Root::SudoWith(Secret::new(PASSWORD.to_owned()));
        script
            .run_as(Some(&root), &machine, &mut text.as_bytes())
            .unwrap()
    };
    for sudoers in [
        "nobody ALL=(ALL) ALL\n",
        // Requires a password for everything except the shell that runs the script.
        "nobody ALL=(ALL) ALL, NOPASSWD: /bin/sh, /usr/bin/sh\n",
    ] {
        let output = read(sudoers);
        let expected = format!("root\n{text}");
        assert!(
            output.code == 0 && output.out.starts_with(&expected) && !output.out.contains(PASSWORD),
            "{sudoers}{output:?}"
        );
    }
}
