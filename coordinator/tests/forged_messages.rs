//! Tests of messages that a device did not send: a foreign broker, and a local user of a workspace without TLS, can publish anything in a
//! device's name. Forged messages delay a run and lose none: once the forger is silent, every run ends complete and signed.

#![expect(clippy::unwrap_used, reason = "test code")]

mod support;

use std::{collections::BTreeMap, fs, time::Duration};

use regatta_types::{
    DeviceId, RunId,
    documents::{RunPhase, RunState},
};
use regatta_wire::{
    chunk::{Chunk, MAX_DATA},
    message::{Command, Hello, Inventory, Message, StateReport, StreamEnd},
    topic::{Leaf, Topic},
};
use sha2::{Digest as _, Sha256};
use support::{
    Dice,
    coordinator::Coordinator,
    delivering::{Faults, SUMMARY, VALID},
    device::SimulatedDevice,
    eventually,
};

const STREAMS: [&str; 6] = [
    "mlperf_log_detail.txt",
    "mlperf_log_accuracy.json",
    SUMMARY,
    "run.log",
    "evidence.json",
    "evidence.sig",
];

/// A client of the broker that publishes in the name of a device whose key it does not have.
struct Forger {
    client: SimulatedDevice,
    victim: DeviceId,
}

impl Forger {
    fn of(coordinator: &Coordinator, victim: &SimulatedDevice) -> Self {
        Self {
            client: SimulatedDevice::connect(coordinator.port, 99),
            victim: victim.id.clone(),
        }
    }

    fn say(&self, leaf: Leaf, frame: Vec<u8>) {
        let device = self.victim.clone();
        self.client
            .publish(&Topic { device, leaf }.to_string(), frame, false);
    }

    fn state(&self, run: RunId, phase: RunPhase, revision: u64, streams: &[&str]) {
        let report = StateReport {
            run,
            state: RunState {
                phase,
                reason: Some("forged".to_owned()),
                revision,
            },
            streams: streams.iter().map(|name| name.parse().unwrap()).collect(),
        };
        self.say(Leaf::State(run), report.to_frame().unwrap());
    }

    fn chunk(&self, run: RunId, stream: &str, offset: u64, data: &[u8]) {
        let leaf = Leaf::Log(run, stream.parse().unwrap());
        self.say(leaf, Chunk { offset, data }.to_frame().unwrap());
    }

    fn end(&self, run: RunId, stream: &str, content: &[u8]) {
        let end = StreamEnd {
            length: content.len() as u64,
            sha256: Sha256::digest(content).into(),
        };
        self.say(Leaf::Log(run, stream.parse().unwrap()), end.to_frame().unwrap());
    }

    fn inventory(&self, session: u64, number: u32) {
        let inventory = Inventory {
            session,
            number,
            page: 0,
            pages: 1,
            newest_command: u64::MAX,
            runs: Vec::new(),
        };
        self.say(Leaf::Telemetry, inventory.to_frame().unwrap());
    }

    /// Waits until the coordinator has processed all earlier messages of this client.
    fn wait_until_heard(&self, coordinator: &Coordinator) {
        self.client.say_hello(Vec::new());
        eventually("the forger's own hello", 30, || {
            let listed = coordinator.json(&["device", "list"]);
            let mut devices = listed["devices"].as_array().unwrap().clone().into_iter();
            devices.find(|found| found["device"] == self.client.id.to_string())
        });
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// A run that has ended on its device and is not delivered yet.
struct EndedRun {
    coordinator: Coordinator,
    device: SimulatedDevice,
    forger: Forger,
    id: RunId,
    files: BTreeMap<String, Vec<u8>>,
}

impl EndedRun {
    fn new() -> Self {
        Self::with("")
    }

    /// With more lines of `regatta.toml`.
    fn with(settings: &str) -> Self {
        let mut coordinator = Coordinator::embedded();
        let config = coordinator.path("regatta.toml");
        let text = fs::read_to_string(&config).unwrap();
        fs::write(&config, format!("{text}{settings}")).unwrap();
        coordinator.serve();
        let mut device = coordinator.join(1);
        let forger = Forger::of(&coordinator, &device);
        let requested = coordinator.request_run_of(&device);
        let (id, spec_json) = device.next_start();
        assert_eq!(requested, id.to_string());
        device.tell(id, RunPhase::Running, &[]);
        let files = sealed_files(&device, id, &spec_json, 3);
        Self {
            coordinator,
            device,
            forger,
            id,
            files,
        }
    }

    /// Delivers the run as its device does, and expects a complete and signed record.
    fn deliver(mut self) {
        let names: Vec<&str> = self.files.keys().map(String::as_str).collect();
        self.device.tell(self.id, RunPhase::Draining, &names);
        self.device
            .deliver(self.id, &self.files, Faults::default(), &mut Dice::new(5), |_| {});
        self.device.tell(self.id, RunPhase::Done, &names);
        expect_complete(&self.coordinator, self.id, &self.files);
    }
}

fn sealed_files(
    device: &SimulatedDevice,
    run: RunId,
    spec_json: &[u8],
    seed: u64,
) -> BTreeMap<String, Vec<u8>> {
    let mut dice = Dice::new(seed);
    let mut files = BTreeMap::from([
        ("mlperf_log_detail.txt".to_owned(), dice.bytes(150_000)),
        ("mlperf_log_accuracy.json".to_owned(), Vec::new()),
        (SUMMARY.to_owned(), VALID.to_vec()),
        ("run.log".to_owned(), dice.bytes(20_001)),
    ]);
    device.seal(run, spec_json, &mut files);
    files
}

fn expect_complete(coordinator: &Coordinator, run: RunId, files: &BTreeMap<String, Vec<u8>>) {
    let run = run.to_string();
    let record = coordinator.record(&run);
    assert_eq!(record["delivery"]["complete"], true, "{record:#}");
    assert_eq!(record["evidence_signature_valid"], true, "{record:#}");
    assert_eq!(record["state"]["phase"], "done", "{record:#}");
    assert!(
        record["contradictions"].as_array().is_none_or(Vec::is_empty),
        "{record:#}"
    );
    assert_eq!(
        record["delivery"]["streams"].as_array().unwrap().len(),
        files.len(),
        "only the run's own files: {record:#}"
    );
    for (name, content) in files {
        assert_eq!(coordinator.file(&run, name).as_ref(), Some(content), "{name}");
    }
    assert!(coordinator.output(&["runs", "verify", &run]).status.success());
}

#[test]
fn forged_ends_of_streams_lose_no_run() {
    let run = EndedRun::new();
    for stream in STREAMS {
        run.forger.end(run.id, stream, b"");
    }
    run.forger.wait_until_heard(&run.coordinator);
    run.deliver();
}

#[test]
fn forged_prefixes_of_streams_lose_no_run() {
    let run = EndedRun::new();
    for stream in STREAMS {
        let content = &run.files[stream];
        let prefix = &content[..content.len().min(10)];
        run.forger.chunk(run.id, stream, 0, prefix);
        run.forger.end(run.id, stream, prefix);
    }
    run.forger.wait_until_heard(&run.coordinator);
    run.deliver();
}

#[test]
fn a_forged_state_with_the_highest_revision_holds_up_no_run() {
    let run = EndedRun::new();
    run.forger.state(run.id, RunPhase::Running, u64::MAX, &[]);
    run.forger.wait_until_heard(&run.coordinator);
    run.deliver();
}

#[test]
fn a_forged_end_with_a_forged_file_records_no_run() {
    let run = EndedRun::new();
    run.forger.chunk(run.id, "x.txt", 0, b"forged");
    run.forger.end(run.id, "x.txt", b"forged");
    run.forger.state(run.id, RunPhase::Done, u64::MAX, &["x.txt"]);
    run.forger.wait_until_heard(&run.coordinator);
    std::thread::sleep(Duration::from_secs(2));
    run.deliver();
}

#[test]
fn forged_streams_take_no_slot_of_the_runs_files() {
    let run = EndedRun::new();
    for number in 0..80 {
        run.forger
            .chunk(run.id, &format!("forged-{number}"), 0, b"forged");
    }
    run.forger.wait_until_heard(&run.coordinator);
    run.deliver();
}

#[test]
fn forged_streams_take_no_space_of_the_runs_files() {
    let run = EndedRun::with("max_run_mib = 1\n");
    for (number, stream) in ["forged", "run.log"].into_iter().cycle().take(32).enumerate() {
        let offset = (number / 2 * MAX_DATA) as u64;
        run.forger.chunk(run.id, stream, offset, &[7; MAX_DATA]);
    }
    run.forger.wait_until_heard(&run.coordinator);
    run.deliver();
}

/// Chunks beyond a signed end are not written, so they need no space.
#[test]
fn chunks_beyond_a_streams_end_take_no_space_of_the_runs_files() {
    let run = EndedRun::with("max_run_mib = 1\n");
    let content = &run.files["run.log"];
    let end = StreamEnd {
        length: content.len() as u64,
        sha256: Sha256::digest(content).into(),
    };
    let leaf = Leaf::Log(run.id, "run.log".parse().unwrap());
    run.device.say(leaf, end.to_frame().unwrap(), false);
    eventually("the end to be heard", 30, || {
        run.device.has_heard_of(run.id).then_some(())
    });
    for _ in 0..32 {
        run.forger.chunk(run.id, "run.log", 0, &[7; MAX_DATA]);
    }
    run.forger.wait_until_heard(&run.coordinator);
    run.deliver();
}

#[test]
fn forged_inventories_and_hellos_change_nothing_about_a_device() {
    let run = EndedRun::new();
    for (number, session) in [7, 8, 7, 8, 9].into_iter().enumerate() {
        run.forger.inventory(session, u32::try_from(number).unwrap());
    }
    let forged = Hello {
        online: false,
        engines: Vec::new(),
        agent: "forged".to_owned(),
        ..run.device.hello(Vec::new())
    };
    run.forger.say(Leaf::Hello, forged.to_frame().unwrap());
    run.forger.wait_until_heard(&run.coordinator);
    let listed = run
        .coordinator
        .json(&["device", "health", run.device.id.as_str()]);
    assert_eq!(listed["devices"][0]["health"], "good", "{listed:#}");
    let listed = run.coordinator.json(&["device", "list"]);
    let devices = listed["devices"].as_array().unwrap();
    let victim = devices
        .iter()
        .find(|found| found["device"] == run.device.id.to_string())
        .unwrap();
    assert_eq!(victim["online"], true, "{victim:#}");
    assert_eq!(victim["agent"], "simulated", "{victim:#}");
    run.deliver();
}

#[test]
fn only_the_coordinator_commands_devices_of_a_workspace_without_tls() {
    let run = EndedRun::new();
    for command in [Command::Release, Command::Forget] {
        run.forger.say(Leaf::Command(run.id), command.to_frame().unwrap());
    }
    run.forger.wait_until_heard(&run.coordinator);
    run.device.expect_no_command(run.id);
    run.deliver();
}

/// Any mixture of forgeries before and during a delivery. `REGATTA_FORGED_RUNS` sets the number of runs.
#[test]
fn every_run_ends_complete_and_signed_when_the_forger_is_silent() {
    let runs = std::env::var("REGATTA_FORGED_RUNS").ok();
    let runs = runs.and_then(|count| count.parse().ok()).unwrap_or(6_u64);
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let mut device = coordinator.join(1);
    let forger = Forger::of(&coordinator, &device);
    for seed in 1..=runs {
        println!("seed {seed}");
        let mut dice = Dice::new(seed * 7919);
        coordinator.request_run_of(&device);
        let (id, spec_json) = device.next_start();
        let files = sealed_files(&device, id, &spec_json, seed);
        let names: Vec<&str> = files.keys().map(String::as_str).collect();
        for phase in [RunPhase::Preparing, RunPhase::Running, RunPhase::Draining] {
            (0..dice.below(30)).for_each(|_| forge(&forger, &device, id, &files, &mut dice));
            let listed = if phase == RunPhase::Draining {
                &names[..]
            } else {
                &[]
            };
            device.tell(id, phase, listed);
        }
        let mut forgeries = Dice::new(seed);
        device.deliver(id, &files, Faults::ALL, &mut dice, |round| {
            if round < 10 {
                forge(&forger, &device, id, &files, &mut forgeries);
            }
        });
        device.tell(id, RunPhase::Done, &names);
        expect_complete(&coordinator, id, &files);
    }
}

/// Publishes one forged message about a run, or one that its device has signed before.
fn forge(
    forger: &Forger,
    device: &SimulatedDevice,
    run: RunId,
    files: &BTreeMap<String, Vec<u8>>,
    dice: &mut Dice,
) {
    let own = STREAMS[dice.below(STREAMS.len() as u64) as usize];
    let foreign = format!("forged-{}", dice.below(100));
    let stream = if dice.hits(3) { foreign.as_str() } else { own };
    let content = files.get(stream).map_or(&b"forged"[..], Vec::as_slice);
    let at = dice.below(content.len() as u64 + 1) as usize;
    match dice.below(9) {
        0 => forger.end(run, stream, b""),
        1 => forger.end(run, stream, &content[..at]),
        2 => forger.chunk(run, stream, at as u64, &dice.bytes(5_000)),
        3 => forger.chunk(run, stream, 0, &content[..at.min(MAX_DATA)]),
        4 => forger.state(run, RunPhase::Running, u64::MAX - dice.below(3), &[]),
        5 => forger.state(run, RunPhase::Done, u64::MAX, &[own, &foreign]),
        6 => forger.state(run, RunPhase::Failed, dice.below(9), &[]),
        7 => forger.inventory(dice.below(3), dice.below(9) as u32),
        _ => {
            let recorded = device.reports();
            let (topic, payload) = &recorded[dice.below(recorded.len() as u64) as usize];
            forger.client.publish(&topic.to_string(), payload.clone(), false);
        }
    }
}

/// The evidence alone ends a run whose state does not arrive, and drops what it does not list.
#[test]
fn signed_evidence_ends_a_run_whose_states_are_withheld() {
    let run = EndedRun::new();
    run.forger.chunk(run.id, "forged.txt", 0, b"forged");
    run.device
        .deliver(run.id, &run.files, Faults::default(), &mut Dice::new(5), |_| {});
    expect_complete(&run.coordinator, run.id, &run.files);
}

/// A device delivered another file than its evidence lists, with a signed end. It is requested again, and then it is right.
#[test]
fn signed_evidence_resets_a_stream_that_it_contradicts() {
    let mut run = EndedRun::new();
    let mut other = run.files.clone();
    other.insert("run.log".to_owned(), b"not what the evidence lists".to_vec());
    let names: Vec<&str> = run.files.keys().map(String::as_str).collect();
    run.device.tell(run.id, RunPhase::Draining, &names);
    run.device
        .deliver(run.id, &other, Faults::default(), &mut Dice::new(5), |_| {});
    run.device.tell(run.id, RunPhase::Done, &names);
    let requested = run.device.wait_for_command(
        run.id,
        |command| matches!(command, Command::Resend { streams } if !streams.is_empty()),
    );
    let streams = vec!["run.log".parse().unwrap()];
    assert_eq!(requested, Command::Resend { streams });
    let right = BTreeMap::from([("run.log".to_owned(), run.files["run.log"].clone())]);
    run.device
        .deliver(run.id, &right, Faults::default(), &mut Dice::new(5), |_| {});
    expect_complete(&run.coordinator, run.id, &run.files);
}

/// Inventories that a broker has recorded and sends again do not make a device look duplicated.
#[test]
fn repeated_inventories_quarantine_no_device() {
    let run = EndedRun::new();
    for session in [1, 2, 3] {
        run.device.say_inventory(session, &[run.id]);
    }
    let recorded = run.device.reports();
    for _ in 0..2 {
        for (topic, payload) in &recorded {
            run.forger
                .client
                .publish(&topic.to_string(), payload.clone(), false);
        }
    }
    run.forger.wait_until_heard(&run.coordinator);
    let listed = run
        .coordinator
        .json(&["device", "health", run.device.id.as_str()]);
    assert_eq!(listed["devices"][0]["health"], "good", "{listed:#}");
    run.deliver();
}

/// A coordinator that restarts still knows which inventories it has had.
#[test]
fn repeated_inventories_quarantine_no_device_after_a_restart() {
    let mut run = EndedRun::new();
    for session in [2, 3] {
        run.device.say_inventory(session, &[run.id]);
    }
    run.forger.wait_until_heard(&run.coordinator);
    let recorded = run.device.reports();
    run.coordinator.kill();
    run.coordinator.serve();
    run.device.say_inventory(3, &[run.id]);
    run.device.say(
        Leaf::Hello,
        run.device.hello(vec![run.id]).to_frame().unwrap(),
        true,
    );
    let is_online =
        |found: &serde_json::Value| found["device"] == run.device.id.to_string() && found["online"] == true;
    eventually("the device", 30, || {
        let listed = run.coordinator.json(&["device", "list"]);
        listed["devices"]
            .as_array()
            .unwrap()
            .iter()
            .any(is_online)
            .then_some(())
    });
    let inventories = recorded.iter().filter(|(topic, _)| topic.leaf == Leaf::Telemetry);
    for (topic, payload) in inventories {
        run.forger
            .client
            .publish(&topic.to_string(), payload.clone(), false);
    }
    std::thread::sleep(Duration::from_secs(1));
    run.device.say_inventory(3, &[run.id]);
    std::thread::sleep(Duration::from_secs(1));
    let listed = run
        .coordinator
        .json(&["device", "health", run.device.id.as_str()]);
    assert_eq!(listed["devices"][0]["health"], "good", "{listed:#}");
    run.deliver();
}

/// A device lists another device's run in its hello.
#[test]
fn a_device_makes_the_coordinator_forget_no_run_of_another() {
    let mut coordinator = Coordinator::embedded();
    let config = coordinator.path("regatta.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{text}keep_on_device_hours = 0\n")).unwrap();
    coordinator.serve();
    let mut honest = coordinator.join(1);
    let other = coordinator.join(2);
    coordinator.request_run_of(&honest);
    let (run, _) = honest.play(Faults::default(), &mut Dice::new(3));
    let is = |expected: Command| move |command: &Command| *command == expected;
    honest.wait_for_command(run, is(Command::Forget));
    other.say_hello(vec![run]);
    std::thread::sleep(Duration::from_secs(1));
    honest.expect_no_command(run);
    // The device itself has not received it, and receives it again.
    honest.say_hello(vec![run]);
    honest.wait_for_command(run, is(Command::Forget));
}

/// A run that its device reports as running although it never ends, and that nothing else can end.
#[test]
fn force_records_a_run_while_its_device_is_online() {
    let run = EndedRun::new();
    let id = run.id.to_string();
    let refused = run.coordinator.output(&["runs", "give-up", &id, "--yes"]);
    assert!(!refused.status.success());
    let hint = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(hint.contains("--force"), "{hint}");
    let answer = run
        .coordinator
        .json(&["runs", "give-up", &id, "--yes", "--force"]);
    assert_eq!(answer["abandoned"][0], id, "{answer:#}");
    let record = run.coordinator.record(&id);
    assert_eq!(record["state"]["phase"], "failed");
    run.device
        .wait_for_command(run.id, |command| matches!(command, Command::Abort { .. }));
}
