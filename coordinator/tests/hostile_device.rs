//! Tests of a device that sends as much as it can: the others keep their connections, the coordinator its time, and the
//! workstation its disk.

#![expect(clippy::unwrap_used, reason = "test code")]

mod support;

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use regatta_types::{
    RunId,
    documents::{DeviceFacts, RunPhase, RunState},
};
use regatta_wire::{
    chunk::MAX_DATA,
    message::{BoardReadings, Heartbeat, Hello, Inventory, Message as _, StateReport},
    topic::Leaf,
};
use support::{Dice, coordinator::Coordinator, delivering::Faults, device::SimulatedDevice, eventually};

const HOSTILE: u8 = 66;

/// Lets a hostile device publish with `publish`, and `work` run beside it when `flood` messages have been sent. Returns the number of
/// messages, and the result of `work`.
fn meanwhile<T>(
    publish: impl Fn(&SimulatedDevice, u64) + Send + 'static,
    port: u16,
    flood: u64,
    work: impl FnOnce() -> T,
) -> (u64, T) {
    let (is_over, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (over, counted) = (Arc::clone(&is_over), Arc::clone(&count));
    // This thread is not joined: the broker may delay a publication for any time.
    std::thread::spawn(move || {
        let device = SimulatedDevice::connect(port, HOSTILE);
        while !over.load(Ordering::Relaxed) {
            publish(&device, counted.fetch_add(1, Ordering::Relaxed));
        }
    });
    eventually("the flood", 60, || {
        (count.load(Ordering::Relaxed) >= flood).then_some(())
    });
    let done = work();
    is_over.store(true, Ordering::Relaxed);
    (count.load(Ordering::Relaxed), done)
}

/// Several times what a device may send at once: 64 hellos and 1,024 messages of other kinds.
const HELLO_FLOOD: u64 = 300;
const MESSAGE_FLOOD: u64 = 3_000;

/// Delivers one honest run during a flood of so many messages.
fn a_run_arrives_while(flood: u64, publish: impl Fn(&SimulatedDevice, u64) + Send + 'static) -> Coordinator {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let mut honest = known_device(&coordinator);
    let (count, took) = meanwhile(publish, coordinator.port, flood, || {
        let begun = Instant::now();
        let run = coordinator.request_run_of(&honest);
        let (_, files) = honest.play(Faults::default(), &mut Dice::new(3));
        let record = coordinator.record(&run);
        assert_eq!(record["delivery"]["complete"], true, "{record}");
        for (name, content) in &files {
            assert_eq!(coordinator.file(&run, name).as_ref(), Some(content), "{name}");
        }
        begun.elapsed()
    });
    println!("the run took {took:?} beside {count} messages");
    assert!(count > flood, "the flood ended before the run");
    assert!(took < Duration::from_secs(20), "{took:?}");
    coordinator
}

#[test]
fn a_flood_of_hellos_holds_up_no_other_device() {
    let begun = Instant::now();
    let coordinator = a_run_arrives_while(HELLO_FLOOD, |device, count| {
        let runs = (0..count % 3).map(run_number).collect();
        device.say_hello(runs);
    });
    // The number of messages that reach the ingest, each with a commit, does not depend on the number sent.
    let allowed = 90 + 10 * i64::try_from(begun.elapsed().as_secs()).unwrap();
    let store = rusqlite::Connection::open(coordinator.path("regatta.db")).unwrap();
    let taken: i64 = store
        .query_row("SELECT max(hellos) FROM devices", [], |row| row.get(0))
        .unwrap();
    assert!((2..=allowed).contains(&taken), "{taken} of at most {allowed}");
}

#[test]
fn a_flood_of_another_wire_version_holds_up_no_other_device() {
    a_run_arrives_while(HELLO_FLOOD, |device, count| {
        let mut hello = device.hello(Vec::new()).to_frame().unwrap();
        hello[4] = 2 + (count % 2) as u8;
        device.say_as_is(Leaf::Hello, hello, true);
    });
}

#[test]
fn a_flood_of_states_and_heartbeats_displaces_no_other_devices_state() {
    a_run_arrives_while(MESSAGE_FLOOD, |device, count| {
        let run = run_number(count);
        let state = StateReport {
            run,
            state: RunState {
                phase: RunPhase::Running,
                reason: None,
                revision: 1,
            },
            streams: Vec::new(),
        };
        device.say(Leaf::State(run), state.to_frame().unwrap(), true);
        let heartbeat = Heartbeat {
            sequence: count,
            uptime_ms: count,
            running: None,
            spooled_bytes: 0,
            readings: BoardReadings::default(),
        };
        device.say(Leaf::Telemetry, heartbeat.to_frame().unwrap(), false);
    });
}

/// An inventory costs the ingest several statements for each of its runs.
#[test]
fn a_flood_of_inventories_holds_up_no_other_device() {
    a_run_arrives_while(HELLO_FLOOD, |device, count| {
        let first = count * Inventory::RUNS_PER_PAGE as u64;
        let runs: Vec<RunId> = (first..).take(Inventory::RUNS_PER_PAGE).map(run_number).collect();
        device.say_inventory(u64::from(HOSTILE), &runs);
    });
}

#[test]
fn a_recorded_run_gets_no_new_stream() {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let mut device = known_device(&coordinator);
    let run = coordinator.request_run("PerformanceOnly");
    let (id, _) = device.play(Faults::default(), &mut Dice::new(3));
    coordinator.record(&run);
    let before = coordinator.file(&run, "run.log");
    device.send_chunk(id, "more", 0, &[7; MAX_DATA]);
    device.send_chunk(
        id,
        "run.log",
        before.as_ref().unwrap().len() as u64,
        &[7; MAX_DATA],
    );
    eventually("the coordinator to refuse it", 30, || {
        coordinator
            .printed()
            .contains("new stream of a run that has been recorded")
            .then_some(())
    });
    let dir = coordinator.path(&format!("runs/{run}"));
    assert!(!dir.join("partial/more").exists() && !dir.join("files/more").exists());
    assert_eq!(coordinator.file(&run, "run.log"), before);
}

#[test]
fn a_run_has_its_bytes_and_no_more_and_other_runs_have_theirs() {
    let mut coordinator = Coordinator::embedded();
    configure(&coordinator, "max_run_mib = 2");
    coordinator.serve();
    let mut device = known_device(&coordinator);
    let run = coordinator.request_run("PerformanceOnly");
    let (id, _) = device.next_start();
    device.tell(id, RunPhase::Running, &[]);
    for stream in ["a", "b", "c"] {
        for offset in (0..2 << 20).step_by(MAX_DATA) {
            device.send_chunk(id, stream, offset, &[7; MAX_DATA]);
        }
    }
    eventually("the coordinator to refuse it", 30, || {
        coordinator
            .printed()
            .contains("run that is too large")
            .then_some(())
    });
    device.tell(id, RunPhase::Failed, &[]);
    coordinator.record(&run);
    let on_disk: u64 = ["a", "b", "c"]
        .iter()
        .filter_map(|name| fs::metadata(coordinator.path(&format!("runs/{run}/partial/{name}"))).ok())
        .map(|file| file.len())
        .sum();
    assert!((1 << 20..=2 << 20).contains(&on_disk), "{on_disk}");
    let run = coordinator.request_run("PerformanceOnly");
    device.play(Faults::default(), &mut Dice::new(3));
    assert_eq!(coordinator.record(&run)["delivery"]["complete"], true);
}

#[test]
fn logs_leave_the_last_of_the_disk_free_and_arrive_when_there_is_space() {
    let mut coordinator = Coordinator::embedded();
    configure(&coordinator, "min_free_mib = 4294967295");
    coordinator.serve();
    let mut device = known_device(&coordinator);
    let run = coordinator.request_run("PerformanceOnly");
    let (id, _) = device.next_start();
    device.tell(id, RunPhase::Running, &[]);
    device.send_chunk(id, "log", 0, &[7; 1000]);
    eventually("the coordinator to refuse it", 30, || {
        coordinator
            .printed()
            .contains("stay free; hint: free space")
            .then_some(())
    });
    assert!(!coordinator.path(&format!("runs/{run}/partial/log")).exists());
    assert!(!device.has_heard_of(id), "nothing is acknowledged");
    coordinator.kill();
    configure(&coordinator, "min_free_mib = 0");
    coordinator.serve();
    device.pour(id, "log", &[7; 100_000], 1 << 20);
    assert_eq!(coordinator.file(&run, "log").unwrap(), [7; 100_000]);
}

#[test]
fn device_texts_are_escaped_in_output() {
    const EVIL: &str = "a\u{1b}[2J\u{9b}1m\u{202e}b\nPASS";
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let device = SimulatedDevice::connect(coordinator.port, 1);
    let facts = DeviceFacts {
        hostname: EVIL.to_owned(),
        model: EVIL.to_owned(),
        os: EVIL.to_owned(),
        ..DeviceFacts::default()
    };
    let hello = Hello {
        name: EVIL.to_owned(),
        agent: EVIL.to_owned(),
        facts_json: serde_json::to_vec(&facts).unwrap(),
        ..device.hello(Vec::new())
    };
    device.say(Leaf::Hello, hello.to_frame().unwrap(), true);
    eventually("the device", 30, || {
        let devices = coordinator.json(&["device", "list"]);
        (devices["devices"].as_array().unwrap().len() == 1).then_some(())
    });
    let run = coordinator.request_run("PerformanceOnly");
    let (id, _) = device.next_start();
    let state = RunState {
        phase: RunPhase::Failed,
        reason: Some(EVIL.to_owned()),
        revision: 1,
    };
    let streams = Vec::new();
    let report = StateReport {
        run: id,
        state,
        streams,
    };
    device.say(Leaf::State(id), report.to_frame().unwrap(), true);
    coordinator.record(&run);
    let id = device.id.as_str();
    for words in [
        ["device", "list"].as_slice(),
        &["device", "show", id],
        &["device", "show", id, "--format", "json"],
        &["runs", "list"],
        &["runs", "show", &run],
        &["runs", "show", &run, "--format", "json"],
        &["device", "show", EVIL],
    ] {
        let output = coordinator.output(words);
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8(printed).unwrap();
        assert!(
            !printed.contains(['\u{1b}', '\u{9b}', '\u{202e}']),
            "{words:?}: {printed:?}"
        );
        if !words.contains(&EVIL) {
            assert!(
                !printed.lines().any(|line| line.starts_with("PASS")),
                "{words:?}: {printed:?}"
            );
        }
    }
    assert!(
        !coordinator.printed().contains('\u{1b}'),
        "{}",
        coordinator.printed()
    );
}

/// Connects a device that has sent its hello.
fn known_device(coordinator: &Coordinator) -> SimulatedDevice {
    let device = SimulatedDevice::connect(coordinator.port, 1);
    device.say_hello(Vec::new());
    eventually("the device", 30, || {
        let devices = coordinator.json(&["device", "list"]);
        (devices["devices"].as_array().unwrap().len() == 1).then_some(())
    });
    device
}

/// Adds a line to the configuration, in place of the one of that name.
fn configure(coordinator: &Coordinator, line: &str) {
    let path = coordinator.path("regatta.toml");
    let name = line.split(' ').next().unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let kept: Vec<&str> = text.lines().filter(|old| !old.starts_with(name)).collect();
    fs::write(path, format!("{}\n{line}\n", kept.join("\n"))).unwrap();
}

fn run_number(number: u64) -> RunId {
    format!("01930e7a-6f00-7000-8000-{number:012x}").parse().unwrap()
}
