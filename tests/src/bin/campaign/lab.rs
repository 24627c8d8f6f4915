//! One lab of real processes in its own namespaces: set up, supervised, and given runs. `inject` injects faults, and `verdict` checks the
//! result.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use regatta_tests::{
    Broker,
    faults::{
        LAB_ROOT, Rng,
        disk::LabDisk,
        run_checker::{CheckedRun, ListedRun, parse_runs},
        write_log::{WriteLog, Writes, file_of_run},
    },
    shell,
};
use ring::signature::Ed25519KeyPair;

use crate::{
    daemon::{Daemon, Program},
    keys, network,
    plan::Side,
    proxy::Proxy,
};

/// The size of each disk in MiB, enough for the runs of one lab.
const DISK_MIB: u64 = 256;
/// The directories of runs on the disks.
pub(crate) const DEVICE_RUNS: &str = "state/runs";
pub(crate) const COORDINATOR_RUNS: &str = "runs";
const DEVICE: &str = "boat";
/// The interval for supervising the daemons.
const LOOK: Duration = Duration::from_millis(50);
const START_PATIENCE: Duration = Duration::from_secs(60);
/// The longest time for a command of the coordinator, in seconds. It waits for the store at most half of that.
const COMMAND_PATIENCE_S: &str = "60";

/// A benchmark whose answers make a log of some megabytes without computation.
const BULKY: &str = include_str!("bulky.toml");

/// The programs under test, which may be of different builds.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    pub(crate) agent: PathBuf,
    pub(crate) coordinator: PathBuf,
}

#[derive(Debug, Clone, Copy)]
struct Work {
    words: &'static str,
    /// The samples of its data set, each of which an accuracy run answers once.
    answers: Option<usize>,
}

pub(crate) struct Lab {
    pub(crate) broker: Broker,
    pub(crate) programs: Programs,
    /// `regatta-agent serve`.
    pub(crate) agent: Daemon,
    /// `regatta serve`.
    pub(crate) coordinator: Daemon,
    /// mosquitto, if it is the broker.
    pub(crate) mosquitto: Option<Daemon>,
    pub(crate) device_disk: LabDisk,
    pub(crate) coordinator_disk: LabDisk,
    /// The proxy between the device and the broker.
    pub(crate) device_proxy: Proxy,
    /// The proxy between the coordinator and the broker, if the broker is a separate process.
    pub(crate) coordinator_proxy: Option<Proxy>,
    /// What was written on the device's disk.
    pub(crate) write_log: WriteLog,
    /// The requested runs, in order.
    pub(crate) requested: Vec<RequestedRun>,
    /// When the device's disk was full. The last one may last.
    full_disk: Vec<(Instant, Option<Instant>)>,
    begun: Instant,
    /// Draws the work.
    rng: Rng,
    /// The number of faults that found no target.
    pub(crate) missed: u32,
}

/// A run as the campaign requested it.
#[derive(Debug, Clone)]
pub(crate) struct RequestedRun {
    pub(crate) id: String,
    requested: Instant,
    /// When it was first listed with a record.
    recorded: Option<Instant>,
    /// The number of answers in its accuracy log.
    answers: Option<usize>,
}

impl Lab {
    /// Sets up network, disks and configuration, and starts every daemon.
    pub(crate) fn set_up(broker: Broker, programs: Programs, mut rng: Rng) -> anyhow::Result<Self> {
        network::lay_out()?;
        let root = Path::new(LAB_ROOT);
        let logs = root.join("logs");
        fs::create_dir_all(&logs)?;
        let device_disk = LabDisk::mount(&root.join("device"), DISK_MIB)?;
        let coordinator_disk = LabDisk::mount(&root.join("coordinator"), DISK_MIB)?;
        let device_runs = device_disk.root().join(DEVICE_RUNS);
        fs::create_dir_all(&device_runs)?;
        fs::create_dir_all(coordinator_disk.root().join(COORDINATOR_RUNS))?;
        let (broker_address, coordinator_proxy) = match broker {
            Broker::Embedded => (Side::Coordinator.address(), None),
            Broker::Mosquitto => {
                let address = keys::local_mosquitto();
                (address, Some(Proxy::start(Side::Coordinator.proxy(), address)?))
            }
        };
        let write_log = WriteLog::begin(
            &[device_disk.root(), coordinator_disk.root()],
            move |path, command_line| file_of_run(&device_runs, path, command_line),
        )?;
        keys::make_lab(coordinator_disk.root(), broker, &programs.coordinator)?;
        let mut lab = Self {
            broker,
            programs: programs.clone(),
            agent: Daemon::new(agent_program(&programs, device_disk.root()), &logs)?,
            coordinator: Daemon::new(coordinator_program(&programs, coordinator_disk.root()), &logs)?,
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
            write_log,
            requested: Vec::new(),
            full_disk: Vec::new(),
            begun: Instant::now(),
            rng: rng.clone(),
            missed: 0,
        };
        lab.configure()?;
        if let Some(mosquitto) = &mut lab.mosquitto {
            mosquitto.start()?;
        }
        lab.coordinator.start()?;
        keys::enroll(&mut lab, DEVICE, &mut rng)?;
        lab.agent.start()?;
        lab.wait_for_device()?;
        Ok(lab)
    }

    fn configure(&self) -> anyhow::Result<()> {
        let scratch = Path::new(LAB_ROOT).join("scratch");
        let coordinator = self.coordinator_disk.root();
        let config = coordinator.join("regatta.toml");
        let made = fs::read_to_string(&config)?;
        fs::write(
            &config,
            // The originals on the device are needed at the end, with any clocks. Only a full disk may remove them.
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
            .arg("--output")
            .arg(&scratch);
        shell::succeed(&mut prepare).map(drop)
    }

    /// Returns a `regatta` command in the lab's workspace, with a time limit.
    pub(crate) fn regatta(&self) -> anyhow::Result<Command> {
        let mut command = shell::command("timeout")?;
        command
            .arg(COMMAND_PATIENCE_S)
            .arg(&self.programs.coordinator)
            .arg("--workspace")
            .arg(self.coordinator_disk.root())
            .current_dir(LAB_ROOT);
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

    /// Waits for a time and supervises the daemons meanwhile.
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

    pub(crate) fn daemons(&mut self) -> impl Iterator<Item = &mut Daemon> {
        [&mut self.agent, &mut self.coordinator]
            .into_iter()
            .chain(&mut self.mosquitto)
    }

    /// Records an action with its time.
    pub(crate) fn note(&self, what: impl std::fmt::Display) {
        let seconds = self.begun.elapsed().as_secs_f64();
        let path = Path::new(LAB_ROOT).join("journal.txt");
        let journal = fs::File::options().create(true).append(true).open(path);
        // The journal only helps to read a violation.
        let _ = journal.and_then(|mut journal| writeln!(journal, "{seconds:8.2} s  {what}"));
    }

    pub(crate) fn runs(&mut self) -> anyhow::Result<Vec<ListedRun>> {
        let output = shell::succeed(self.regatta()?.args(["runs", "list", "--format", "json"]))?;
        let listed = parse_runs(&output.stdout).context("`runs list` prints JSON")?;
        for run in listed.iter().filter(|run| run.recorded.is_some()) {
            if let Some(requested) = self
                .requested
                .iter_mut()
                .find(|requested| requested.id == run.run)
            {
                requested.recorded.get_or_insert_with(Instant::now);
            }
        }
        Ok(listed)
    }

    pub(crate) fn make_device_disk_full(&mut self, is_full: bool) -> anyhow::Result<()> {
        if is_full {
            self.full_disk.push((Instant::now(), None));
            return self.device_disk.fill();
        }
        self.device_disk.free_space()?;
        if let Some((_, end)) = self.full_disk.last_mut() {
            end.get_or_insert_with(Instant::now);
        }
        Ok(())
    }

    /// Returns the device's key, from its disk.
    pub(crate) fn device_key(&self) -> anyhow::Result<Ed25519KeyPair> {
        let path = self.device_disk.root().join("state/device.key");
        let pkcs8 = fs::read(&path).with_context(|| path.display().to_string())?;
        Ed25519KeyPair::from_pkcs8(&pkcs8)
            .ok()
            .context("the device's key is not an Ed25519 key")
    }

    /// Returns a run with what is known about it, for the checker.
    pub(crate) fn as_checked<'a>(
        &self,
        run: &'a ListedRun,
        writes: &'a Writes,
        key: &'a [u8],
    ) -> CheckedRun<'a> {
        let [device, coordinator] = self.run_dirs(&run.run);
        let requested = self.requested.iter().find(|requested| requested.id == run.run);
        CheckedRun {
            id: &run.run,
            phase: &run.phase,
            reason: run.reason.as_deref().unwrap_or_default(),
            is_recorded: run.recorded.is_some(),
            is_complete: run.complete == Some(true),
            device,
            coordinator,
            writes,
            disk_was_full: requested.is_some_and(|requested| self.disk_was_full(requested)),
            key,
            answers: requested.and_then(|requested| requested.answers),
        }
    }

    fn disk_was_full(&self, run: &RequestedRun) -> bool {
        self.full_disk.iter().any(|(begin, end)| {
            run.recorded.is_none_or(|recorded| *begin <= recorded)
                && end.is_none_or(|end| end >= run.requested)
        })
    }

    pub(crate) fn request_run(&mut self) -> anyhow::Result<()> {
        let rng = &mut self.rng;
        let (work, stream) = (rng.pick(&WORK), if rng.percent(20) { "live" } else { "after" });
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
            .args(work.words.split_ascii_whitespace());
        let begun = Instant::now();
        let output = shell::succeed(&mut command)?;
        for run in parse_runs(&output.stdout).context("`run` prints JSON")? {
            self.note(format!(
                "asked for {}: {}, {duration}, {stream}",
                run.run, work.words
            ));
            self.requested.push(RequestedRun {
                id: run.run,
                requested: begun,
                recorded: None,
                answers: work.answers,
            });
        }
        Ok(())
    }

    pub(crate) fn run_dirs(&self, run: &str) -> [PathBuf; 2] {
        let [device, coordinator] = self.runs_dirs();
        [device.join(run), coordinator.join(run)]
    }

    pub(crate) fn runs_dirs(&self) -> [PathBuf; 2] {
        [
            self.device_disk.root().join(DEVICE_RUNS),
            self.coordinator_disk.root().join(COORDINATOR_RUNS),
        ]
    }
}

/// The kinds of runs: several engines, logs that grow or come at once, and small and large ones.
const WORK: [Work; 5] = [
    Work {
        words: "--benchmark digits --engine sim --scenario SingleStream --mode PerformanceOnly",
        answers: None,
    },
    Work {
        words: "--benchmark digits --engine tract --scenario Offline --mode AccuracyOnly",
        answers: Some(597),
    },
    Work {
        words: "--benchmark digits --engine sim --scenario Server --mode PerformanceOnly",
        answers: None,
    },
    Work {
        words: "--benchmark bulky --engine null --scenario Offline --mode AccuracyOnly",
        answers: Some(30_000),
    },
    Work {
        words: "--benchmark bulky --engine null --scenario SingleStream --mode AccuracyOnly",
        answers: Some(30_000),
    },
];

fn agent_program(programs: &Programs, root: &Path) -> Program {
    Program {
        name: "agent",
        namespace: Some(Side::Device.namespace()),
        line: vec![
            programs.agent.clone(),
            "serve".into(),
            "--config".into(),
            root.join("agent.toml"),
        ],
        directory: root.to_owned(),
        may_give_up: true,
    }
}

fn coordinator_program(programs: &Programs, root: &Path) -> Program {
    Program {
        name: "coordinator",
        namespace: Some(Side::Coordinator.namespace()),
        line: vec![
            programs.coordinator.clone(),
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
