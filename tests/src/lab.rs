//! A lab on loopback: a workspace with `regatta serve`, a device directory with `regatta-agent serve`, and a broker. It is either
//! unencrypted ([`Lab::new`]), or has keys, enrollment and TLS as a user's lab ([`Lab::secure`]).

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::Mutex,
};

use sha2::{Digest as _, Sha256};

use crate::{Mosquitto, Process, agent, eventually, free_port, regatta};

/// The broker of a lab.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broker {
    /// The broker in `regatta serve`.
    Embedded,
    /// Debian's mosquitto.
    Mosquitto,
}

/// The name of a lab's device.
pub const DEVICE: &str = "boat";

/// A running lab. Dropping it ends its processes and removes its files.
pub struct Lab {
    is_secure: bool,
    /// The broker's port on loopback.
    pub port: u16,
    /// The broker, if it is a separate process.
    pub mosquitto: Option<Mosquitto>,
    /// `regatta serve`, while it runs.
    pub coordinator: Option<Process>,
    /// `regatta-agent serve`, while it runs.
    pub device: Option<Process>,
    /// Further devices of an unencrypted lab.
    more_devices: Mutex<Vec<Process>>,
    /// Words before the coordinator's command, for example to set its CPU or network namespace.
    pub coordinator_prefix: Vec<String>,
    /// Words before the device's command.
    pub device_prefix: Vec<String>,
    /// Dropped last, because a failed test prints the logs in it.
    directory: tempfile::TempDir,
}

impl Lab {
    /// Creates a lab and starts the broker. The test starts coordinator and device. Returns `None` and prints the reason when the broker
    /// is not installed.
    ///
    /// # Panics
    /// Panics when the directories cannot be written.
    #[must_use]
    pub fn new(broker: Broker) -> Option<Self> {
        Self::plain_in(&std::env::temp_dir(), broker)
    }

    /// Does the same as [`Self::new`] below a given directory.
    ///
    /// # Panics
    /// Panics when the directories cannot be written.
    #[must_use]
    pub fn plain_in(parent: &Path, broker: Broker) -> Option<Self> {
        let directory = tempfile::tempdir_in(parent).expect("a temporary directory");
        let (mosquitto, port) = match broker {
            Broker::Embedded => (None, free_port()),
            Broker::Mosquitto => {
                let mosquitto = Mosquitto::start_in(directory.path())?;
                let port = mosquitto.port;
                (Some(mosquitto), port)
            }
        };
        let lab = Self {
            directory,
            is_secure: false,
            port,
            mosquitto,
            coordinator: None,
            device: None,
            more_devices: Mutex::default(),
            coordinator_prefix: Vec::new(),
            device_prefix: Vec::new(),
        };
        let address = match broker {
            Broker::Embedded => format!("listen = \"127.0.0.1:{port}\"\n"),
            Broker::Mosquitto => format!("broker = \"mqtt://127.0.0.1:{port}\"\n"),
        };
        fs::create_dir_all(lab.workspace()).expect("a directory of the lab");
        let settings = format!("schema = 1\nscratch = \"{}\"\n{address}", lab.scratch().display());
        fs::write(lab.workspace().join("regatta.toml"), settings).expect("regatta.toml");
        lab.lay_out_device(&format!("broker = \"mqtt://127.0.0.1:{port}\"\n"));
        lab.prepare_scratch();
        Some(lab)
    }

    /// Creates a lab with `regatta init` and TLS. The device enrolls with a token when it is first started. mosquitto uses the
    /// configuration of `regatta init`.
    ///
    /// # Panics
    /// Panics when the directories cannot be written.
    #[must_use]
    pub fn secure(broker: Broker) -> Option<Self> {
        Self::secure_in(&std::env::temp_dir(), broker, "127.0.0.1")
    }

    /// Does the same as [`Self::secure`] below a given directory, with a given coordinator address.
    ///
    /// # Panics
    /// Panics when the directories cannot be written.
    #[must_use]
    pub fn secure_in(parent: &Path, broker: Broker, host: &str) -> Option<Self> {
        let directory = tempfile::tempdir_in(parent).expect("a temporary directory");
        let port = free_port();
        let mut lab = Self {
            directory,
            is_secure: true,
            port,
            mosquitto: None,
            coordinator: None,
            device: None,
            more_devices: Mutex::default(),
            coordinator_prefix: Vec::new(),
            device_prefix: Vec::new(),
        };
        let mut init = lab.regatta();
        init.args(["init", "--host", host])
            .arg(format!("--listen={host}:{port}"))
            .arg(format!("--enroll-listen={host}:{}", free_port()))
            .arg(format!("--assets-listen={host}:{}", free_port()));
        if broker == Broker::Mosquitto {
            init.args(["--broker", "mosquitto"]);
        }
        succeed(&mut init);
        let config = lab.workspace().join("regatta.toml");
        let settings = fs::read_to_string(&config).expect("regatta.toml");
        let settings = format!("{settings}scratch = \"{}\"\n", lab.scratch().display());
        fs::write(&config, settings).expect("regatta.toml");
        if broker == Broker::Mosquitto {
            lab.mosquitto = Some(Mosquitto::start_with(&lab.workspace().join("mosquitto"), port)?);
        }
        lab.lay_out_device("");
        lab.prepare_scratch();
        Some(lab)
    }

    fn lay_out_device(&self, broker: &str) {
        self.lay_out(&self.device_directory(), DEVICE, broker);
    }

    fn lay_out(&self, directory: &Path, name: &str, broker: &str) {
        fs::create_dir_all(directory).expect("a directory of the lab");
        let settings = format!(
            "name = \"{name}\"\nstate_dir = \"state\"\nscratch = \"{}\"\n{broker}min_free_mib = 1\n",
            self.scratch().display()
        );
        fs::write(directory.join("agent.toml"), settings).expect("agent.toml");
    }

    /// Starts another device of an unencrypted lab, and waits until the coordinator's store has it. It runs until the lab is dropped.
    ///
    /// # Panics
    /// Panics when the device does not connect.
    pub fn add_device(&self, name: &str) {
        let directory = self.directory.path().join(format!("device-{name}"));
        self.lay_out(
            &directory,
            name,
            &format!("broker = \"mqtt://127.0.0.1:{}\"\n", self.port),
        );
        let mut command = prefixed(&self.device_prefix, &agent());
        command
            .args(["serve", "--config", "agent.toml"])
            .current_dir(&directory);
        let process = Process::start(
            &mut command,
            &self.directory.path().join(format!("device-{name}.log")),
        );
        self.more_devices.lock().expect("no panic").push(process);
        self.wait_for_device_named(name);
    }

    fn prepare_scratch(&self) {
        fs::create_dir_all(self.scratch().join("models/digits")).expect("a directory of the lab");
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../datasets/digits");
        fs::copy(
            data.join("digits.onnx"),
            self.scratch().join("models/digits/digits.onnx"),
        )
        .expect("the model");
        let mut prepare = self.regatta();
        prepare
            .arg("prep")
            .arg("digits")
            .arg("--data")
            .arg(&data)
            .arg("--output")
            .arg(self.scratch());
        succeed(&mut prepare);
    }

    /// Returns the coordinator's workspace.
    #[must_use]
    pub fn workspace(&self) -> PathBuf {
        self.directory.path().join("workspace")
    }

    /// Returns the device's directory, with its configuration and `state/`.
    #[must_use]
    pub fn device_directory(&self) -> PathBuf {
        self.directory.path().join("device")
    }

    /// Returns the directory of models and data.
    #[must_use]
    pub fn scratch(&self) -> PathBuf {
        self.directory.path().join("scratch")
    }

    /// Returns a `regatta` command in the lab's workspace.
    #[must_use]
    pub fn regatta(&self) -> Command {
        self.regatta_behind(&[])
    }

    fn regatta_behind(&self, prefix: &[String]) -> Command {
        let mut command = prefixed(prefix, &regatta());
        command
            .arg("--workspace")
            .arg(self.workspace())
            .current_dir(self.directory.path());
        command
    }

    /// Returns the directory of the device's key, enrollment and runs.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.device_directory().join("state")
    }

    /// Starts `regatta serve`.
    pub fn start_coordinator(&mut self) {
        let log = self.directory.path().join("coordinator.log");
        let mut command = self.regatta_behind(&self.coordinator_prefix);
        command.arg("serve").env("REGATTA_LOG", "debug");
        self.coordinator = Some(Process::start(&mut command, &log));
    }

    /// Issues a token for a device of this name.
    ///
    /// # Panics
    /// Panics when the coordinator issues none.
    #[must_use]
    pub fn token(&self, name: &str) -> String {
        let added = succeed_output(self.regatta().args(["device", "add", name, "--format", "json"]));
        let added: serde_json::Value = serde_json::from_slice(&added.stdout).expect("device add prints JSON");
        added["token"].as_str().expect("a token").to_owned()
    }

    /// Returns an agent command in the device's directory.
    #[must_use]
    pub fn agent(&self, command: &str) -> Command {
        let mut agent = prefixed(&self.device_prefix, &agent());
        agent
            .args([command, "--config", "agent.toml"])
            .current_dir(self.device_directory());
        agent
    }

    /// Enrolls the device of a secure lab. The coordinator must be running.
    ///
    /// # Panics
    /// Panics when the enrollment does not succeed within 20 s.
    pub fn enroll_device(&self) {
        let token = self.token(DEVICE);
        eventually("the device to enroll", 20, || {
            let enrolled = self
                .agent("enroll")
                .arg(&token)
                .output()
                .expect("the agent starts");
            enrolled.status.success()
        });
    }

    /// Starts `regatta-agent serve`. In a secure lab, enrolls the device first if needed.
    pub fn start_device(&mut self) {
        if self.is_secure && !self.device_directory().join("state/enrollment.json").exists() {
            self.enroll_device();
        }
        self.start_unenrolled_device();
    }

    /// Starts `regatta-agent serve` without enrolling the device.
    pub fn start_unenrolled_device(&mut self) {
        let mut command = self.agent("serve");
        self.device = Some(Process::start(&mut command, &self.device_log()));
    }

    /// Returns the path of the device's log.
    #[must_use]
    pub fn device_log(&self) -> PathBuf {
        self.directory.path().join("device.log")
    }

    /// Waits until the coordinator's store has the device.
    ///
    /// # Panics
    /// Panics when that takes more than 20 s.
    pub fn wait_for_device(&self) {
        self.wait_for_device_named(DEVICE);
    }

    fn wait_for_device_named(&self, name: &str) {
        let name = format!("\"name\": \"{name}\"");
        eventually("the device to say hello", 20, || {
            let output = self
                .regatta()
                .args(["device", "list", "--format", "json"])
                .output()
                .expect("regatta runs");
            String::from_utf8_lossy(&output.stdout).contains(&name)
        });
    }

    /// Returns the SHA-256 of every file of a run, on the coordinator's and on the device's disk.
    #[must_use]
    pub fn hashes(&self, run: &str) -> [BTreeMap<String, String>; 2] {
        [self.workspace(), self.device_directory().join("state")]
            .map(|side| hashes_below(&side.join("runs").join(run).join("files")))
    }
}

/// Returns a command for a program after other words, for example `ip netns exec NAME`.
#[must_use]
pub fn prefixed(prefix: &[String], program: &Path) -> Command {
    let Some((first, rest)) = prefix.split_first() else {
        return Command::new(program);
    };
    let mut command = Command::new(first);
    command.args(rest).arg(program);
    command
}

/// Runs a command and returns its output.
///
/// # Panics
/// Panics with the command's output when the command fails.
#[must_use]
pub fn succeed_output(command: &mut Command) -> Output {
    let output = command.output().expect("the command starts");
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

fn succeed(command: &mut Command) {
    let _ = succeed_output(command);
}

fn hashes_below(directory: &Path) -> BTreeMap<String, String> {
    let Ok(entries) = fs::read_dir(directory) else {
        return BTreeMap::new();
    };
    let hash = |path: &Path| {
        let digest = Sha256::digest(fs::read(path).expect("a file of a run reads"));
        digest
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    entries
        .map(|entry| entry.expect("a directory reads"))
        .map(|entry| {
            (
                entry.file_name().to_string_lossy().into_owned(),
                hash(&entry.path()),
            )
        })
        .collect()
}
