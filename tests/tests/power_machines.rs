//! Power sessions whose director and device are other machines, behind real sshds: the official client, server and checker of
//! mlcommons/power-dev, a simulated PTDaemon, and what is left after faults. Needs root for the machines' users, and a network namespace
//! for NTP's port 123.

#![expect(clippy::expect_used, reason = "test code")]

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use regatta_power::ntp;
use regatta_tests::{
    Broker, Lab, Process, eventually, free_port, left_out, power_dev, printed, regatta,
    sshd::{Likeness, SAILOR, Sshd},
    succeed_output,
};
use serde_json::Value;

/// Set in the namespace.
const INSIDE: &str = "REGATTA_TEST_NAMESPACE";

#[test]
fn sessions_of_three_machines_are_recorded_and_leave_nothing() {
    let Some(power_dev) = power_dev() else { return };
    if !rustix::process::geteuid().is_root() {
        return left_out("machines with users of their own need root");
    }
    if std::env::var_os(INSIDE).is_none() {
        return in_a_namespace("sessions_of_three_machines_are_recorded_and_leave_nothing");
    }
    ntp::answer_requests(SocketAddr::from(([127, 0, 0, 1], ntp::PORT))).expect("the namespace's port 123");
    let Some(mut bench) = Bench::new(&power_dev) else {
        return;
    };
    refused_before_it_begins(&bench);
    thread::scope(|scope| {
        let bench = &bench;
        let parts = [
            scope.spawn(move || a_session_of_three_machines(bench)),
            scope
                .spawn(move || a_program_that_is_killed(bench, "server.py", "the official server has ended")),
            scope.spawn(move || {
                a_program_that_is_killed(bench, "client.py", "the official client has failed")
            }),
            scope.spawn(move || a_connection_that_ends(bench, CUT)),
            scope.spawn(move || a_connection_that_ends(bench, SILENT)),
            scope.spawn(move || a_command_that_is_killed(bench)),
            scope.spawn(move || a_command_that_is_interrupted(bench)),
            scope.spawn(move || a_director_on_this_machine(bench)),
        ];
        for part in parts {
            part.join().expect("this part of the test holds");
        }
    });
    a_device_that_is_lost(&mut bench);
    let meters = bench.json(&["meter", "list"]);
    let meters = meters["meters"].as_array().expect("a list").clone();
    let leased: Vec<_> = meters.iter().filter(|meter| !meter["lease"].is_null()).collect();
    assert!(leased.is_empty(), "{leased:?}");
}

/// Runs this test again in a network namespace of its own.
fn in_a_namespace(test: &str) {
    let own = std::env::current_exe().expect("a process knows its executable");
    let status = Command::new("unshare")
        .args(["--net", "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"])
        .arg(own)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .status();
    assert!(
        status.expect("unshare starts").success(),
        "the test in the namespace"
    );
}

/// A lab with a director and a device behind sshds.
struct Bench {
    lab: Lab,
    director: Sshd,
    device: Sshd,
    power_dev: PathBuf,
    home: tempfile::TempDir,
}

impl Bench {
    fn new(power_dev: &Path) -> Option<Self> {
        let likeness = Likeness {
            config: "Subsystem sftp internal-sftp\nMaxStartups 100\n",
            ..Likeness::default()
        };
        let (director, device) = (Sshd::start(likeness)?, Sshd::start(likeness)?);
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
    fn regatta(&self) -> Command {
        let mut command = self.lab.regatta();
        command
            .env("HOME", self.home.path())
            .env_remove("SSH_AUTH_SOCK")
            .stdin(Stdio::null());
        command
    }

    /// Adds a meter of the director, which is reached by this port.
    fn add_meter(&self, name: &str, port: u16, options: &str) {
        let program = self.director.home().join(format!("ptd-{name}"));
        let own = self.director.home().join("regatta");
        let text = format!(
            "#!/bin/sh\nexec {} power simulate-ptd {options} \"$@\"\n",
            own.display()
        );
        fs::write(&program, text).expect("PTDaemon's program");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("PTDaemon's program");
        let added = self
            .regatta()
            .args(["meter", "add", name, "--device-type", "49", "--device-port", name])
            .args([
                "--ntp",
                "127.0.0.1",
                "--director",
                &format!("{SAILOR}@127.0.0.1:{port}"),
            ])
            .args([
                "--port",
                &free_port().to_string(),
                "--ptd-port",
                &free_port().to_string(),
            ])
            .arg("--power-dev")
            .arg(self.director.home().join("power-dev"))
            .arg("--checker")
            .arg(&self.power_dev)
            .arg("--ptd")
            .arg(&program)
            .output()
            .expect("regatta starts");
        assert!(added.status.success(), "{}", printed(&added));
    }

    /// Makes a session, which succeeds, and returns its record and all that was printed.
    fn complete_session(&self, meter: &str) -> (Value, String) {
        let mut command = self.session(meter);
        let output = command
            .args(["--format", "json"])
            .output()
            .expect("regatta starts");
        assert!(output.status.success(), "{}", printed(&output));
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (document["sessions"][0].clone(), printed(&output))
    }

    fn session(&self, meter: &str) -> Command {
        let mut command = self.regatta();
        command.args([
            "power",
            "run",
            "--meter",
            meter,
            "--benchmark",
            "digits",
            "--engine",
            "sim",
        ]);
        command.args(["--scenario", "SingleStream", "--duration", "4s"]);
        command.args(["--ssh", &format!("{SAILOR}@127.0.0.1:{}", self.device.port)]);
        command
            .arg("--device-power-dev")
            .arg(self.device.home().join("power-dev"));
        for machine in [&self.director, &self.device] {
            command.arg("--identity").arg(machine.key());
            command.args(["--accept-host-key", &machine.fingerprint()]);
        }
        command
    }

    fn json(&self, words: &[&str]) -> Value {
        let output = self
            .regatta()
            .args(words)
            .args(["--format", "json"])
            .output()
            .expect("regatta starts");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// The newest session with a meter.
    fn newest(&self, meter: &str) -> Option<Value> {
        let list = self.json(&["power", "list"]);
        let rows = list["sessions"].as_array().expect("a list").clone();
        rows.into_iter().find(|row| row["meter"] == meter)
    }

    /// Starts a session, and returns it with its id once the ranging run is under way.
    fn begin(&self, meter: &str) -> (Process, String) {
        let log = self.lab.workspace().join(format!("{meter}.log"));
        let mut process = Process::start(&mut self.session(meter), &log);
        eventually("the ranging run to be requested", 90, || {
            assert!(process.is_running(), "{}", process.output());
            self.newest(meter).is_some_and(|row| row["ranging"].is_string())
        });
        let id = self.newest(meter).expect("a session")["session"]
            .as_str()
            .expect("an id")
            .to_owned();
        (process, id)
    }

    /// Checks that a session has ended with this reason within the time that the documentation promises, and left no process.
    fn expect_failure(&self, meter: &str, process: &mut Process, id: &str, reason: &str) {
        let begun = Instant::now();
        eventually("the session to end", 100, || !process.is_running());
        assert!(
            begun.elapsed() < Duration::from_secs(90),
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

    fn expect_no_process(&self, id: &str) {
        eventually("every process of the session to end", 60, || {
            processes(|line| line.contains(id)).is_empty()
        });
    }
}

fn refused_before_it_begins(bench: &Bench) {
    bench.add_meter("gone", bench.director.port, "");
    fs::remove_file(bench.director.home().join("ptd-gone")).expect("it is there");
    let output = bench
        .session("gone")
        .arg("--preflight")
        .output()
        .expect("regatta starts");
    let words = printed(&output);
    assert!(
        output.status.code() == Some(1) && words.contains("FAIL  director PTDaemon"),
        "{words}"
    );
    for line in [
        "ok    director power-dev",
        "ok    device power-dev",
        "ok    clocks",
        "ok    network",
        "ok    device: boat",
    ] {
        assert!(words.contains(line), "{line}\n{words}");
    }
    assert!(
        bench.newest("gone").is_none() && !words.contains("meter identity"),
        "{words}"
    );
}

fn a_session_of_three_machines(bench: &Bench) {
    bench.add_meter("good", bench.director.port, "");
    let (record, words) = bench.complete_session("good");
    assert_eq!(record["verdict"], "rehearsal", "{record}");
    assert_eq!(record["official_summary"], "11 of 11 checks passed", "{record}");
    assert!(
        record["machine"]
            .as_str()
            .is_some_and(|machine| machine.starts_with(SAILOR)),
        "{record}"
    );
    let session = PathBuf::from(record["directory"].as_str().expect("a directory"));
    for (part, directory) in [("ranging", "ranging"), ("testing", "run_1")] {
        let run = record["runs"][part].as_str().expect("a run");
        let name = "mlperf_log_detail.txt";
        let delivered = fs::read(
            bench
                .lab
                .workspace()
                .join("runs")
                .join(run)
                .join("files")
                .join(name),
        );
        let in_session = fs::read(session.join(directory).join(name));
        assert!(
            delivered.expect("the run's log") == in_session.expect("the session's log"),
            "{part}"
        );
    }
    // PTDaemon was queried before it began, and live watts came over the connection.
    assert!(
        words.contains("ok    meter identity: YokogawaWT310E") && words.contains("ok    idle load: "),
        "{words}"
    );
    assert!(words.contains(" W, the mean of "), "{words}");
    let id = record["session"].as_str().expect("an id");
    for machine in [&bench.director, &bench.device] {
        let left = fs::read_dir(machine.home().join("regatta-power")).expect("the sessions' directory");
        let left: Vec<_> = left
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(id))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
    bench.expect_no_process(id);
}

fn a_program_that_is_killed(bench: &Bench, program: &str, reason: &str) {
    let meter = format!("killed-{}", program.replace('.', "-"));
    bench.add_meter(&meter, bench.director.port, "");
    let (mut process, id) = bench.begin(&meter);
    let victims = processes(|line| line.contains(&id) && line.contains(program) && !line.contains("import"));
    assert!(!victims.is_empty(), "no process has {program}");
    for pid in victims {
        let killed = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        assert!(killed.expect("kill starts").success());
    }
    bench.expect_failure(&meter, &mut process, &id, reason);
}

fn a_connection_that_ends(bench: &Bench, how: u8) {
    let meter = if how == CUT { "cut" } else { "silent" };
    let wire = Wire::to(bench.director.port);
    bench.add_meter(meter, wire.port, "");
    let (mut process, id) = bench.begin(meter);
    wire.state.store(how, Ordering::Relaxed);
    bench.expect_failure(
        meter,
        &mut process,
        &id,
        "the connection to the director was lost",
    );
}

/// Regatta itself is killed: nothing remains on either machine, and the next session reports it.
fn a_command_that_is_killed(bench: &Bench) {
    bench.add_meter("command", bench.director.port, "--fault crash=ranging:0");
    let (mut process, id) = bench.begin("command");
    process.kill();
    bench.expect_no_process(&id);
    let output: Output = bench.session("command").output().expect("regatta starts");
    let words = printed(&output);
    assert!(
        words.contains("ended without a result") && words.contains("files of earlier sessions"),
        "{words}"
    );
}

/// Ctrl-C ends everything, and is the recorded reason.
fn a_command_that_is_interrupted(bench: &Bench) {
    bench.add_meter("interrupted", bench.director.port, "");
    let (mut process, id) = bench.begin("interrupted");
    let killed = Command::new("kill")
        .args(["-INT", &process.id().to_string()])
        .status();
    assert!(killed.expect("kill starts").success());
    bench.expect_failure("interrupted", &mut process, &id, "it was interrupted");
}

/// The meter is connected to the coordinator's machine, and the device is another one.
fn a_director_on_this_machine(bench: &Bench) {
    let program = bench.lab.workspace().join("ptd-here");
    let own = regatta();
    let text = format!("#!/bin/sh\nexec {} power simulate-ptd \"$@\"\n", own.display());
    fs::write(&program, text).expect("PTDaemon's program");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("PTDaemon's program");
    let added = bench
        .regatta()
        .args([
            "meter",
            "add",
            "here",
            "--device-type",
            "49",
            "--device-port",
            "here",
            "--ntp",
            "127.0.0.1",
        ])
        .args([
            "--port",
            &free_port().to_string(),
            "--ptd-port",
            &free_port().to_string(),
        ])
        .arg("--power-dev")
        .arg(&bench.power_dev)
        .arg("--ptd")
        .arg(&program)
        .output()
        .expect("regatta starts");
    assert!(added.status.success(), "{}", printed(&added));
    let (record, _) = bench.complete_session("here");
    assert_eq!(record["official_summary"], "11 of 11 checks passed", "{record}");
    // `submission stage` finds a session by its id. Its other refusals are about the runs of this lab.
    let id = record["session"].as_str().expect("an id");
    let staged = bench
        .regatta()
        .args([
            "submission",
            "stage",
            "--division",
            "open",
            "--power",
            id,
            "--output",
            "tree",
        ])
        .output()
        .expect("regatta starts");
    let words = printed(&staged);
    assert!(
        !staged.status.success() && words.contains(&format!("power/{id}/session")),
        "{words}"
    );
}

fn a_device_that_is_lost(bench: &mut Bench) {
    bench.add_meter("lost", bench.director.port, "");
    let (mut process, id) = bench.begin("lost");
    bench.lab.device = None;
    bench.expect_failure("lost", &mut process, &id, "agent was offline for 30 s");
}

/// A connection that forwards.
const OPEN: u8 = 0;
/// A connection that is reset.
const CUT: u8 = 1;
/// A connection that carries nothing more, as with a cable pulled out.
const SILENT: u8 = 2;

/// A TCP port that forwards to another one of this machine.
struct Wire {
    port: u16,
    state: Arc<AtomicU8>,
}

impl Wire {
    fn to(target: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let state = Arc::new(AtomicU8::new(OPEN));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(("127.0.0.1", target)) else {
                    return;
                };
                let clone = |stream: &TcpStream| stream.try_clone().expect("a stream");
                let (one, other) = ((clone(&near), clone(&far)), (far, near));
                for (from, to) in [one, other] {
                    let state = Arc::clone(&shared);
                    thread::spawn(move || forward(from, to, &state));
                }
            }
        });
        Self { port, state }
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, state: &AtomicU8) {
    let wait = Duration::from_millis(100);
    from.set_read_timeout(Some(wait)).expect("a time limit");
    let mut piece = vec![0; 64 * 1024];
    loop {
        match state.load(Ordering::Relaxed) {
            OPEN => {}
            SILENT => {
                thread::sleep(wait);
                continue;
            }
            _ => break,
        }
        match from.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => {
                if to.write_all(&piece[..length]).is_err() {
                    break;
                }
            }
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ) => {}
            Err(_) => break,
        }
    }
    // Either end may be closed already.
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// The processes whose command line meets a condition.
fn processes(is_meant: impl Fn(&str) -> bool) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("/proc is there").flatten();
    let meant = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        is_meant(&String::from_utf8_lossy(&line).replace('\0', " ")).then_some(pid)
    });
    meant.collect()
}
