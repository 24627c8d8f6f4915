//! Tests of `regatta device deploy` onto boards behind a real sshd, up to the first hello, and of every failure. The boards are
//! users of this machine with their own homes and no systemd; `tests/emulated-boards/board-root.sh` tests the system's service.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
};

use regatta_tests::{
    Process,
    deploy_lab::{BOAT, DeployLab, PLUGIN, SHIM},
    eventually,
    sshd::{Likeness, PASSWORD, SAILOR, Sshd},
    succeed_output,
};

fn both(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Asserts that a deployment failed with exit code 3 and printed these texts.
fn assert_refused(output: &Output, words: &[&str]) {
    let printed = both(output);
    assert_eq!(output.status.code(), Some(3), "{printed}");
    for word in words {
        assert!(printed.contains(word), "`{word}` is missing in:\n{printed}");
    }
}

fn assert_done(output: &Output, words: &str) {
    let printed = both(output);
    assert!(output.status.success() && printed.contains(words), "{printed}");
}

/// Returns everything below a directory, with its contents.
fn listing(directory: &Path) -> String {
    let script = "find . -type f ! -name agent.log ! -name '*.lock' -exec sha256sum {} + | sort -k 2";
    let output = succeed_output(Command::new("sh").args(["-c", script]).current_dir(directory));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_board_is_deployed_to_and_the_second_time_there_is_nothing_to_do() {
    let Some(sshd) = Sshd::start(Likeness::default()) else {
        return;
    };
    // The board reaches broker, enrollment and assets only by the link's own address.
    let deploy_lab = DeployLab::at("127.0.0.9");
    deploy_lab.pack_agent();

    let dry = deploy_lab.deploy(&sshd, &["--dry-run"]);
    assert_done(&dry, "would copy and install the archive, for this user");
    assert_eq!(listing(&sshd.home()), "", "a dry run changes nothing");

    assert_done(&deploy_lab.deploy(&sshd, &[]), "deployed, connected with");
    let installed = listing(&sshd.home());
    assert!(installed.contains("./.local/bin/regatta-agent"), "{installed}");
    // Beside the agent, which searches there. A rollback of the agent includes its libraries.
    let library_versions =
        || [SHIM, PLUGIN].map(|name| fs::read_to_string(sshd.home().join(".local/bin").join(name)).unwrap());
    assert_eq!(library_versions(), ["0.1.0"; 2]);
    assert!(
        installed.contains("./.local/bin/libregatta_loadgen-0000000000.json"),
        "{installed}"
    );
    assert!(!installed.contains("before-deploy"), "{installed}");

    let again = deploy_lab.deploy(&sshd, &["--format", "json"]);
    assert_done(&again, "\"changes\": []");
    assert_eq!(listing(&sshd.home()), installed);

    // The login is stored from now on.
    assert_done(&deploy_lab.upgrade(&sshd, &[]), "nothing to do");
    deploy_lab.pack_script("exit 3", "0.2.0");
    let bad = deploy_lab.upgrade(&sshd, &["--device", "all"]);
    assert_refused(&bad, &["the previous one runs again"]);
    deploy_lab.pack_agent();
    let added = deploy_lab
        .lab
        .regatta()
        .args(["device", "upgrade", "--device", "nobody"])
        .output();
    assert_eq!(added.unwrap().status.code(), Some(2), "an unknown device");

    // The run executes, and downloads a file first.
    let cache = deploy_lab.lab.scratch().join("calibration.cache");
    fs::write(&cache, "kept at the coordinator").unwrap();
    let _ = succeed_output(
        deploy_lab
            .lab
            .regatta()
            .args(["asset", "add", "calibration.cache"]),
    );
    let raced = deploy_lab
        .lab
        .regatta()
        .args([
            "run",
            "--device",
            BOAT,
            "--benchmark",
            "digits",
            "--engine",
            "null",
        ])
        .args([
            "--scenario",
            "Offline",
            "--mode",
            "PerformanceOnly",
            "--duration",
            "500ms",
            "--asset",
            "calibration.cache",
        ])
        .output()
        .unwrap();
    assert!(
        raced.status.code().is_some_and(|code| code <= 1),
        "{}",
        both(&raced)
    );

    // Its configuration is corrected, and its owner's changes stay.
    let config = sshd.home().join(".config/regatta/agent.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace(BOAT, "somebody") + "min_free_mib = 7\n").unwrap();
    assert_done(&deploy_lab.deploy(&sshd, &[]), "deployed, connected with");
    let text = fs::read_to_string(&config).unwrap();
    assert!(
        text.contains("name = \"boat-1\"\n") && text.contains("min_free_mib = 7\n"),
        "{text}"
    );

    // When a version does not start, the previous one runs again, and the board sends its hello.
    deploy_lab.pack_script("exit 3", "0.2.0");
    assert_refused(&deploy_lab.deploy(&sshd, &[]), &["the previous one runs again"]);
    assert_eq!(library_versions(), ["0.1.0"; 2]);
    deploy_lab.pack_agent();
    assert_done(&deploy_lab.deploy(&sshd, &[]), "nothing to do");

    // A daemon that starts but sends no hello is rolled back as well.
    deploy_lab.pack_script(
        "case $1 in --version) echo regatta-agent 0.3.0 ;; serve) exec sleep 600 ;; *) exit 3 ;; esac",
        "0.3.0",
    );
    let silent = deploy_lab.deploy(&sshd, &["--timeout", "2s"]);
    assert_refused(&silent, &["the board runs the earlier version again"]);
    assert_eq!(library_versions(), ["0.1.0"; 2]);
    deploy_lab.pack_agent();
    assert_done(&deploy_lab.deploy(&sshd, &[]), "connected with");

    // So is an older one that does not know a key of the present agent.toml.
    let config = config.display();
    deploy_lab.pack_script(
        &format!(
            "case $1 in --version) echo regatta-agent 0.0.9; exit 0 ;; serve) ! grep -q '^coordinator =' {config} && exec sleep 600 ;; esac; exit 2"
        ),
        "0.0.9",
    );
    let older = deploy_lab.deploy(&sshd, &["--timeout", "2s"]);
    assert_refused(&older, &["the board runs the earlier version again"]);
    deploy_lab.pack_agent();
    assert_done(&deploy_lab.deploy(&sshd, &[]), "connected with");

    // A changed shim and a truncated program are repaired.
    for name in [SHIM, PLUGIN] {
        fs::write(sshd.home().join(".local/bin").join(name), "another").unwrap();
    }
    assert_done(&deploy_lab.deploy(&sshd, &[]), "deployed, connected with");
    assert_eq!(library_versions(), ["0.1.0"; 2]);
    let program = sshd.home().join(".local/bin/regatta-agent");
    fs::remove_file(&program).unwrap();
    fs::write(&program, "half").unwrap();
    assert_done(&deploy_lab.deploy(&sshd, &[]), "deployed, connected with");

    // Another board, or the same one flashed again, does not get the name.
    let state = sshd.home().join(".local/state/regatta");
    fs::rename(state.join("device.key"), state.join("old.key")).unwrap();
    let before = listing(&sshd.home());
    assert_refused(
        &deploy_lab.deploy(&sshd, &[]),
        &["it was set up again", "regatta device remove boat-1"],
    );
    assert_eq!(listing(&sshd.home()), before);
}

#[test]
fn deploy_refuses_unknown_and_changed_host_keys() {
    let Some(mut sshd) = Sshd::start(Likeness::default()) else {
        return;
    };
    let deploy_lab = DeployLab::default();
    deploy_lab.pack_script("exit 3", "0.1.0");
    let by_password = |sshd: &Sshd, password: &str, more: &[&str]| {
        let mut command = deploy_lab.bare(BOAT, sshd);
        command
            .args(["--password-stdin", "--dry-run"])
            .args(more)
            .stdin(Stdio::piped());
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        writeln!(child.stdin.take().unwrap(), "{password}").unwrap();
        child.wait_with_output().unwrap()
    };
    let known_hosts = deploy_lab.home().join(".ssh/known_hosts");
    // Without a terminal nothing can prompt, and another key was accepted.
    let fingerprint = sshd.fingerprint();
    for more in [&[][..], &["--accept-host-key", "SHA256:another"]] {
        assert_refused(&by_password(&sshd, PASSWORD, more), &["is unknown", &fingerprint]);
    }
    assert!(!known_hosts.exists());

    let wrong = by_password(&sshd, "wrong", &["--accept-host-key", &fingerprint]);
    assert_refused(&wrong, &["refuses the login", "the password, which is wrong"]);
    assert!(known_hosts.exists());
    assert_done(&by_password(&sshd, PASSWORD, &[]), "would copy and install");
    // Without a terminal and a password, no method remains.
    assert_refused(
        &deploy_lab.bare(BOAT, &sshd).output().unwrap(),
        &["no password, because none was entered"],
    );

    // By the ssh-agent, and by the key file that OpenSSH would find.
    let socket = deploy_lab.path().join("agent");
    let log = deploy_lab.path().join("agent.log");
    let mut ssh_agent = Command::new("ssh-agent");
    let ssh_agent = Process::start(ssh_agent.arg("-D").arg("-a").arg(&socket), &log);
    eventually("the ssh-agent to listen", 20, || socket.exists());
    let _ = succeed_output(
        Command::new("ssh-add")
            .arg(sshd.key())
            .env("SSH_AUTH_SOCK", &socket),
    );
    let mut by_agent = deploy_lab.bare(BOAT, &sshd);
    by_agent.arg("--dry-run").env("SSH_AUTH_SOCK", &socket);
    assert_done(&by_agent.output().unwrap(), "would copy and install");
    drop(ssh_agent);
    fs::copy(sshd.key(), deploy_lab.home().join(".ssh/id_ed25519")).unwrap();
    assert_done(
        &deploy_lab.bare(BOAT, &sshd).arg("--dry-run").output().unwrap(),
        "would copy and install",
    );

    sshd.change_host_key();
    let accepted = sshd.fingerprint();
    let changed = by_password(&sshd, PASSWORD, &["--accept-host-key", &accepted]);
    assert_refused(
        &changed,
        &["has another host key", "known_hosts:1", "ssh-keygen -R"],
    );
}

#[test]
fn a_board_that_the_agent_does_not_fit_is_left_as_it_was() {
    let uname = "case $1 in -m) echo riscv64 ;; *) exec /usr/bin/uname \"$@\" ;; esac";
    let dpkg = "case $1 in --print-architecture) echo riscv64 ;; *) exec /usr/bin/dpkg \"$@\" ;; esac";
    let getconf = "echo glibc 2.27";
    // An ordinary user has no dpkg here: only the package's name has its architecture.
    let cases: [(Likeness<'_>, &[&str], &[&str]); 5] = [
        (
            Likeness {
                programs: &[("uname", uname), ("dpkg", dpkg)],
                ..Likeness::default()
            },
            &[],
            &["this board is riscv64, and the available packages are for"],
        ),
        (
            Likeness {
                programs: &[("getconf", getconf)],
                ..Likeness::default()
            },
            &[],
            &[
                "this board has glibc 2.27, and the agent needs 2.31",
                "flash JetPack 5",
            ],
        ),
        (
            Likeness {
                programs: &[("sudo", "exit 1")],
                ..Likeness::default()
            },
            &["--as", "system"],
            &["no dpkg or no systemd"],
        ),
        (
            Likeness {
                home: Some("size=4m"),
                ..Likeness::default()
            },
            &[],
            &["KiB free", "free space there"],
        ),
        (
            Likeness {
                home: Some("size=64m,ro"),
                ..Likeness::default()
            },
            &[],
            &[
                "the package cannot be written to the board",
                "Read-only file system",
            ],
        ),
    ];
    let deploy_lab = DeployLab::default();
    deploy_lab.pack_script("exit 3", "0.1.0");
    for (likeness, more, words) in cases {
        let Some(sshd) = Sshd::start(likeness) else { return };
        assert_refused(&deploy_lab.deploy(&sshd, more), words);
        if likeness.home.is_none() {
            assert_eq!(listing(&sshd.home()), "");
        }
    }
    // A disk that fills up although df shows enough space.
    let df = "printf 'Filesystem\\n/dev/x 1 1 99999999 1%% /\\n'";
    let Some(sshd) = Sshd::start(Likeness {
        programs: &[("df", df)],
        home: Some("size=64k"),
        ..Likeness::default()
    }) else {
        return;
    };
    let large = deploy_lab.path().join("large");
    let _ = succeed_output(Command::new("sh").arg("-c").arg(format!(
        "{{ printf '#!/bin/sh\\nexit 0\\n#'; head -c 300000 /dev/urandom; }} >{0}; chmod +x {0}",
        large.display()
    )));
    deploy_lab.pack(&large, "0.1.0");
    assert_refused(
        &deploy_lab.deploy(&sshd, &[]),
        &[
            "the package cannot be written to the board",
            "No space left on device",
        ],
    );
}

#[test]
fn a_link_that_is_lost_in_the_middle_leaves_nothing_half_done() {
    let Some(sshd) = Sshd::start(Likeness::default()) else {
        return;
    };
    let deploy_lab = DeployLab::default();
    let large = deploy_lab.path().join("large");
    let _ = succeed_output(Command::new("sh").arg("-c").arg(format!(
        "{{ printf '#!/bin/sh\\nexit 0\\n#'; head -c 3000000 /dev/urandom; }} >{0}; chmod +x {0}",
        large.display()
    )));
    deploy_lab.pack(&large, "0.1.0");
    let cut = cut_after(sshd.port, 1_000_000);
    let mut command = deploy_lab.command();
    command.arg(BOAT).arg(format!("{SAILOR}@127.0.0.1:{cut}"));
    command
        .args(["--accept-host-key", &sshd.fingerprint()])
        .arg("--identity")
        .arg(sshd.key());
    let lost = command.output().unwrap();
    assert_refused(
        &lost,
        &[
            "the link to the board was lost while copying the package",
            "run the same command again",
        ],
    );
    let left = listing(&sshd.home());
    assert!(
        !left.contains("regatta-agent.tar.gz\n") || left.contains(".regatta-agent.tar.gz.part"),
        "{left}"
    );
    assert!(!left.contains("bin/regatta-agent"), "{left}");
    // The same again over a stable link: the files of the first attempt do not matter.
    deploy_lab.pack_agent();
    assert_done(&deploy_lab.deploy(&sshd, &[]), "deployed, connected with");
    assert!(!listing(&sshd.home()).contains(".part"));
}

#[test]
fn a_link_that_is_lost_while_it_installs_ends_nothing_on_the_board() {
    // Unpacking waits for the test, so that the link is lost in the middle of the installation.
    let tar = "touch \"$HOME/unpacking\"; while [ ! -e \"$HOME/go\" ]; do sleep 0.05; done; exec /usr/bin/tar \"$@\"";
    let Some(sshd) = Sshd::start(Likeness {
        programs: &[("tar", tar)],
        ..Likeness::default()
    }) else {
        return;
    };
    let deploy_lab = DeployLab::default();
    deploy_lab.pack_agent();
    let (unpacking, go) = (sshd.home().join("unpacking"), sshd.home().join("go"));
    let cut = cut_when(sshd.port, unpacking.clone());
    let mut command = deploy_lab.command();
    command.arg(BOAT).arg(format!("{SAILOR}@127.0.0.1:{cut}"));
    command
        .args(["--accept-host-key", &sshd.fingerprint()])
        .arg("--identity")
        .arg(sshd.key());
    assert_refused(
        &command.output().unwrap(),
        &[
            "the link to the board was lost while installing",
            "run the same command again",
        ],
    );
    let program = sshd.home().join(".local/bin/regatta-agent");
    assert!(unpacking.exists() && !program.exists());
    // The connection is lost; the board finishes the installation by itself.
    fs::write(&go, "").unwrap();
    let copy = sshd.home().join(".cache/regatta/regatta-agent.tar.gz");
    eventually("the board to install by itself", 60, || {
        program.exists() && !copy.exists()
    });
    // The same command finds the result: nothing is copied or installed again.
    let again = deploy_lab.deploy(&sshd, &[]);
    assert_done(&again, "deployed, connected with");
    let printed = both(&again);
    assert!(
        !printed.contains("copying") && !printed.contains("installing"),
        "{printed}"
    );
}

/// Relays one connection to `port`, and cuts it as soon as the file exists.
fn cut_when(port: u16, file: PathBuf) -> u16 {
    cut_by(port, u64::MAX, move |near| {
        while !file.exists() {
            thread::sleep(std::time::Duration::from_millis(20));
        }
        let _ = near.shutdown(std::net::Shutdown::Both);
    })
}

/// Relays one connection to `port`, and cuts it after a number of bytes.
fn cut_after(port: u16, bytes: u64) -> u16 {
    cut_by(port, bytes, |_| {})
}

/// Relays one connection to `port`. Cuts it after a number of bytes, or when `end`, which gets the near side, ends it.
fn cut_by(port: u16, bytes: u64, end: impl FnOnce(&TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let here = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let (near, _) = listener.accept().unwrap();
        let far = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (mut back_from, mut back_to) = (far.try_clone().unwrap(), near.try_clone().unwrap());
        thread::spawn(move || std::io::copy(&mut back_from, &mut back_to));
        let watched = near.try_clone().unwrap();
        thread::spawn(move || end(&watched));
        let _ = std::io::copy(
            &mut near.try_clone().unwrap().take(bytes),
            &mut far.try_clone().unwrap(),
        );
        let _ = near.shutdown(std::net::Shutdown::Both);
        let _ = far.shutdown(std::net::Shutdown::Both);
    });
    here
}

#[test]
fn many_boards_at_once_some_through_a_jump_host() {
    let (Some(gate), Some(first), Some(second)) = (
        Sshd::start(Likeness::default()),
        Sshd::start(Likeness::default()),
        Sshd::start(Likeness::default()),
    ) else {
        return;
    };
    let deploy_lab = DeployLab::default();
    deploy_lab.pack_agent();
    // One key is accepted by all of them, as in a lab.
    for sshd in [&first, &second] {
        sshd.let_in(&gate.key());
    }
    let hosts = deploy_lab.path().join("fleet.toml");
    let board = |name: &str, port: u16, more: &str| {
        format!("[[device]]\nname = \"{name}\"\naddress = \"{SAILOR}@127.0.0.1:{port}\"\n{more}\n")
    };
    let jump = format!("jump = \"{SAILOR}@127.0.0.1:{}\"", gate.port);
    let nobody = regatta_tests::free_port();
    let text =
        board("boat-1", first.port, "") + &board("boat-2", second.port, &jump) + &board("wreck", nobody, "");
    fs::write(&hosts, text).unwrap();
    let mut command = deploy_lab.command();
    command
        .arg("--hosts")
        .arg(&hosts)
        .arg("--identity")
        .arg(gate.key())
        .args(["--coordinator", "127.0.0.1"]);
    for sshd in [&gate, &first, &second] {
        command.args(["--accept-host-key", &sshd.fingerprint()]);
    }
    let output = command.output().unwrap();
    let printed = both(&output);
    assert_eq!(output.status.code(), Some(3), "{printed}");
    for name in ["boat-1", "boat-2"] {
        let line = printed.lines().find(|line| {
            line.trim_start().starts_with(name) && line.contains(SAILOR) && line.contains("deployed")
        });
        assert!(line.is_some(), "{name} is missing in:\n{printed}");
    }
    assert!(
        printed.contains("wreck: FAILED") && printed.contains("cannot reach 127.0.0.1"),
        "{printed}"
    );
    assert!(second.home().join(".local/bin/regatta-agent").exists());
    assert!(
        !gate.home().join(".local").exists(),
        "the jump host is passed through and left alone"
    );
}

/// The state, number of attempts and last cause of each device of the newest upgrade, and its own state.
fn upgrade_shown(deploy_lab: &DeployLab, sshd: &Sshd) -> (String, Vec<String>) {
    let shown = deploy_lab.upgrade(sshd, &["--show", "--format", "json"]);
    assert!(shown.status.success(), "{}", both(&shown));
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    let devices = shown["devices"].as_array().unwrap().iter().map(|device| {
        let attempts = device["attempts"].as_array().unwrap();
        let causes: Vec<_> = attempts
            .iter()
            .map(|attempt| attempt["cause"].as_str().unwrap_or("-"))
            .collect();
        format!(
            "{} wave {} {}: {}",
            device["name"].as_str().unwrap(),
            device["wave"],
            device["state"].as_str().unwrap(),
            causes.join(" ")
        )
    });
    (shown["state"].as_str().unwrap().to_owned(), devices.collect())
}

#[test]
fn an_upgrade_goes_in_waves_stops_after_failures_and_continues() {
    let boards: Vec<Sshd> = std::iter::repeat_with(|| Sshd::start(Likeness::default()))
        .take(3)
        .flatten()
        .collect();
    let [first, second, third] = boards.as_slice() else {
        return;
    };
    let deploy_lab = DeployLab::default();
    deploy_lab.pack_agent();
    for (number, board) in boards.iter().enumerate() {
        // One key opens all of them, as in a lab.
        board.let_in(&first.key());
        let mut command = deploy_lab.bare(&format!("boat-{}", number + 1), board);
        command.arg("--identity").arg(first.key());
        command.args(["--accept-host-key", &board.fingerprint()]);
        assert_done(&command.output().unwrap(), "deployed, connected with");
    }
    let agent = |board: &Sshd| fs::read(board.home().join(".local/bin/regatta-agent")).unwrap();
    let old = agent(first);
    deploy_lab.pack_other_agent("0.2.0");
    let is_new = |board: &Sshd| agent(board) != old;

    // The command is killed while the first device, alone in its wave, is watched.
    let waves = ["--device", "all", "--waves", "1,2,100%", "--pause", "6s"];
    let log = deploy_lab.path().join("upgrade.log");
    let mut killed = Process::start(&mut deploy_lab.upgrade_command(first, &waves), &log);
    let connected = || fs::read_to_string(&log).unwrap().contains("boat-1: deployed");
    eventually("the first device to be upgraded", 60, connected);
    assert!(is_new(first) && !is_new(second) && !is_new(third));
    assert_refused(
        &deploy_lab.upgrade(first, &["--continue"]),
        &["another command (process"],
    );
    assert_eq!(upgrade_shown(&deploy_lab, first).0, "under way");
    killed.kill();
    let (state, devices) = upgrade_shown(&deploy_lab, first);
    assert_eq!(state, "its command ended in the middle");
    assert_eq!(
        devices,
        [
            "boat-1 wave 1 cut off: -",
            "boat-2 wave 2 waiting: ",
            "boat-3 wave 3 waiting: "
        ]
    );

    // Other packages are another upgrade.
    deploy_lab.pack_agent();
    let other = deploy_lab.upgrade(first, &["--continue"]);
    assert_eq!(other.status.code(), Some(2), "{}", both(&other));
    deploy_lab.pack_other_agent("0.2.0");

    // The second device cannot take the package, so the third one keeps the old agent.
    let cache = second.home().join(".cache");
    let kept = second.home().join("kept-cache");
    fs::rename(&cache, &kept).unwrap();
    fs::write(&cache, "").unwrap();
    assert_refused(
        &deploy_lab.upgrade(first, &["--continue"]),
        &["stopped in wave 2 of 3: 1 failed", "boat-2: FAILED", "not begun"],
    );
    assert!(is_new(first) && !is_new(second) && !is_new(third));
    let (state, devices) = upgrade_shown(&deploy_lab, first);
    assert_eq!(state, "stopped");
    assert_eq!(
        devices,
        [
            "boat-1 wave 1 upgraded: infrastructure -",
            "boat-2 wave 2 failed: device",
            "boat-3 wave 3 waiting: "
        ]
    );

    fs::remove_file(&cache).unwrap();
    fs::rename(&kept, &cache).unwrap();
    assert_done(&deploy_lab.upgrade(first, &["--continue"]), "deployed");
    assert!(is_new(second) && is_new(third));
    let (state, devices) = upgrade_shown(&deploy_lab, first);
    assert_eq!(state, "complete");
    assert_eq!(devices[2], "boat-3 wave 3 upgraded: -");
    let nothing_left = deploy_lab.upgrade(first, &["--continue"]);
    assert_eq!(nothing_left.status.code(), Some(2), "{}", both(&nothing_left));

    // Known runs are part of the next one.
    let files = ["asset", "add", "--benchmark", "digits"];
    let _ = succeed_output(deploy_lab.lab.regatta().args(files));
    assert_done(
        &deploy_lab.upgrade(first, &["--device", "boat-1", "--check"]),
        "nothing to do",
    );
    let log = deploy_lab
        .lab
        .regatta()
        .args(["device", "log", "boat-1"])
        .output();
    assert_done(&log.unwrap(), "check passed");
}
