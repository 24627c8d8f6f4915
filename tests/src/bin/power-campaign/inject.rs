//! Injects a fault into a session and undoes it. The plan selects fault and moment.

use std::{
    fs::{self, File},
    net::TcpListener,
    path::Path,
    process::Stdio,
    sync::atomic::Ordering,
    time::Duration,
};

use regatta_tests::{
    faults::{LAB_ROOT, processes::signal_processes},
    shell,
    wire::{CUT, OPEN, SILENT},
};
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    lab::{Meter, PowerLab},
    plan::{Kind, Program, SessionFault, Side},
    session::RunningSession,
};

/// The file of power-dev that gets other line ends.
const CHANGED: &str = "ptd_client_server/lib/time_sync.py";

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const OTHER_BOOT: &str = "7b1ce0f2-5a51-4b8e-9d0c-3d1f2a6c4e77";

/// The injected changes, to undo them.
#[derive(Default)]
pub(crate) struct Injected {
    /// Held so that the port stays taken.
    listener: Option<TcpListener>,
    /// The text before it was changed.
    original: Option<Vec<u8>>,
    pub(crate) second: Option<String>,
    healed: bool,
}

impl PowerLab {
    /// Injects a fault. Returns `false` when it has no target now.
    pub(crate) fn inject(
        &mut self,
        fault: &SessionFault,
        meter: &Meter,
        running: Option<&mut RunningSession>,
        injected: &mut Injected,
    ) -> anyhow::Result<bool> {
        let pid = running.map(|running| Pid::from_child(&running.child));
        let signal_command = |signal| pid.is_some_and(|pid| kill_process(pid, signal).is_ok());
        match fault.kind {
            // The simulated PTDaemon injects these by itself.
            Kind::None
            | Kind::MeterOff
            | Kind::OldPtd
            | Kind::WrongDeviceType
            | Kind::Unplugged
            | Kind::PtdCrash
            | Kind::RefusedRange
            | Kind::MeterError
            | Kind::Uncertain => {}
            Kind::MissingPtd => fs::remove_file(&meter.ptd)?,
            Kind::CarriageReturns(side) => {
                let path = self.power_dev_of(side).join(CHANGED);
                let text = fs::read(&path)?;
                fs::write(&path, String::from_utf8_lossy(&text).replace('\n', "\r\n"))?;
                injected.original = Some(text);
            }
            Kind::PortTaken => {
                injected.listener = Some(TcpListener::bind(("0.0.0.0", meter.port))?);
            }
            Kind::OldFiles => self.leave_old_files()?,
            Kind::Kill(program) => return Ok(signal(program, Signal::KILL)),
            Kind::Hang(program) => return Ok(signal(program, Signal::STOP)),
            Kind::KillCommand => return Ok(signal_command(Signal::KILL)),
            Kind::Interrupt => return Ok(signal_command(Signal::INT)),
            Kind::KillAgent => self.lab.device = None,
            Kind::Reboot => self.begin_reboot(fault)?,
            Kind::KillCoordinator => self.lab.coordinator = None,
            Kind::CutLink(side) => self.machine(side).wire.state.store(CUT, Ordering::Relaxed),
            Kind::SilentLink(side) => self.machine(side).wire.state.store(SILENT, Ordering::Relaxed),
            Kind::CutNetwork => {
                let port = meter.port;
                drop_packets(&format!("tcp dport {port} drop\ntcp sport {port} drop"))?;
            }
            Kind::NoNtp => drop_packets("udp dport 123 drop")?,
            Kind::FullDisk(side) => self.machine(side).disk.fill()?,
            Kind::FullWorkspace => self.disk.fill()?,
            Kind::ClockStep(side) => self.machine(side).set_clock(fault.amount),
            Kind::SecondSession => injected.second = Some(self.second(fault, meter)?),
        }
        Ok(true)
    }

    /// Undoes a fault that does not last until the session's end.
    pub(crate) fn heal_in_the_middle(
        &mut self,
        fault: &SessionFault,
        injected: &mut Injected,
    ) -> anyhow::Result<()> {
        if fault.kind == Kind::Reboot && self.lab.device.is_none() {
            self.lab.start_device();
        }
        let is_short = matches!(
            fault.kind,
            Kind::KillAgent
                | Kind::KillCoordinator
                | Kind::CutNetwork
                | Kind::NoNtp
                | Kind::SilentLink(_)
                | Kind::FullWorkspace
        );
        // A shorter silence does not mean that the link failed.
        if is_short
            && !injected.healed
            && !(matches!(fault.kind, Kind::SilentLink(_)) && fault.hold < Duration::from_secs(40))
        {
            self.undo(fault)?;
            injected.healed = true;
        }
        Ok(())
    }

    /// Undoes the rest of a fault.
    pub(crate) fn heal(&mut self, fault: &SessionFault, injected: &mut Injected) -> anyhow::Result<()> {
        injected.listener = None;
        if let (Kind::CarriageReturns(side), Some(text)) = (fault.kind, injected.original.take()) {
            fs::write(self.power_dev_of(side).join(CHANGED), text)?;
        }
        if !injected.healed {
            self.undo(fault)?;
            injected.healed = true;
        }
        Ok(())
    }

    fn undo(&mut self, fault: &SessionFault) -> anyhow::Result<()> {
        match fault.kind {
            Kind::KillAgent if self.lab.device.is_none() => self.lab.start_device(),
            Kind::Reboot => {
                self.lab.device = None;
                shell::succeed(std::process::Command::new("umount").arg(BOOT_ID))?;
                self.lab.start_device();
                self.machine(Side::Device)
                    .wire
                    .state
                    .store(OPEN, Ordering::Relaxed);
            }
            Kind::KillCoordinator if self.lab.coordinator.is_none() => self.lab.start_coordinator(),
            Kind::CutLink(side) | Kind::SilentLink(side) => {
                self.machine(side).wire.state.store(OPEN, Ordering::Relaxed)
            }
            Kind::CutNetwork | Kind::NoNtp => let_packets_through(),
            Kind::FullDisk(side) => self.machine(side).disk.free_space()?,
            Kind::FullWorkspace => self.disk.free_space()?,
            Kind::ClockStep(side) => self.machine(side).set_clock(0),
            _ => {}
        }
        Ok(())
    }

    /// Ends the processes that a reboot ends, and gives the agent's next start another boot id. Every other time only the agent goes, as on
    /// a device whose client is somewhere else.
    fn begin_reboot(&mut self, fault: &SessionFault) -> anyhow::Result<()> {
        self.lab.device = None;
        if fault.amount % 2 == 0 {
            signal(Program::Client, Signal::KILL);
            self.machine(Side::Device)
                .wire
                .state
                .store(CUT, Ordering::Relaxed);
        }
        let other = Path::new(LAB_ROOT).join("boot-id");
        fs::write(&other, format!("{OTHER_BOOT}\n"))?;
        shell::succeed(
            std::process::Command::new("mount")
                .arg("--bind")
                .arg(&other)
                .arg(BOOT_ID),
        )
        .map(drop)
    }

    /// Creates the files that another session may have left on the director.
    fn leave_old_files(&self) -> anyhow::Result<()> {
        for side in [Side::Director, Side::Device] {
            let home = self.machine(side).sshd.home();
            shell::succeed(
                std::process::Command::new("install")
                    .args(["-d", "-m", "777"])
                    .arg(home.join("regatta-power")),
            )?;
            let old = home.join("regatta-power/20200101-000000-0000-director/tmp/old");
            fs::create_dir_all(&old)?;
            for name in ["ptd_out.txt", "ptd_logfile_1.log", "spl.txt"] {
                fs::write(
                    old.join(name),
                    "Time,01-01-2020 00:00:00.000,Watts,999,Volts,230,Amps,4.3,PF,1,Mark,old\n",
                )?;
            }
        }
        Ok(())
    }
}

/// Sends a signal to the processes of a program in this lab. Returns whether one received it.
fn signal(program: Program, signal: Signal) -> bool {
    let has = |script: &'static str, is_supervisor: bool| {
        signal_processes(signal, |line| {
            line.contains(script) && line.contains("import") == is_supervisor
        })
    };
    match program {
        Program::Server => has("server.py", false),
        Program::Client => has("client.py", false),
        Program::ServerSupervisor => has("server.py", true),
        Program::ClientSupervisor => has("client.py", true),
        Program::Ptd => signal_processes(signal, |line| line.contains("power simulate-ptd")),
        Program::Run => signal_processes(signal, |line| line.contains("regatta-agent exec")),
    }
}

fn drop_packets(rules: &str) -> anyhow::Result<()> {
    let rules: String = rules
        .lines()
        .map(|rule| format!("add rule ip lost out {rule}\n"))
        .collect();
    let text = format!(
        "add table ip lost\nadd chain ip lost out {{ type filter hook output priority 0; }}\n{rules}"
    );
    shell::load_packet_rules(&text)
}

fn let_packets_through() {
    // The table is missing when the fault was already undone.
    let _ = shell::command("nft").map(|mut nft| {
        nft.args(["delete", "table", "ip", "lost"])
            .stderr(File::open("/dev/null").map_or_else(|_| Stdio::inherit(), Stdio::from))
            .status()
    });
}
