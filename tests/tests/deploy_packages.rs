//! Tests that `regatta device deploy` finds or builds what a board needs: the package without `--package`, and the TensorRT shim. Also tests the
//! messages about everything that is missing. The boards are users of this machine behind a real sshd.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use regatta_test_requirements::program;
use regatta_tests::{
    deploy_lab::{BOAT, DeployLab, architecture},
    eventually, printed,
    sshd::{Likeness, Sshd},
    succeed_output,
};

const TRIPLE: &str = if cfg!(target_arch = "aarch64") {
    "aarch64-linux-gnu"
} else {
    "x86_64-linux-gnu"
};
/// A dpkg that reports TensorRT 11.4, whose headers are in the package registry.
const DPKG_WITH_TENSORRT: &str = "case \"$*\" in *libnvinfer*) echo 'ii 11.4.0.106-1+cuda13.0' ;; *) exec /usr/bin/dpkg-query \"$@\" ;; esac";

/// Asserts a command's exit code and parts of its output. Returns the complete output.
#[track_caller]
fn assert_printed(output: &Output, code: i32, texts: &[&str]) -> String {
    let text = printed(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    for part in texts {
        assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    }
    text
}

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .unwrap()
}

/// Writes an executable script and its directory.
fn script(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Copies TensorRT's headers into a directory, with the layout of JetPack.
fn jetpack_headers(directory: &Path) {
    let found = Command::new(checkout().join("crates/tensorrt/shim/headers.sh"))
        .arg("enterprise")
        .output();
    let found = String::from_utf8(succeed_output_of(found.unwrap()).stdout).unwrap();
    fs::create_dir_all(directory).unwrap();
    for entry in fs::read_dir(found.trim()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, directory.join(path.file_name().unwrap())).unwrap();
        }
    }
}

fn succeed_output_of(output: Output) -> Output {
    assert!(output.status.success(), "{}", printed(&output));
    output
}

/// Creates a directory that the board's user can read.
fn readable_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

#[test]
fn a_boards_missing_shim_is_compiled_with_its_own_headers_and_kept() {
    if program(&format!("{TRIPLE}-g++"), "g++").is_none() {
        return;
    }
    let headers = readable_directory();
    let place = format!("/usr/include/{TRIPLE}");
    let mounts = [(headers.path(), place.as_str())];
    let likeness = Likeness {
        programs: &[("dpkg-query", DPKG_WITH_TENSORRT)],
        mounts: &mounts,
        ..Likeness::default()
    };
    let Some(sshd) = Sshd::start(likeness) else { return };
    let deploy_lab = DeployLab::default();
    deploy_lab.pack_agent();
    let shim = sshd.home().join(".local/bin/libregatta_trt-11.4.0.so");

    // Without headers, the agent is deployed all the same, and a sentence names JetPack's packages.
    let without = deploy_lab.deploy(&sshd, &[]);
    assert_printed(
        &without,
        0,
        &[
            "deploying without TensorRT 11.4.0: this board does not have the headers of TensorRT 11.4.0",
            "sudo apt-get install libnvinfer-headers-dev libnvonnxparsers-dev, of version 11.4.0, then deploy again",
            "deployed, connected with",
        ],
    );
    assert!(!shim.exists());

    // The same without a compiler: there is none in the workstation's search path.
    jetpack_headers(headers.path());
    let deploy_with = |name: &str, value: &Path| {
        let mut command = deploy_lab.bare(BOAT, &sshd);
        command.arg("--identity").arg(sshd.key()).env(name, value);
        command.output().unwrap()
    };
    let no_compiler = deploy_with("PATH", Path::new("/nonexistent"));
    assert_printed(
        &no_compiler,
        0,
        &[
            &format!("{TRIPLE}-g++, which compiles the shim, is missing on this machine"),
            "here: sudo apt-get install g++",
            "nothing to do",
        ],
    );

    // A header that tries to embed a file of the workstation in the shim.
    let hostile = headers.path().join("NvHostile.h");
    fs::write(&hostile, "__asm__(\".incbin \\\"/etc/hostname\\\"\");\n").unwrap();
    let refused = deploy_lab.deploy(&sshd, &[]);
    assert_printed(
        &refused,
        0,
        &["NvHostile.h of the board is not a header of TensorRT: `__asm__("],
    );
    fs::remove_file(hostile).unwrap();

    let dry = deploy_lab.deploy(&sshd, &["--dry-run"]);
    let planned =
        format!("the shim for TensorRT 11.4.0 would be compiled first, with the headers in {place}");
    assert_printed(&dry, 0, &[&planned]);
    assert!(!deploy_lab.lab.workspace().join("shims").join("packages").exists());

    let made = deploy_lab.deploy(&sshd, &[]);
    assert_printed(
        &made,
        0,
        &[
            "compiling the shim for TensorRT 11.4.0",
            "deployed, connected with",
        ],
    );
    let bytes = fs::read(&shim).unwrap();
    assert!(bytes.starts_with(b"\x7fELF"));
    let again = deploy_lab.deploy(&sshd, &[]);
    let again = assert_printed(&again, 0, &["nothing to do"]);
    assert!(!again.contains("compiling"), "{again}");

    // The agent on the board finds the shim.
    let doctor = Command::new(sshd.home().join(".local/bin/regatta-agent"))
        .args(["doctor", "--json"])
        .output()
        .unwrap();
    assert!(printed(&doctor).contains("11.4.0"), "{}", printed(&doctor));

    // A version that does not start is removed together with its shim, and the previous version and its shim are restored.
    deploy_lab.pack_script("exit 3", "0.2.0");
    let bad = deploy_lab.deploy(&sshd, &[]);
    assert_printed(&bad, 3, &["the previous one runs again"]);
    assert_eq!(fs::read(&shim).unwrap(), bytes);
}

#[test]
fn an_unreachable_mirror_or_proxy_is_named_when_a_board_needs_an_older_c_library() {
    if program(&format!("{TRIPLE}-g++"), "g++").is_none() {
        return;
    }
    let headers = readable_directory();
    jetpack_headers(headers.path());
    let place = format!("/usr/include/{TRIPLE}");
    let Some(sshd) = Sshd::start(Likeness {
        programs: &[("dpkg-query", DPKG_WITH_TENSORRT), ("getconf", "echo glibc 2.31")],
        mounts: &[(headers.path(), &place)],
        ..Likeness::default()
    }) else {
        return;
    };
    let deploy_lab = DeployLab::default();
    deploy_lab.pack_agent();
    let deploy_with = |name: &str, value: &str| {
        let mut command = deploy_lab.command();
        command.arg(BOAT);
        deploy_lab.log_in(&mut command, &sshd);
        command
            .env(name, value)
            .env("XDG_CACHE_HOME", deploy_lab.path().join("cache"));
        command.output().unwrap()
    };
    assert_printed(
        &deploy_with("DEBIAN_MIRROR", "http://127.0.0.1:9/debian"),
        0,
        &[
            "a shim that is compiled here needs glibc 2.3",
            "Debian 11's could not be fetched: sysroot.sh: http://127.0.0.1:9/debian has no Debian 11",
            "set DEBIAN_MIRROR to another mirror",
            "deployed, connected with",
        ],
    );
    // A broken proxy is named in the message. The same command continues once it is repaired.
    assert_printed(
        &deploy_with("http_proxy", "http://127.0.0.1:9"),
        0,
        &[
            "or cannot be reached by the proxy http://127.0.0.1:9",
            "nothing to do",
        ],
    );
}

#[test]
fn packages_are_found_where_they_are_installed_built_or_kept() {
    let Some(sshd) = Sshd::start(Likeness::default()) else {
        return;
    };
    let deploy_lab = DeployLab::default();
    deploy_lab.pack_script("exit 3", "0.1.0");
    let elsewhere = deploy_lab.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let would_install =
        |version: &str| format!("would copy and install the archive, for this user, version {version}");
    let dry_run = |mut command: Command| command.arg("--dry-run").output().unwrap();

    // No package anywhere: the message says which file to copy to which directory.
    let none = dry_run(deploy_lab.without_package(&sshd, &elsewhere));
    let packages = deploy_lab.lab.workspace().join("packages");
    assert_printed(
        &none,
        3,
        &[
            &format!("there is no package of the agent for {}", architecture()),
            &format!("of the release to {}", packages.display()),
            &format!("./dist --only agent-{}", architecture()),
        ],
    );

    // A package in the workspace.
    fs::rename(deploy_lab.dist(), &packages).unwrap();
    let kept = dry_run(deploy_lab.without_package(&sshd, &elsewhere));
    assert_printed(&kept, 0, &[&would_install("0.1.0")]);

    // A package beside an installed program.
    deploy_lab.pack_script("exit 3", "0.1.1");
    fs::remove_dir_all(&packages).unwrap();
    let prefix = deploy_lab.path().join("prefix");
    fs::create_dir_all(prefix.join("share/regatta")).unwrap();
    fs::rename(deploy_lab.dist(), prefix.join("share/regatta/packages")).unwrap();
    let installed = deploy_lab.program("prefix/bin");
    let mut command = deploy_lab.of_user(Command::new(installed));
    command
        .current_dir(&elsewhere)
        .arg("--workspace")
        .arg(deploy_lab.lab.workspace());
    command.args(["device", "deploy", BOAT]);
    deploy_lab.log_in(&mut command, &sshd);
    assert_printed(&dry_run(command), 0, &[&would_install("0.1.1")]);

    // A package in the output directory of a checkout.
    deploy_lab.pack_script("exit 3", "0.1.2");
    let clone = deploy_lab.path().join("clone");
    script(&clone.join("agent/Cargo.toml"), "");
    script(
        &clone.join("dist"),
        "#!/bin/sh\necho 'dist: it was started'; exit 3\n",
    );
    fs::rename(deploy_lab.dist(), clone.join("dist-out")).unwrap();
    let built = dry_run(deploy_lab.without_package(&sshd, &clone.join("agent")));
    assert_printed(&built, 0, &[&would_install("0.1.2")]);
}

#[test]
fn a_missing_package_is_built_in_a_checkout() {
    let Some(sshd) = Sshd::start(Likeness::default()) else {
        return;
    };
    let deploy_lab = DeployLab::default();
    deploy_lab.pack_agent();
    let clone = deploy_lab.path().join("clone");
    script(&clone.join("agent/Cargo.toml"), "");
    // A fake of the real script, which takes minutes. It provides the requested package.
    script(
        &clone.join("dist"),
        &format!(
            "#!/bin/sh\n[ \"$1 $2 $3\" = '--only agent-{} --out' ] || {{ echo \"dist: not $*\" >&2; exit 2; }}\nmkdir -p \"$4\" && cp {}/* \"$4\"\n",
            architecture(),
            deploy_lab.dist().display()
        ),
    );
    // A dry run does not build anything, and prints the command.
    let dry = deploy_lab
        .without_package(&sshd, &clone)
        .arg("--dry-run")
        .output()
        .unwrap();
    let command = format!(
        "{}/dist --only agent-{} --out {0}/dist-out",
        clone.display(),
        architecture()
    );
    assert_printed(&dry, 3, &["there is no package of the agent for", &command]);
    assert!(!clone.join("dist-out").exists());
    let built = deploy_lab.without_package(&sshd, &clone).output().unwrap();
    assert_printed(
        &built,
        0,
        &[
            &format!("there is no package for {} yet: building one in", architecture()),
            "deployed, connected with",
        ],
    );
}

#[test]
fn a_workstation_without_a_cross_compiler_says_what_to_install() {
    let uname = "case $1 in -m) echo aarch64 ;; *) exec /usr/bin/uname \"$@\" ;; esac";
    let dpkg = "case $1 in --print-architecture) echo arm64 ;; *) exec /usr/bin/dpkg \"$@\" ;; esac";
    let Some(sshd) = Sshd::start(Likeness {
        programs: &[("uname", uname), ("dpkg", dpkg)],
        ..Likeness::default()
    }) else {
        return;
    };
    let deploy_lab = DeployLab::default();
    // A search path with everything that ./dist uses before it checks for compilers.
    let tools = deploy_lab.path().join("tools");
    fs::create_dir(&tools).unwrap();
    for tool in ["bash", "dirname", "git", "sed", "realpath", "cargo"] {
        let found = succeed_output(Command::new("sh").args(["-c", &format!("command -v {tool}")]));
        let found = PathBuf::from(String::from_utf8(found.stdout).unwrap().trim());
        std::os::unix::fs::symlink(found, tools.join(tool)).unwrap();
    }
    // A separate clone, so that packages from other builds are not found.
    let clone = deploy_lab.path().join("clone");
    fs::create_dir_all(clone.join("packaging")).unwrap();
    script(&clone.join("agent/Cargo.toml"), "");
    for file in ["dist", "packaging/archives.sh", "Cargo.toml"] {
        fs::copy(checkout().join(file), clone.join(file)).unwrap();
    }
    let mut command = deploy_lab.without_package(&sshd, &clone);
    let output = command.env("PATH", &tools).output().unwrap();
    assert_printed(
        &output,
        3,
        &[
            "there is no package of the agent for arm64: dist: aarch64-linux-gnu-g++ is missing",
            "apt-get install g++-aarch64-linux-gnu",
            "dist --only agent-arm64 --out",
        ],
    );
}

#[test]
fn missing_software_and_little_space_are_reported_and_do_not_end_the_deployment() {
    let head = "case \"$*\" in *nv_tegra_release) echo '# R36 (release), REVISION: 4.3, GCID: 1' ;; *) exec /usr/bin/head \"$@\" ;; esac";
    let df = "printf 'Filesystem 1024-blocks Used Available Capacity Mounted\\n/dev/x 9 9 3145728 9%% /\\n'";
    let Some(sshd) = Sshd::start(Likeness {
        programs: &[("head", head), ("df", df)],
        ..Likeness::default()
    }) else {
        return;
    };
    let deploy_lab = DeployLab::default();
    deploy_lab.pack_script("exit 3", "0.1.0");
    assert_printed(
        &deploy_lab.deploy(&sshd, &["--dry-run"]),
        0,
        &[
            "this Jetson has no TensorRT, so runs on its GPU and DLA are not possible; on the board: sudo apt-get install nvidia-jetpack",
            "has 3.0 GiB free, too little for the samples of most benchmarks; `scratch` in agent.toml",
            "would copy and install",
        ],
    );
}

#[test]
fn a_read_only_system_gets_the_agent_in_the_home() {
    let Some(sshd) = Sshd::start(Likeness {
        sudo: true,
        read_only_usr: true,
        ..Likeness::default()
    }) else {
        return;
    };
    let deploy_lab = DeployLab::default();
    deploy_lab.pack_script("exit 3", "0.1.0");
    assert_printed(
        &deploy_lab.deploy(&sshd, &["--as", "system", "--dry-run"]),
        3,
        &[
            "/usr is read-only on this board",
            "--as user installs into the login's home",
        ],
    );
    assert_printed(
        &deploy_lab.deploy(&sshd, &["--dry-run"]),
        0,
        &[
            "/usr is read-only on this board: for this user alone, then",
            "would copy and install the archive, for this user",
        ],
    );
}

#[test]
fn a_board_that_reboots_while_it_installs_is_deployed_by_the_same_command() {
    // Unpacking waits for the test, so that the board goes down during it.
    let tar = "touch \"$HOME/unpacking\"; while [ ! -e \"$HOME/go\" ]; do sleep 0.05; done; exec /usr/bin/tar \"$@\"";
    let likeness = Likeness {
        programs: &[("tar", tar)],
        ..Likeness::default()
    };
    let Some(mut sshd) = Sshd::start(likeness) else {
        return;
    };
    let deploy_lab = DeployLab::default();
    deploy_lab.pack_agent();
    let mut command = deploy_lab.bare(BOAT, &sshd);
    command
        .arg("--identity")
        .arg(sshd.key())
        .args(["--accept-host-key", &sshd.fingerprint()]);
    let deployment = std::thread::spawn(move || command.output().unwrap());
    let unpacking = sshd.home().join("unpacking");
    eventually("the board to install", 60, || unpacking.exists());
    sshd.reboot(likeness);
    assert_printed(
        &deployment.join().unwrap(),
        3,
        &[
            "the link to the board was lost while installing",
            "run the same command again",
        ],
    );
    assert!(!sshd.home().join(".local/bin/regatta-agent").exists());
    fs::write(sshd.home().join("go"), "").unwrap();
    assert_printed(&deploy_lab.deploy(&sshd, &[]), 0, &["deployed, connected with"]);
}
