//! A lab of power sessions: coordinator, agent, and a director and a device behind sshds, each on a disk and behind a wire of its own.
//! Sessions are made and judged elsewhere.

use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, ensure};
use regatta_power::ntp;
use regatta_tests::{
    Broker, Lab,
    faults::{
        LAB_ROOT,
        disk::LabDisk,
        write_log::{Content, WriteLog},
    },
    free_port, power_dev,
    power_sessions::{run_session, set_python_clock, write_python, write_simulated_ptd},
    printed, shell,
    sshd::{Likeness, SAILOR, Sshd},
    wire::Wire,
};
use serde_json::Value;

use crate::{
    losses::LabHistory,
    plan::{Kind, SessionFault, Side},
    session_writes::recognise,
};

/// The round whose rules apply: the last one with submitted power results.
pub(crate) const ROUND: &str = "v5.1";
/// The mount points of the disks in the lab.
pub(crate) const WORKSPACE: &str = "workspace";
pub(crate) const DIRECTOR: &str = "director";
pub(crate) const DEVICE: &str = "device";
/// The program that every user may execute.
const REGATTA: &str = "regatta";
/// The size of each disk in MiB: room for the sessions of a lab, with the free space that the checks before a session need.
const DISK_MIB: u64 = 700;
/// sshd's configuration of both machines.
const SSHD: Likeness<'_> = Likeness {
    mounts: &[],
    environment: "",
    read_only_usr: false,
    config: "Subsystem sftp internal-sftp\nMaxStartups 100\n",
    shell: None,
    programs: &[],
    home: None,
    sudo: false,
};

/// The waits of the official programs around each run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settle {
    /// 10 s.
    Official,
    /// 2 s, which makes room for more faults.
    Short,
}

impl Settle {
    /// Returns the seconds of each wait, where it is not the official one.
    const fn seconds(self) -> Option<u32> {
        match self {
            Self::Official => None,
            Self::Short => Some(2),
        }
    }
}

/// A machine behind an sshd.
pub(crate) struct Machine {
    pub(crate) sshd: Sshd,
    pub(crate) wire: Wire,
    pub(crate) disk: LabDisk,
}

impl Machine {
    fn new(root: &Path, power_dev: &Path, settle: Settle) -> anyhow::Result<Self> {
        let disk = LabDisk::mount(root, DISK_MIB)?;
        let sshd = Sshd::start_below(root, SSHD).context("sshd is needed")?;
        copy(power_dev, &sshd.home().join("power-dev"))?;
        let machine = Self {
            wire: Wire::to(sshd.port),
            sshd,
            disk,
        };
        write_python(&machine.sshd.home(), settle.seconds());
        Ok(machine)
    }

    pub(crate) fn power_dev(&self) -> PathBuf {
        self.sshd.home().join("power-dev")
    }

    /// Returns the machine's Python, with a clock that can be set.
    pub(crate) fn python(&self) -> PathBuf {
        self.sshd.home().join("python")
    }

    /// Sets the clock to an offset in seconds.
    pub(crate) fn set_clock(&self, offset: i64) {
        set_python_clock(&self.sshd.home(), offset as f64);
    }

    fn login(&self) -> String {
        format!("{SAILOR}@127.0.0.1:{}", self.wire.port)
    }
}

pub(crate) struct PowerLab {
    pub(crate) lab: Lab,
    pub(crate) disk: LabDisk,
    pub(crate) director: Machine,
    pub(crate) device: Machine,
    /// The copy of the coordinator's machine.
    pub(crate) power_dev: PathBuf,
    pub(crate) settle: Settle,
    meters: usize,
    /// The files of all ended sessions.
    pub(crate) kept: BTreeMap<String, Content>,
    /// What was written on all disks.
    pub(crate) write_log: WriteLog,
    pub(crate) history: LabHistory,
}

/// A meter that was added for one session.
pub(crate) struct Meter {
    pub(crate) name: String,
    pub(crate) ptd: PathBuf,
    pub(crate) port: u16,
}

impl PowerLab {
    pub(crate) fn set_up(settle: Settle) -> anyhow::Result<Self> {
        ntp::answer_requests(SocketAddr::from(([127, 0, 0, 1], ntp::PORT)))?;
        let official = power_dev().context("the official power programs are needed")?;
        place_regatta()?;
        let disk = LabDisk::mount(&place(WORKSPACE), DISK_MIB)?;
        let power_dev = place(WORKSPACE).join("power-dev");
        copy(&official, &power_dev)?;
        write_python(&place(WORKSPACE), settle.seconds());
        let mut lab = Lab::plain_in(&place(WORKSPACE), Broker::Embedded).context("a lab")?;
        let director = Machine::new(&place(DIRECTOR), &official, settle)?;
        let device = Machine::new(&place(DEVICE), &official, settle)?;
        let runs = lab.state().join("runs");
        let write_log = WriteLog::begin(
            &[disk.root(), director.disk.root(), device.disk.root()],
            move |path, command_line| recognise(&runs, path, command_line),
        )?;
        lab.start_coordinator();
        lab.start_device();
        lab.wait_for_device();
        Ok(Self {
            lab,
            disk,
            director,
            device,
            power_dev,
            settle,
            meters: 0,
            kept: BTreeMap::new(),
            write_log,
            history: LabHistory::default(),
        })
    }

    /// Returns a command of a user with a home of its own.
    pub(crate) fn command(&self) -> Command {
        let mut command = self.lab.regatta();
        command
            .env("HOME", LAB_ROOT)
            .env_remove("SSH_AUTH_SOCK")
            .stdin(Stdio::null());
        command
    }

    /// Returns the JSON output of a command with any exit code.
    pub(crate) fn json(&self, words: &[&str]) -> anyhow::Result<Value> {
        let output = self.command().args(words).args(["--format", "json"]).output()?;
        serde_json::from_slice(&output.stdout).with_context(|| format!("{words:?}: {}", printed(&output)))
    }

    pub(crate) fn add_meter(&mut self, fault: &SessionFault) -> anyhow::Result<Meter> {
        self.meters += 1;
        let name = format!("meter{}", self.meters);
        let directory = match fault.remote_director {
            true => self.director.sshd.home(),
            false => place(WORKSPACE),
        };
        let ptd = directory.join(format!("ptd-{name}"));
        write_simulated_ptd(&ptd, &place(REGATTA), &ptd_options(fault, self.settle));
        if fault.kind == Kind::MeterOff {
            fs::write(
                &ptd,
                "#!/bin/sh\necho 'ERROR: no answer from the meter'\nexit 1\n",
            )?;
        }
        let (port, ptd_port) = (free_port(), free_port());
        let mut add = self.command();
        add.args([
            "meter",
            "add",
            &name,
            "--device-type",
            "49",
            "--device-port",
            &name,
        ])
        .args([
            "--ntp",
            "127.0.0.1",
            "--port",
            &port.to_string(),
            "--ptd-port",
            &ptd_port.to_string(),
        ])
        .arg("--ptd")
        .arg(&ptd);
        if fault.remote_director {
            add.arg("--power-dev").arg(self.director.power_dev());
            add.arg("--python").arg(self.director.python());
            add.args(["--director", &self.director.login()]);
            add.arg("--checker").arg(&self.power_dev);
        } else {
            add.arg("--power-dev").arg(&self.power_dev);
            add.arg("--python").arg(self.python());
        }
        let added = add.output()?;
        ensure!(added.status.success(), "{}", printed(&added));
        Ok(Meter { name, ptd, port })
    }

    pub(crate) fn session(&self, fault: &SessionFault, meter: &Meter) -> Command {
        let mut command = self.command();
        run_session(&mut command, &meter.name).args(["--round", ROUND]);
        if fault.remote_device {
            command.args(["--ssh", &self.device.login()]);
            command.arg("--device-power-dev").arg(self.device.power_dev());
            command.arg("--device-python").arg(self.device.python());
        } else {
            command.arg("--device-power-dev").arg(&self.power_dev);
            command.arg("--device-python").arg(self.python());
        }
        for machine in [&self.director, &self.device] {
            command.arg("--identity").arg(machine.sshd.key());
            command.args(["--accept-host-key", &machine.sshd.fingerprint()]);
        }
        command
    }

    fn python(&self) -> PathBuf {
        place(WORKSPACE).join("python")
    }

    pub(crate) fn machine(&self, side: Side) -> &Machine {
        match side {
            Side::Director => &self.director,
            Side::Device => &self.device,
        }
    }

    /// Returns the copy of power-dev that a side of the session uses.
    pub(crate) fn power_dev_of(&self, side: Side) -> PathBuf {
        self.machine(side).power_dev()
    }
}

pub(crate) fn place(name: &str) -> PathBuf {
    Path::new(LAB_ROOT).join(name)
}

/// Makes `regatta` a program that every user may execute. The directory of the build may be closed to them.
fn place_regatta() -> anyhow::Result<()> {
    let program = place(REGATTA);
    fs::write(&program, "")?;
    let mut mount = shell::command("mount")?;
    shell::succeed(mount.arg("--bind").arg(regatta_tests::regatta()).arg(program)).map(drop)
}

fn ptd_options(fault: &SessionFault, settle: Settle) -> String {
    let part = if fault.amount % 2 == 0 {
        "ranging"
    } else {
        "testing"
    };
    // With short waits a part has at least five samples.
    let sample = match settle {
        Settle::Official => fault.amount,
        Settle::Short => fault.amount / 3,
    };
    match fault.kind {
        Kind::OldPtd => "--ptd-version 1.9.1".to_owned(),
        Kind::WrongDeviceType => "--model YokogawaWT330E".to_owned(),
        Kind::Unplugged => format!("--fault stall={part}:{sample}"),
        Kind::PtdCrash => format!("--fault crash={part}:{sample}"),
        Kind::RefusedRange => "--fault refused-range".to_owned(),
        Kind::MeterError => format!("--fault error=testing:{sample}"),
        Kind::Uncertain => format!("--fault uncertainty=testing:{sample}"),
        _ => String::new(),
    }
}

fn copy(power_dev: &Path, to: &Path) -> anyhow::Result<()> {
    shell::succeed(Command::new("cp").arg("-r").arg(power_dev).arg(to))?;
    shell::succeed(Command::new("chmod").args(["-R", "a+rX"]).arg(to)).map(drop)
}
