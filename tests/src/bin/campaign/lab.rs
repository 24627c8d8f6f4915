//! One lab of real processes in namespaces of its own: laid out, looked after, asked for runs. Faults are done to it by
//! `inject`; what came of it is judged by `verdict`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use regatta_tests::Broker;
use serde::Deserialize;

use crate::{
    daemon::{Daemon, Program},
    disk::Disk,
    keys, network,
    plan::Side,
    proxy::Proxy,
    rng::Rng,
    shell,
};

/// Everything of a lab lies here, on file systems that nobody else sees.
const ROOT: &str = "/run/lab";
/// The device's name.
const DEVICE: &str = "boat";
/// Looking after the daemons.
const LOOK: Duration = Duration::from_millis(50);
const START_PATIENCE: Duration = Duration::from_secs(60);
/// Longest that a command of the coordinator may take; it waits for the store at most half of that.
const COMMAND_PATIENCE_S: &str = "60";

/// A benchmark whose answers make a log of some megabytes without any computing.
const BULKY: &str = include_str!("bulky.toml");

/// A lab.
pub(crate) struct Lab {
    /// Which broker it has.
    pub(crate) broker: Broker,
    /// `regatta-agent serve`.
    pub(crate) agent: Daemon,
    /// `regatta serve`.
    pub(crate) coordinator: Daemon,
    /// mosquitto, where it is the broker.
    pub(crate) mosquitto: Option<Daemon>,
    /// The device's disk.
    pub(crate) device_disk: Disk,
    /// The coordinator's disk.
    pub(crate) coordinator_disk: Disk,
    /// On the device's way to the broker.
    pub(crate) device_proxy: Proxy,
    /// On the coordinator's way to the broker, where that is not in its own process.
    pub(crate) coordinator_proxy: Option<Proxy>,
    /// The runs that were asked for.
    pub(crate) requested: Vec<String>,
    begun: Instant,
    /// What was done, with times.
    pub(crate) journal: Vec<String>,
}

/// A run as `regatta runs list` tells it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ListedRun {
    /// Its id.
    pub(crate) run: String,
    /// Its phase.
    pub(crate) phase: String,
    /// Why it failed.
    pub(crate) reason: Option<String>,
    /// When its record was written.
    pub(crate) recorded: Option<String>,
    /// Whether everything was delivered, once it is recorded.
    pub(crate) complete: Option<bool>,
}

#[derive(Deserialize)]
struct Runs {
    runs: Vec<ListedRun>,
}

impl Lab {
    /// Lays out network, disks and configuration and starts everything.
    ///
    /// # Errors
    /// When something of it cannot be made, or the device does not come up.
    pub(crate) fn set_up(broker: Broker) -> anyhow::Result<Self> {
        network::lay_out()?;
        let root = Path::new(ROOT);
        let logs = root.join("logs");
        fs::create_dir_all(&logs)?;
        let device_disk = Disk::mount(&root.join("device"), "state/runs")?;
        let coordinator_disk = Disk::mount(&root.join("coordinator"), "runs")?;
        let (broker_address, coordinator_proxy) = match broker {
            Broker::Embedded => (Side::Coordinator.address(), None),
            Broker::Mosquitto => {
                let address = keys::local_mosquitto();
                (address, Some(Proxy::start(Side::Coordinator.proxy(), address)?))
            }
        };
        keys::make_lab(coordinator_disk.root(), broker)?;
        let mut lab = Self {
            broker,
            agent: Daemon::new(agent_program(device_disk.root()), &logs)?,
            coordinator: Daemon::new(coordinator_program(coordinator_disk.root()), &logs)?,
            mosquitto: match broker {
                Broker::Embedded => None,
                Broker::Mosquitto => Some(Daemon::new(
                    mosquitto_program(root, coordinator_disk.root())?,
                    &logs,
                )?),
            },
            device_proxy: Proxy::start(Side::Device.proxy(), broker_address)?,
            device_disk,
            coordinator_disk,
            coordinator_proxy,
            requested: Vec::new(),
            begun: Instant::now(),
            journal: Vec::new(),
        };
        lab.configure()?;
        if let Some(mosquitto) = &mut lab.mosquitto {
            mosquitto.start()?;
        }
        lab.coordinator.start()?;
        keys::enrol(&mut lab, DEVICE)?;
        lab.agent.start()?;
        lab.wait_for_device()?;
        Ok(lab)
    }

    fn configure(&self) -> anyhow::Result<()> {
        let scratch = Path::new(ROOT).join("scratch");
        let coordinator = self.coordinator_disk.root();
        let config = coordinator.join("regatta.toml");
        let made = fs::read_to_string(&config)?;
        fs::write(
            &config,
            // The device's originals are wanted at the end, however far the clocks have stepped; only a full disk removes them.
            format!(
                "{made}scratch = \"{}\"\nkeep_on_device_hours = 1000000\n",
                scratch.display()
            ),
        )?;
        let benchmarks = coordinator.join("configs/benchmarks");
        fs::create_dir_all(&benchmarks)?;
        fs::write(benchmarks.join("bulky.toml"), BULKY)?;
        fs::write(
            self.device_disk.root().join("agent.toml"),
            format!(
                "name = \"{DEVICE}\"\nstate_dir = \"state\"\nscratch = \"{}\"\nbroker = \"mqtts://{}\"\n\
                 min_free_mib = 1\n",
                scratch.display(),
                Side::Device.proxy()
            ),
        )?;
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../datasets/digits");
        let model = scratch.join("models/digits");
        fs::create_dir_all(&model)?;
        fs::copy(data.join("digits.onnx"), model.join("digits.onnx"))?;
        let mut prepare = self.regatta()?;
        prepare
            .args(["prep", "digits", "--data"])
            .arg(&data)
            .arg("--out")
            .arg(&scratch);
        shell::succeed(&mut prepare).map(drop)
    }

    /// A `regatta` command in the lab's workspace, ended when it hangs.
    pub(crate) fn regatta(&self) -> anyhow::Result<Command> {
        let mut command = shell::command("timeout")?;
        command
            .arg(COMMAND_PATIENCE_S)
            .arg(regatta_tests::regatta())
            .arg("--workspace")
            .arg(self.coordinator_disk.root())
            .current_dir(ROOT);
        Ok(command)
    }

    fn wait_for_device(&mut self) -> anyhow::Result<()> {
        let begin = Instant::now();
        while begin.elapsed() < START_PATIENCE {
            self.pass(Duration::from_millis(200))?;
            let devices = self
                .regatta()?
                .args(["device", "list", "--format", "json"])
                .output()?;
            if String::from_utf8_lossy(&devices.stdout).contains(DEVICE) {
                return Ok(());
            }
        }
        bail!(
            "the device did not say hello within {} s",
            START_PATIENCE.as_secs()
        )
    }

    /// Lets time pass, and looks after the daemons meanwhile.
    ///
    /// # Errors
    /// When a daemon cannot be started again.
    pub(crate) fn pass(&mut self, time: Duration) -> anyhow::Result<()> {
        let end = Instant::now() + time;
        loop {
            for daemon in self.daemons() {
                daemon.look_after()?;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(LOOK));
        }
    }

    /// Every daemon, the broker last.
    pub(crate) fn daemons(&mut self) -> impl Iterator<Item = &mut Daemon> {
        [&mut self.agent, &mut self.coordinator]
            .into_iter()
            .chain(&mut self.mosquitto)
    }

    /// Notes what was done.
    pub(crate) fn note(&mut self, what: impl std::fmt::Display) {
        let seconds = self.begun.elapsed().as_secs_f64();
        self.journal.push(format!("{seconds:8.2} s  {what}"));
    }

    /// The runs as the coordinator lists them.
    ///
    /// # Errors
    /// When its store cannot be read.
    pub(crate) fn runs(&self) -> anyhow::Result<Vec<ListedRun>> {
        let output = shell::succeed(self.regatta()?.args(["runs", "list", "--format", "json"]))?;
        let listed: Runs = serde_json::from_slice(&output.stdout).context("`runs list` prints JSON")?;
        Ok(listed.runs)
    }

    /// Asks for one more run, of a random sort.
    ///
    /// # Errors
    /// When the coordinator's command fails.
    pub(crate) fn request_run(&mut self, rng: &mut Rng) -> anyhow::Result<()> {
        let (words, stream) = (rng.pick(&WORK), if rng.percent(20) { "live" } else { "after" });
        let duration = format!("{}ms", rng.between(300, 1_500));
        let mut command = self.regatta()?;
        command
            .args([
                "run",
                "--device",
                DEVICE,
                "--no-wait",
                "--format",
                "json",
                "--duration",
                &duration,
            ])
            .args(["--stream", stream])
            .args(words.split_ascii_whitespace());
        let output = shell::succeed(&mut command)?;
        let requested: Runs = serde_json::from_slice(&output.stdout).context("`run` prints JSON")?;
        for run in requested.runs {
            self.note(format!("asked for {}: {words}, {duration}, {stream}", run.run));
            self.requested.push(run.run);
        }
        Ok(())
    }

    /// Where a run's files lie on either side: device, coordinator.
    pub(crate) fn run_dirs(&self, run: &str) -> [PathBuf; 2] {
        let [device, coordinator] = self.runs_dirs();
        [device.join(run), coordinator.join(run)]
    }

    /// Where runs lie on either side: device, coordinator.
    pub(crate) fn runs_dirs(&self) -> [PathBuf; 2] {
        [
            self.device_disk.root().join("state/runs"),
            self.coordinator_disk.root().join("runs"),
        ]
    }
}

/// What is asked for: each engine, growing and sudden logs, small and large ones.
const WORK: [&str; 5] = [
    "--benchmark digits --engine sim --scenario SingleStream --mode PerformanceOnly",
    "--benchmark digits --engine tract --scenario Offline --mode AccuracyOnly",
    "--benchmark digits --engine sim --scenario Server --mode PerformanceOnly",
    "--benchmark bulky --engine null --scenario Offline --mode AccuracyOnly",
    "--benchmark bulky --engine null --scenario SingleStream --mode AccuracyOnly",
];

fn agent_program(root: &Path) -> Program {
    Program {
        name: "agent",
        namespace: Some(Side::Device.namespace()),
        line: vec![
            regatta_tests::agent(),
            "serve".into(),
            "--config".into(),
            root.join("agent.toml"),
        ],
        directory: root.to_owned(),
        may_give_up: true,
    }
}

fn coordinator_program(root: &Path) -> Program {
    Program {
        name: "coordinator",
        namespace: Some(Side::Coordinator.namespace()),
        line: vec![
            regatta_tests::regatta(),
            "--workspace".into(),
            root.to_owned(),
            "serve".into(),
        ],
        directory: root.to_owned(),
        may_give_up: true,
    }
}

fn mosquitto_program(root: &Path, coordinator: &Path) -> anyhow::Result<Program> {
    let config = keys::place_mosquitto(coordinator, &root.join("mosquitto"))?;
    Ok(Program {
        name: "mosquitto",
        namespace: None,
        line: vec![
            shell::find("mosquitto").context("mosquitto is not installed")?,
            "-c".into(),
            config,
        ],
        directory: root.to_owned(),
        may_give_up: false,
    })
}
