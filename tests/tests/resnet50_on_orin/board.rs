//! The boards of the tests: a user of this machine behind a real sshd whose device tree, CUDA driver and TensorRT are fakes. The environment may name
//! an AGX Orin instead (`tests/emulated-boards/board-submission.sh`).

use std::{env, fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use regatta_test_support::{fake_tensorrt::FakeTensorrt, official_loadgen};
use regatta_tests::{
    agent,
    deploy_lab::architecture,
    sshd::{Likeness, SAILOR, Sshd},
    succeed_output,
};

/// The official LoadGen of the package registry.
pub(crate) const LOADGEN: &str = "6.0.17";

/// A kind of board, with the JetPack of the test.
pub(crate) struct BoardModel {
    /// Files of the device tree: path and content.
    device_tree: &'static [(&'static str, &'static str)],
    /// TensorRT as Debian's package database of JetPack has it.
    tensorrt: &'static str,
    /// The file name of TensorRT's library.
    library: &'static str,
    /// The version of the shim.
    shim: &'static str,
    /// The version as the fake of the library reports it.
    reported: &'static str,
}

/// An AGX Orin 64 GB with JetPack 5.1.
pub(crate) const AGX_ORIN: BoardModel = BoardModel {
    device_tree: &[
        ("model", "NVIDIA Orin Jetson-Small Developer Kit\0"),
        (
            "compatible",
            "nvidia,p3737-0000+p3701-0005\0nvidia,tegra23x\0nvidia,tegra234\0",
        ),
        ("host1x@13e00000/nvdla0@15880000/status", "okay\0"),
        ("host1x@13e00000/nvdla1@158c0000/status", "okay\0"),
    ],
    tensorrt: "8.5.2-1+cuda11.4",
    library: "libnvinfer.so.8",
    shim: "8.5.2",
    reported: "8502",
};

/// A Xavier NX with JetPack 5.1.
pub(crate) const XAVIER_NX: BoardModel = BoardModel {
    device_tree: &[
        ("model", "NVIDIA Jetson Xavier NX Developer Kit\0"),
        ("compatible", "nvidia,p3509-0000+p3668-0003\0nvidia,tegra194\0"),
    ],
    ..AGX_ORIN
};

/// An AGX Thor with JetPack 7.
pub(crate) const AGX_THOR: BoardModel = BoardModel {
    device_tree: &[
        ("model", "NVIDIA Jetson AGX Thor Developer Kit\0"),
        (
            "compatible",
            "nvidia,p4071-0000+p3834-0008\0nvidia,p3834-0008\0nvidia,tegra264\0",
        ),
    ],
    tensorrt: "10.13.3.9-1+cuda13.0",
    library: "libnvinfer.so.10",
    shim: "10.13.3",
    reported: "101303",
};

/// What the commands need to know of a board.
pub(crate) struct Board {
    /// `USER@HOST:PORT`.
    pub(crate) login: String,
    /// Flags of `device deploy` with which it asks nothing.
    pub(crate) flags: String,
    /// The password of sudo, if it asks for one.
    pub(crate) password: Option<String>,
    /// Kept until the test ends.
    _local: Option<LocalBoard>,
}

struct LocalBoard {
    _sshd: Sshd,
    _fakes: FakeTensorrt,
    _firmware: tempfile::TempDir,
}

impl Board {
    /// Starts an AGX Orin, or returns the one that the environment names, and puts packages of the agent for it into a directory. Records a skipped
    /// test when this machine can have no board, or no official LoadGen.
    pub(crate) fn start_orin(packages: &Path) -> Option<Self> {
        let named = |name: &str| env::var(format!("REGATTA_BOARD_{name}"));
        let Ok(login) = named("LOGIN") else {
            return Self::start(&AGX_ORIN, packages);
        };
        let _ = succeed_output(
            Command::new("cp")
                .arg("-r")
                .arg(named("PACKAGES").unwrap())
                .arg(packages),
        );
        Some(Self {
            login,
            flags: format!(
                "--accept-host-key {} --password-stdin",
                named("FINGERPRINT").unwrap()
            ),
            password: named("PASSWORD").ok(),
            _local: None,
        })
    }

    /// Starts a board as [`Self::start_orin`], on this machine.
    pub(crate) fn start(model: &BoardModel, packages: &Path) -> Option<Self> {
        let plugin = official_loadgen::plugin_file(LOADGEN)?;
        let fakes = FakeTensorrt::new();
        fakes.become_version(model.library, &[model.shim]);
        let firmware = device_tree(model);
        let directory = fakes.cuda();
        // The board's user must be able to read them.
        readable(directory.parent().unwrap());
        readable(firmware.path());
        let environment = format!(
            "LD_LIBRARY_PATH={}:{} FAKE_TRT_COMPUTES=1 FAKE_TRT_VERSION={}",
            directory.display(),
            fakes.libraries().display(),
            model.reported
        );
        let dpkg = format!(
            "case \"$*\" in *libnvinfer*) echo 'ii {}' ;; *) exec /usr/bin/dpkg-query \"$@\" ;; esac",
            model.tensorrt
        );
        let sshd = Sshd::start(Likeness {
            programs: &[("dpkg-query", &dpkg)],
            mounts: &[(firmware.path(), "/sys/firmware")],
            environment: &environment,
            ..Likeness::default()
        })?;
        pack_agent(packages, &fakes.shims(), &plugin);
        Some(Self {
            login: format!("{SAILOR}@127.0.0.1:{}", sshd.port),
            flags: format!(
                "--identity {} --accept-host-key {}",
                sshd.key().display(),
                sshd.fingerprint()
            ),
            password: None,
            _local: Some(LocalBoard {
                _sshd: sshd,
                _fakes: fakes,
                _firmware: firmware,
            }),
        })
    }
}

fn readable(directory: &Path) {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Writes a directory that is mounted at /sys/firmware.
fn device_tree(model: &BoardModel) -> tempfile::TempDir {
    let firmware = tempfile::tempdir().unwrap();
    for (path, content) in model.device_tree {
        let file = firmware.path().join("devicetree/base").join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }
    firmware
}

/// Packs the agent of the tests with TensorRT's fake shim and the official LoadGen, as `./dist` packs the released one.
fn pack_agent(packages: &Path, shims: &Path, plugin: &Path) {
    let parts = tempfile::tempdir().unwrap();
    let stripped = parts.path().join("regatta-agent");
    let _ = succeed_output(Command::new("strip").arg("-o").arg(&stripped).arg(agent()));
    let plugins = parts.path().join("plugins");
    fs::create_dir(&plugins).unwrap();
    for file in [plugin.to_owned(), plugin.with_extension("json")] {
        fs::copy(&file, plugins.join(file.file_name().unwrap())).unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/package.sh");
    let mut pack = Command::new(script);
    pack.args(["--arch", architecture(), "--level", "1", "--binary"])
        .arg(&stripped);
    pack.arg("--shims").arg(shims).arg("--plugins").arg(&plugins);
    let _ = succeed_output(pack.arg("--out").arg(packages));
}
