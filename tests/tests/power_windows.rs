//! Power sessions whose director is a fake Windows machine, with cmd.exe and with PowerShell: the official programs, a simulated PTDaemon, and what
//! is left after an interrupt. Needs root for the machine's user, and a network namespace for NTP's port 123.

#![expect(clippy::expect_used, reason = "test code")]

use std::{fs, net::SocketAddr, path::Path, process::Command, thread};

use regatta_power::ntp;
use regatta_tests::{
    Broker, Lab, Process, eventually, network_namespace, power_dev,
    power_sessions::{add_meter, id, json, processes, run_session, sessions_of, write_simulated_ptd},
    printed, regatta,
    sshd::SAILOR,
    succeed_output,
    windows::{POWER_DEV, PTD, PYTHON, Windows, WindowsShell},
};
use serde_json::Value;

#[test]
fn a_director_may_have_windows() {
    let Some(power_dev) = power_dev() else { return };
    if !network_namespace::continues_inside_as_root("a_director_may_have_windows") {
        return;
    }
    ntp::answer_requests(SocketAddr::from(([127, 0, 0, 1], ntp::PORT))).expect("the namespace's port 123");
    let mut machines = Vec::new();
    for shell in [WindowsShell::Cmd, WindowsShell::PowerShell] {
        let Some(machine) = Windows::start(shell, &power_dev) else {
            return;
        };
        machines.push(machine);
    }
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    let directors: Vec<Director<'_>> = ["cmd", "powershell"]
        .into_iter()
        .zip(&machines)
        .map(|(meter, machine)| Director::with_meter(meter, machine, &lab, &power_dev))
        .collect();
    thread::scope(|scope| {
        for director in &directors {
            scope.spawn(|| director.a_session());
        }
    });
    thread::scope(|scope| {
        for director in &directors {
            scope.spawn(|| director.an_interrupted_session());
        }
    });
}

/// A Windows machine with a meter.
struct Director<'a> {
    meter: &'static str,
    machine: &'a Windows,
    lab: &'a Lab,
}

impl<'a> Director<'a> {
    fn with_meter(meter: &'static str, machine: &'a Windows, lab: &'a Lab, power_dev: &Path) -> Self {
        // Every user may execute it there.
        let program = machine.sshd.home().join("regatta");
        let _ = succeed_output(Command::new("strip").arg("-o").arg(&program).arg(regatta()));
        write_simulated_ptd(&machine.file(PTD), &program, "");
        lab.add_device(meter);
        let login = format!("{SAILOR}@127.0.0.1:{}", machine.sshd.port);
        let added = add_meter(&mut lab.regatta(), meter, Path::new(POWER_DEV), Path::new(PTD))
            .args(["--director", &login, "--python", PYTHON])
            .arg("--checker")
            .arg(power_dev)
            .output()
            .expect("regatta starts");
        assert!(added.status.success(), "{}", printed(&added));
        Self { meter, machine, lab }
    }

    fn session(&self) -> Command {
        let mut command = self.lab.regatta();
        run_session(&mut command, self.meter).args(["--device", self.meter]);
        command
            .arg("--device-power-dev")
            .arg(power_dev().expect("the official programs"));
        command.arg("--identity").arg(self.machine.sshd.key());
        command.args(["--accept-host-key", &self.machine.sshd.fingerprint()]);
        command
    }

    fn newest(&self) -> Option<Value> {
        let list = self.lab.json(&["power", "list"]);
        sessions_of(&list, self.meter).into_iter().next()
    }

    fn a_session(&self) {
        let output = self
            .session()
            .args(["--format", "json"])
            .output()
            .expect("regatta starts");
        let words = printed(&output);
        assert!(output.status.success(), "{}: {words}", self.meter);
        let record = json(&output)["sessions"][0].clone();
        assert_eq!(record["verdict"], "rehearsal", "{record}");
        assert_eq!(record["official_summary"], "11 of 11 checks passed", "{record}");
        // The checks before it, live watts and the server's configuration came from the machine.
        for line in [
            "ok    director power-dev: C:\\power-dev",
            "ok    director clock",
            "ok    director disk",
            "ok    meter identity: YokogawaWT310E",
            " W, the mean of ",
        ] {
            assert!(words.contains(line), "{line}: {words}");
        }
        let directory = Path::new(record["directory"].as_str().expect("a directory"));
        let conf = fs::read_to_string(directory.join("power/server.json")).expect("the server's description");
        assert!(conf.contains("ptd-windows-x86.exe"), "{conf}");
        self.expect_nothing_left(&id(&record));
    }

    /// The server ends without an interrupt, which Windows does not have between programs.
    fn an_interrupted_session(&self) {
        let log = self.lab.workspace().join(format!("{}.log", self.meter));
        let begun = self.newest();
        let mut process = Process::start(&mut self.session(), &log);
        eventually("the ranging run to be requested", 90, || {
            assert!(process.is_running(), "{}", process.output());
            let newest = self.newest();
            newest != begun && newest.is_some_and(|row| row["ranging"].is_string())
        });
        let interrupted = Command::new("kill")
            .args(["-INT", &process.id().to_string()])
            .status();
        assert!(interrupted.expect("kill starts").success());
        eventually("the session to end", 60, || !process.is_running());
        let row = self.newest().expect("a session");
        assert!(
            row["reason"]
                .as_str()
                .is_some_and(|reason| reason.contains("it was interrupted")),
            "{row}: {}",
            process.output()
        );
        let output = self
            .lab
            .workspace()
            .join("power")
            .join(id(&row))
            .join("server-output.txt");
        let output = fs::read_to_string(output).expect("the server's output");
        // The simulated meter's own ranges.
        for range in ["'SR,V,300.000000'", "'SR,A,5.000000'"] {
            assert!(output.contains(range), "{range} was restored: {output}");
        }
        self.expect_nothing_left(&id(&row));
    }

    fn expect_nothing_left(&self, id: &str) {
        let sessions = self.machine.sshd.home().join("regatta-power");
        let left = fs::read_dir(sessions).expect("the sessions' directory").flatten();
        let left: Vec<_> = left
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(id))
            .collect();
        assert!(left.is_empty(), "{left:?}");
        eventually("every process of the session to end", 60, || {
            processes(|line| line.contains(id)).is_empty()
        });
    }
}
