//! Runs `regatta serve` as a process, and `regatta` commands in its workspace.

use std::{
    fs::{self, File},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use regatta_types::documents::{DeviceFacts, EngineKind};
use regatta_wire::{message::Message as _, topic::Leaf};
use rustix::process::{Pid, Signal};
use serde_json::Value;
use tempfile::TempDir;

use super::{device::SimulatedDevice, eventually, free_port, page_client::PageClient};

/// A workspace, and the daemon that serves it while it runs.
pub struct Coordinator {
    dir: TempDir,
    child: Option<Child>,
    /// The broker's port on loopback.
    pub port: u16,
}

impl Coordinator {
    /// A workspace with the embedded broker; not served yet.
    pub fn embedded() -> Self {
        let port = free_port();
        Self::with(port, &format!("schema = 1\nlisten = \"127.0.0.1:{port}\"\n"))
    }

    /// A workspace that uses another broker; not served yet.
    pub fn external(port: u16) -> Self {
        Self::with(
            port,
            &format!("schema = 1\nbroker = \"mqtt://127.0.0.1:{port}\"\n"),
        )
    }

    fn with(port: u16, config: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("regatta.toml"), config).unwrap();
        Self {
            dir,
            child: None,
            port,
        }
    }

    /// A coordinator that knows one device and is not serving any more, so that requested runs stay queued.
    pub fn with_a_known_device() -> Self {
        let mut coordinator = Self::embedded();
        coordinator.serve();
        let _device = coordinator.join(1);
        coordinator.kill();
        coordinator
    }

    /// A served lab with keys that knows one device, which is offline. Its page needs a login and is at a free port of every address.
    pub fn with_a_login() -> Self {
        Self::with_a_login_after(|_, _| {})
    }

    /// As [`Self::with_a_login`], after what a test does with the device.
    pub fn with_a_login_after(work: impl FnOnce(&Self, &mut SimulatedDevice)) -> Self {
        let mut coordinator = Self::initialised();
        coordinator.configure(&[("tls = true", "tls = false")]);
        coordinator.serve();
        let mut device = coordinator.join(1);
        work(&coordinator, &mut device);
        drop(device);
        coordinator.kill();
        coordinator.configure(&[
            ("tls = false", "tls = true"),
            (
                "# dashboard_listen = \"127.0.0.1:8886\"",
                "dashboard_listen = \"0.0.0.0:0\"",
            ),
        ]);
        coordinator.serve();
        coordinator
    }

    /// A workspace of `regatta init`, whose broker has a free port; not served yet.
    fn initialised() -> Self {
        let port = free_port();
        let dir = tempfile::tempdir().unwrap();
        let coordinator = Self {
            dir,
            child: None,
            port,
        };
        let listen = |port: u16| format!("127.0.0.1:{port}");
        let (broker, enroll, assets) = (listen(port), listen(free_port()), listen(free_port()));
        let init = coordinator.output(&[
            "init",
            "--host",
            "lab.example",
            "--listen",
            &broker,
            "--enroll-listen",
            &enroll,
            "--assets-listen",
            &assets,
        ]);
        assert!(init.status.success(), "{init:?}");
        coordinator
    }

    /// Replaces parts of the configuration.
    pub fn configure(&self, changes: &[(&str, &str)]) {
        let path = self.path("regatta.toml");
        let mut text = fs::read_to_string(&path).unwrap();
        for (before, after) in changes {
            assert!(text.contains(before), "{before}: {text}");
            text = text.replace(before, after);
        }
        fs::write(path, text).unwrap();
    }

    /// A client of the live page.
    pub fn page(&self) -> PageClient {
        // The coordinator serves its broker before its page.
        let url = eventually("the live page", 30, || {
            let status = self.regatta(&["status", "--format", "json"]).output().unwrap();
            let status: Value = serde_json::from_slice(&status.stdout).unwrap();
            status["coordinator"]["page"].as_str().map(str::to_owned)
        });
        PageClient::new(&url, &self.path("keys/page-ca.pem"))
    }

    /// Adds a token of the live page.
    pub fn page_token(&self, name: &str, role: &str) -> String {
        let words = ["dashboard", "token", "add", name, "--role", role];
        self.json(&words)["token"].as_str().unwrap().to_owned()
    }

    /// Connects a device, and waits until the coordinator knows it.
    pub fn join(&self, seed: u8) -> SimulatedDevice {
        let device = SimulatedDevice::connect(self.port, seed);
        device.say_hello(Vec::new());
        eventually("the device", 30, || {
            let listed = self.json(&["device", "list"]);
            let devices = listed["devices"].as_array().unwrap();
            let own = devices
                .iter()
                .find(|found| found["device"] == device.id.to_string())?;
            own["online"].as_bool().filter(|online| *online)
        });
        device
    }

    /// Starts the daemon and waits until it serves.
    pub fn serve(&mut self) {
        let command = self.regatta(&["serve"]);
        self.serve_by(command);
    }

    /// As [`Self::serve`], by a command of the caller.
    pub fn serve_by(&mut self, mut command: Command) {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log())
            .unwrap();
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.child = Some(command.spawn().unwrap());
        let child = self.child.as_mut().unwrap();
        eventually("the coordinator to serve", 30, || {
            assert!(child.try_wait().unwrap().is_none(), "the coordinator ended");
            TcpStream::connect(("127.0.0.1", self.port)).ok()
        });
    }

    /// Returns whether the daemon has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child
            .as_mut()
            .is_none_or(|child| child.try_wait().unwrap().is_some())
    }

    /// Kills the daemon as a power cut would.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Waits until the daemon ends by itself, for at most 30 s. Returns its exit code; `None` when it had to be killed.
    pub fn end(&mut self) -> Option<i32> {
        let mut child = self.child.take().unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while Instant::now() < deadline {
            if let Some(status) = child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        None
    }

    /// Ends the daemon by SIGTERM. Returns how long it took.
    pub fn terminate(&mut self) -> Duration {
        let mut child = self.child.take().unwrap();
        let begun = Instant::now();
        rustix::process::kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        child.wait().unwrap();
        begun.elapsed()
    }

    /// The most memory that the daemon has used, in bytes.
    pub fn peak_memory(&self) -> u64 {
        let pid = self.child.as_ref().unwrap().id();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// A command in the workspace.
    pub fn regatta(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_regatta"));
        command
            .arg("--workspace")
            .arg(self.dir.path())
            .args(args)
            .stdin(Stdio::null());
        command.env_remove("MLPERF_SCRATCH_PATH");
        command
    }

    /// Runs a command to its end.
    pub fn output(&self, args: &[&str]) -> Output {
        self.regatta(args).output().unwrap()
    }

    /// Connects a simulated device with engines and facts, and waits until the coordinator shows it. The name's first letter is the seed of its key.
    pub fn join_with(&self, name: &str, engines: &[EngineKind], facts: &DeviceFacts) -> SimulatedDevice {
        let device = SimulatedDevice::connect(self.port, name.as_bytes()[0]);
        let mut hello = device.hello(Vec::new());
        hello.name = name.to_owned();
        hello.engines = engines.to_vec();
        hello.facts_json = serde_json::to_vec(facts).unwrap();
        device.say(Leaf::Hello, hello.to_frame().unwrap(), true);
        device.say_inventory(1, &[]);
        eventually("the device", 30, || {
            let shown = self.output(&["device", "show", name]);
            shown.status.success().then_some(())
        });
        device
    }

    /// Runs a command that must succeed, and reads the JSON that it prints.
    pub fn json(&self, args: &[&str]) -> Value {
        let output = self.regatta(args).args(["--format", "json"]).output().unwrap();
        assert!(
            output.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Requests a run of the null engine and returns its id.
    pub fn request_run(&self, mode: &str) -> String {
        self.request_run_on("null", mode)
    }

    /// Requests a run of the null engine on one of several devices. Returns its id.
    pub fn request_run_of(&self, device: &SimulatedDevice) -> String {
        let requested = self.json(&[
            "run",
            "--device",
            device.id.as_str(),
            "--benchmark",
            "digits",
            "--scenario",
            "Offline",
            "--engine",
            "null",
            "--no-wait",
        ]);
        requested["runs"][0]["run"].as_str().unwrap().to_owned()
    }

    /// Requests a run and returns its id.
    pub fn request_run_on(&self, engine: &str, mode: &str) -> String {
        let requested = self.json(&[
            "run",
            "--benchmark",
            "digits",
            "--scenario",
            "Offline",
            "--mode",
            mode,
            "--engine",
            engine,
            "--no-wait",
        ]);
        requested["runs"][0]["run"].as_str().unwrap().to_owned()
    }

    /// One run as `runs show` prints it.
    pub fn show(&self, run: &str) -> Value {
        self.json(&["runs", "show", run])
    }

    /// Waits until a run has its record, and returns the record.
    pub fn record(&self, run: &str) -> Value {
        let path = self.path(&format!("runs/{run}/record.json"));
        eventually("the run's record", 30, || {
            self.show(run)["recorded"].as_str().map(drop)
        });
        serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
    }

    /// The workspace's directory.
    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    /// A path in the workspace.
    pub fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    /// Returns the content of a complete stream.
    pub fn file(&self, run: &str, name: &str) -> Option<Vec<u8>> {
        fs::read(self.path(&format!("runs/{run}/files/{name}"))).ok()
    }

    /// The daemon's output so far.
    pub fn printed(&self) -> String {
        fs::read_to_string(self.log()).unwrap_or_default()
    }

    fn log(&self) -> PathBuf {
        Path::new(self.dir.path()).join("serve.log")
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            println!("--- the coordinator's words\n{}", self.printed());
        }
    }
}
