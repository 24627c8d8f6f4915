//! Runs the agent's daemon as a process of the test, with a state directory that survives restarts.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use regatta_catalogue::known;
use regatta_random::SplitMix64;
use regatta_test_support::strace::{Strace, let_go};
use regatta_types::{
    DeviceId, Mode, RunId, Scenario,
    documents::{
        ConfTexts, Delivery, Document as _, EngineKind, EngineSpec, LoadgenChoice, RunLength, RunSpec,
        RunTask,
    },
    engine_settings::EngineSettings,
};
use rustix::{
    process::{Pid, Signal, kill_process},
    thread::{CpuSet, sched_getaffinity},
};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::eventually;

/// A device of the test.
pub(crate) struct Agent {
    directory: TempDir,
    child: Option<Child>,
    pub(crate) device: DeviceId,
}

impl Agent {
    /// Installs and starts an agent that uses the broker at `port`.
    pub(crate) fn start(port: u16) -> Self {
        Self::start_with(port, "min_free_mib = 16")
    }

    /// As [`Self::start`], with other lines of configuration.
    pub(crate) fn start_with(port: u16, more: &str) -> Self {
        let agent = Self::start_without_broker(port, more);
        // No queue keeps a command that is sent before the first session.
        eventually("the daemon's connection", 20, || {
            agent.log().contains("connected to the broker").then_some(())
        });
        agent
    }

    /// As [`Self::start_with`], possibly without a broker at `port`.
    pub(crate) fn start_without_broker(port: u16, more: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let state_dir = if more.contains("state_dir") {
            ""
        } else {
            "state_dir = 'state'\n"
        };
        let broker = format!("broker = 'mqtt://127.0.0.1:{port}'");
        let config = format!("name = 'boat-3'\n{state_dir}{broker}\n{more}\n");
        fs::write(directory.path().join("agent.toml"), config).unwrap();
        let mut agent = Self {
            directory,
            child: None,
            device: "0".repeat(32).parse().unwrap(),
        };
        agent.launch();
        agent.device = eventually("the device's key", 10, || agent.read_device());
        agent
    }

    /// Starts the daemon on the state that is there.
    pub(crate) fn launch(&mut self) {
        self.launch_as(Command::new(env!("CARGO_BIN_EXE_regatta-agent")));
    }

    /// As [`Self::launch`], with a fault of the disk at these files.
    pub(crate) fn launch_under(&mut self, strace: &Strace, files: &[&Path], fault: &str) {
        self.launch_as(strace.before(env!("CARGO_BIN_EXE_regatta-agent"), files, fault));
    }

    fn launch_as(&mut self, mut agent: Command) {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log_path())
            .unwrap();
        let child = agent
            .args(["serve", "--config"])
            .arg(self.directory.path().join("agent.toml"))
            .current_dir("/")
            .env("REGATTA_LOG", "debug")
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.child = Some(child);
    }

    /// Kills the daemon with SIGKILL.
    pub(crate) fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Ends the daemon with SIGTERM, and waits.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        let mut child = self.child.take().unwrap();
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        child.wait().unwrap()
    }

    /// The daemon's process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// What the daemon has written to standard error.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap()
    }

    /// Returns the id of a thread of the daemon, and for each processor whether it may run there.
    pub(crate) fn thread(&self, name: &str) -> Option<(i32, Vec<bool>)> {
        let mut threads = fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
        threads.find_map(|thread| {
            // A process that ends meanwhile is gone.
            let thread = thread.ok()?.path();
            let comm = fs::read_to_string(thread.join("comm")).ok()?;
            let id = thread.file_name()?.to_str()?.parse().ok()?;
            let allowed = sched_getaffinity(Pid::from_raw(id)).ok()?;
            let processors = (0..CpuSet::MAX_CPU).map(|cpu| allowed.is_set(cpu));
            (comm.trim_end() == name).then(|| (id, processors.collect()))
        })
    }

    /// A run's directory on the device.
    pub(crate) fn run_dir(&self, run: RunId) -> PathBuf {
        self.directory.path().join("state/runs").join(run.to_string())
    }

    /// A file of a run on the device.
    pub(crate) fn file(&self, run: RunId, name: &str) -> PathBuf {
        self.run_dir(run).join("files").join(name)
    }

    /// Returns the process of the active run, as the daemon recorded it.
    pub(crate) fn run_process(&self, run: RunId) -> Pid {
        let job: serde_json::Value =
            serde_json::from_slice(&fs::read(self.run_dir(run).join("job.json")).unwrap()).unwrap();
        let pid = job["process"]["pid"].as_i64().unwrap();
        Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
    }

    /// Peak resident memory of the daemon in KiB. `None`, with the reason printed, where that is an emulator's.
    pub(crate) fn peak_rss_kib(&self) -> Option<u64> {
        self.memory("status", "VmHWM:")
    }

    /// Returns the daemon's anonymous memory in KiB; `None` as above.
    pub(crate) fn heap_kib(&self) -> Option<u64> {
        self.memory("smaps_rollup", "Pss_Anon:")
    }

    /// Returns the peak of the daemon's anonymous memory in KiB, read every few milliseconds while `work` runs; `None` as above.
    /// The kernel's own peak, `VmHWM`, also counts pages of the program, which depend on other readers of its file.
    pub(crate) fn peak_heap_while(&self, work: impl FnOnce()) -> Option<u64> {
        // A panic of `work` drops the sender, which ends the reading as well.
        let (end, ended) = mpsc::channel::<()>();
        let read = move || {
            let mut peak = self.memory("status", "RssAnon:");
            while ended.recv_timeout(Duration::from_millis(5)) == Err(RecvTimeoutError::Timeout) {
                peak = peak.max(self.memory("status", "RssAnon:"));
            }
            peak
        };
        thread::scope(|scope| {
            let peak = scope.spawn(read);
            let end = end;
            work();
            drop(end);
            peak.join().unwrap()
        })
    }

    /// Returns the size of the program's own pages that are private, because the loader has relocated them.
    pub(crate) fn relocated_kib(&self) -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{}/smaps", self.pid())).ok()?;
        let mut is_program = false;
        let mut sum = 0;
        for line in text.lines() {
            match line.strip_prefix("Anonymous:") {
                Some(size) if is_program => sum += size.trim().trim_end_matches(" kB").parse::<u64>().ok()?,
                Some(_) => {}
                // A mapping begins with its addresses and ends with its file.
                None if !line.split(' ').next()?.ends_with(':') => {
                    is_program = line.ends_with("/regatta-agent")
                }
                None => {}
            }
        }
        Some(sum)
    }

    fn memory(&self, file: &str, line: &str) -> Option<u64> {
        let process = PathBuf::from(format!("/proc/{}", self.pid()));
        let program = fs::read_link(process.join("exe")).unwrap();
        if program != fs::canonicalize(env!("CARGO_BIN_EXE_regatta-agent")).unwrap() {
            println!("not looked at: the memory is that of {}", program.display());
            return None;
        }
        let text = fs::read_to_string(process.join(file)).unwrap();
        let line = text.lines().find(|text| text.starts_with(line)).unwrap();
        Some(line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap())
    }

    /// Returns a run of the modelled accelerator (0.6 ms a query) for `millis`, SingleStream, PerformanceOnly.
    pub(crate) fn spec(&self, millis: u64) -> RunSpec {
        let round = known::rounds()
            .unwrap()
            .into_iter()
            .find(|round| round.name == "v6.1")
            .unwrap();
        let benchmark = known::benchmarks()
            .unwrap()
            .into_iter()
            .find(|b| b.name == "digits")
            .unwrap();
        RunSpec {
            schema: RunSpec::SCHEMA,
            run: RunId::now(),
            device: self.device.clone(),
            created: "2026-11-21T08:00:00Z".to_owned(),
            round: round.name.clone(),
            conf: ConfTexts {
                mlperf_conf: round.render_mlperf_conf(&benchmark.mlperf_conf),
                user_conf: format!(
                    "*.SingleStream.min_duration = {millis}\n*.SingleStream.max_duration = {millis}\n\
                     *.SingleStream.min_query_count = 1\n*.SingleStream.target_latency = 0.3\n"
                ),
                audit_config: None,
            },
            benchmark,
            scenario: Scenario::SingleStream,
            mode: Mode::PerformanceOnly,
            engine: EngineSpec {
                kind: EngineKind::Sim,
                settings: EngineSettings::default(),
            },
            loadgen: LoadgenChoice::Native,
            length: RunLength::Duration(millis),
            delivery: Delivery::After,
            audit: None,
            system: None,
            state: None,
            gate: None,
            task: RunTask::Measurement,
            assets: None,
        }
    }

    /// Writes a run to the disk of a stopped daemon, as a power cut leaves it while LoadGen runs.
    pub(crate) fn lay_down_interrupted_run(&self, files: &[(&str, &[u8])]) -> RunId {
        let spec = self.spec(1_000);
        let dir = self.run_dir(spec.run);
        fs::create_dir_all(dir.join("files")).unwrap();
        fs::write(dir.join("spec.json"), serde_json::to_vec(&spec).unwrap()).unwrap();
        let job = r#"{ "schema": 1, "state": { "phase": "running", "reason": null, "revision": 4 }, "arrival": 0,
            "ending": null, "sealed": false, "process": null, "before": null,
            "window": { "bytes_sent": 0, "daemon_cpu_ns": 0 } }"#;
        fs::write(dir.join("job.json"), job).unwrap();
        for (name, bytes) in files {
            fs::write(dir.join("files").join(name), bytes).unwrap();
        }
        spec.run
    }

    pub(crate) fn log_path(&self) -> PathBuf {
        self.directory.path().join("agent.log")
    }

    /// Returns the id from the daemon's first line.
    fn read_device(&self) -> Option<DeviceId> {
        let log = self.log();
        let (_, behind) = log.split_once(": device ")?;
        behind.get(..DeviceId::DIGITS)?.parse().ok()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // A thread that its tracer has stopped does not end.
            let_go(child.id());
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            println!("--- the daemon's log ---\n{}", self.log());
        }
    }
}

/// Returns the SHA-256 of bytes in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Returns bytes without long repetitions, so that a misplaced chunk is found.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    SplitMix64::new(0).bytes(length)
}
