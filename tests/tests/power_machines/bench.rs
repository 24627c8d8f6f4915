//! A lab with a director and a device behind real sshds, its meters, and its sessions. Faults are injected elsewhere.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use regatta_tests::{
    Broker, Lab, Process, eventually,
    power_sessions::{add_meter, id, json, processes, run_session, sessions_of, write_simulated_ptd},
    printed, regatta,
    sshd::{Likeness, SAILOR, Sshd},
    succeed_output,
};
use serde_json::Value;

/// The last round to which somebody submitted power results, and whose official checker is one program.
pub(crate) const POWER_ROUND: &str = "v5.1";

/// The name of a file that the device's SFTP server sends as `../../evil`, which has the same length.
pub(crate) const SENT_AS_FOREIGN: &str = "evil-name-";
/// That server: Debian's, with the name replaced in what it sends.
const SFTP: &str = "exec python3 -c '\
import os, subprocess
server = subprocess.Popen([\"/usr/lib/openssh/sftp-server\"], stdout=subprocess.PIPE)
for sent in iter(lambda: os.read(server.stdout.fileno(), 1 << 20), b\"\"):
    sent = sent.replace(b\"evil-name-\", b\"../../evil\")
    while sent:
        sent = sent[os.write(1, sent):]
'";

/// A lab with a director and a device behind sshds.
pub(crate) struct Bench {
    pub(crate) lab: Lab,
    pub(crate) director: Sshd,
    pub(crate) device: Sshd,
    pub(crate) power_dev: PathBuf,
    pub(crate) home: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new(power_dev: &Path) -> Option<Self> {
        let likeness = Likeness {
            config: "Subsystem sftp internal-sftp\nMaxStartups 100\n",
            ..Likeness::default()
        };
        let foreign = Likeness {
            config: "Subsystem sftp sftp-of-a-device\nMaxStartups 100\n",
            programs: &[("sftp-of-a-device", SFTP)],
            ..Likeness::default()
        };
        let (director, device) = (Sshd::start(likeness)?, Sshd::start(foreign)?);
        for machine in [&director, &device] {
            let copy = machine.home().join("power-dev");
            let _ = succeed_output(Command::new("cp").arg("-r").arg(power_dev).arg(&copy));
            let _ = succeed_output(Command::new("chmod").args(["-R", "a+rX"]).arg(&copy));
        }
        let program = director.home().join("regatta");
        let _ = succeed_output(Command::new("strip").arg("-o").arg(&program).arg(regatta()));
        let mut lab = Lab::new(Broker::Embedded)?;
        lab.start_coordinator();
        lab.start_device();
        lab.wait_for_device();
        Some(Self {
            lab,
            director,
            device,
            power_dev: power_dev.to_owned(),
            home: tempfile::tempdir().expect("a temporary directory"),
        })
    }

    /// A command of a user with a home of its own.
    pub(crate) fn regatta(&self) -> Command {
        let mut command = self.lab.regatta();
        command
            .env("HOME", self.home.path())
            .env_remove("SSH_AUTH_SOCK")
            .stdin(Stdio::null());
        command
    }

    /// Adds a meter of the director, which is reached by this port, and a device of the same name: a session has both for itself.
    pub(crate) fn add_meter(&self, name: &str, port: u16, options: &str) {
        self.lab.add_device(name);
        let program = self.director.home().join(format!("ptd-{name}"));
        write_simulated_ptd(&program, &self.director.home().join("regatta"), options);
        let power_dev = self.director.home().join("power-dev");
        let added = add_meter(&mut self.regatta(), name, &power_dev, &program)
            .args(["--director", &format!("{SAILOR}@127.0.0.1:{port}")])
            .arg("--checker")
            .arg(&self.power_dev)
            .output()
            .expect("regatta starts");
        assert!(added.status.success(), "{}", printed(&added));
    }

    /// Makes a session, which succeeds, and returns its record and all that was printed.
    pub(crate) fn complete_session(&self, meter: &str) -> (Value, String) {
        let mut command = self.session(meter);
        let output = command
            .args(["--format", "json"])
            .output()
            .expect("regatta starts");
        assert!(output.status.success(), "{}", printed(&output));
        (json(&output)["sessions"][0].clone(), printed(&output))
    }

    pub(crate) fn session(&self, meter: &str) -> Command {
        self.session_through(meter, self.device.port)
    }

    /// A session whose device is reached by this port.
    pub(crate) fn session_through(&self, meter: &str, port: u16) -> Command {
        self.session_of(meter, meter, port)
    }

    /// A session of a device that is reached by this port.
    pub(crate) fn session_of(&self, meter: &str, device: &str, port: u16) -> Command {
        let mut command = self.regatta();
        run_session(&mut command, meter).args(["--round", POWER_ROUND, "--device", device]);
        command.args(["--ssh", &format!("{SAILOR}@127.0.0.1:{port}")]);
        command
            .arg("--device-power-dev")
            .arg(self.device.home().join("power-dev"));
        for machine in [&self.director, &self.device] {
            command.arg("--identity").arg(machine.key());
            command.args(["--accept-host-key", &machine.fingerprint()]);
        }
        command
    }

    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let output = self
            .regatta()
            .args(words)
            .args(["--format", "json"])
            .output()
            .expect("regatta starts");
        json(&output)
    }

    /// The newest session with a meter.
    pub(crate) fn newest(&self, meter: &str) -> Option<Value> {
        let list = self.json(&["power", "list"]);
        sessions_of(&list, meter).into_iter().next()
    }

    /// Starts a session, and returns it with its id once the ranging run is under way.
    pub(crate) fn begin(&self, meter: &str) -> (Process, String) {
        self.begin_through(meter, self.device.port)
    }

    /// As [`Self::begin`], with a device that is reached by this port.
    pub(crate) fn begin_through(&self, meter: &str, port: u16) -> (Process, String) {
        self.begin_of(meter, meter, port)
    }

    /// As [`Self::begin_through`], with another device than the meter's.
    pub(crate) fn begin_of(&self, meter: &str, device: &str, port: u16) -> (Process, String) {
        let log = self.lab.workspace().join(format!("{meter}.log"));
        let mut process = Process::start(&mut self.session_of(meter, device, port), &log);
        eventually("the ranging run to be requested", 90, || {
            assert!(process.is_running(), "{}", process.output());
            self.newest(meter).is_some_and(|row| row["ranging"].is_string())
        });
        let id = id(&self.newest(meter).expect("a session"));
        (process, id)
    }

    /// Checks that a session has ended with this reason within the time that the documentation promises, and left no process.
    pub(crate) fn expect_failure(&self, meter: &str, process: &mut Process, id: &str, reason: &str) {
        let begun = Instant::now();
        eventually("the session to end", 100, || !process.is_running());
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{meter}: {:?}",
            begun.elapsed()
        );
        let row = self.newest(meter).expect("a session");
        assert!(
            row["reason"].as_str().is_some_and(|words| words.contains(reason)),
            "{meter}: {row}\n{}",
            process.output()
        );
        self.expect_no_process(id);
    }

    pub(crate) fn expect_no_process(&self, id: &str) {
        eventually("every process of the session to end", 60, || {
            processes(|line| line.contains(id)).is_empty()
        });
    }
}
