//! Tests of a run whose files would end the coordinator: large logs need a bounded part of the memory, and a run whose judging ends the
//! process is set aside after the second time.

#![expect(clippy::unwrap_used, reason = "test code")]

mod support;

use std::{collections::BTreeMap, path::Path, process::Command, thread::sleep, time::Duration};

use regatta_test_support::strace::Strace;
use regatta_types::{
    RunId,
    documents::{FileProof, RunPhase},
};
use support::{
    Dice,
    coordinator::Coordinator,
    delivering::{Faults, SUMMARY},
    device::SimulatedDevice,
    eventually,
};

/// The address space of a coordinator whose memory is limited, in bytes. Its threads' stacks and the allocator reserve a part of it.
const ADDRESS_SPACE: u64 = 1 << 30;

fn limited(coordinator: &Coordinator) -> Command {
    let serve = coordinator.regatta(&["serve"]);
    let mut command = Command::new("prlimit");
    command
        .arg(format!("--as={ADDRESS_SPACE}"))
        .arg(serve.get_program());
    command.args(serve.get_args());
    // Each thread's arena reserves 64 MiB of addresses.
    command.env("MALLOC_ARENA_MAX", "2");
    command
}

/// Sends the files of a run that has ended.
fn deliver(device: &mut SimulatedDevice, run: RunId, spec_json: &[u8], large: (&str, Vec<u8>)) {
    device.tell(run, RunPhase::Running, &[]);
    let mut files = BTreeMap::from([(large.0.to_owned(), large.1)]);
    device.seal(run, spec_json, &mut files);
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    device.tell(run, RunPhase::Draining, &names);
    for (name, content) in &files {
        device.pour(run, name, content, 1 << 20);
    }
    device.tell(run, RunPhase::Done, &names);
}

#[test]
fn large_logs_are_recorded_with_a_reason_in_bounded_memory() {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve_by(limited(&coordinator));
    let mut device = coordinator.join(1);
    let (list, record) = (
        format!(
            ":::MLLOG {{\"key\": \"k\", \"value\": [{}], \"metadata\": {{\"is_error\": false}}}}\n",
            ["0"; 15_000_000].join(",")
        ),
        ":::MLLOG {\"key\": \"k\", \"value\": 0, \"metadata\": {\"is_error\": false}}\n".repeat(500_000),
    );
    let logs = [
        (SUMMARY, b"a\n".repeat(24 << 20), "no result"),
        ("mlperf_log_detail.txt", list.into_bytes(), ""),
        ("mlperf_log_detail.txt", record.into_bytes(), ""),
    ];
    for (name, content, expected) in logs {
        let run = coordinator.request_run("PerformanceOnly");
        let (id, spec_json) = device.next_start();
        deliver(&mut device, id, &spec_json, (name, content));
        let record = coordinator.record(&run);
        assert_eq!(record["state"]["phase"], "done", "{record:#}");
        let not_judged = record["not_judged"].to_string();
        assert!(not_judged.contains(expected), "{name}: {record:#}");
        println!("{name}: {not_judged}, {} MiB", coordinator.peak_memory() >> 20);
    }
}

/// Sends the files of a run, but not that it has ended. Returns the names of the files.
fn deliver_all_but_the_end(device: &mut SimulatedDevice, run: RunId, spec_json: &[u8]) -> Vec<String> {
    device.tell(run, RunPhase::Running, &[]);
    let mut files = BTreeMap::from([(SUMMARY.to_owned(), support::delivering::VALID.to_vec())]);
    device.seal(run, spec_json, &mut files);
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    device.tell(run, RunPhase::Draining, &names);
    device.deliver(run, &files, Faults::default(), &mut Dice::new(1), |_| {});
    files.into_keys().collect()
}

fn tell_end(device: &mut SimulatedDevice, run: RunId, names: &[String]) {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    device.tell(run, RunPhase::Done, &names);
}

/// Starts a coordinator that ends whenever it opens a file.
fn serve_until_it_opens(coordinator: &mut Coordinator, strace: &Strace, path: &Path) {
    let serve = coordinator.regatta(&["serve"]);
    let program = serve.get_program().to_str().unwrap();
    let mut traced = strace.before(program, &[path], "openat:signal=KILL");
    traced.args(serve.get_args());
    coordinator.serve_by(traced);
}

/// Starts the coordinator until it records the run, which must not end it more than twice.
fn end_twice(coordinator: &mut Coordinator, run: &str, mut start: impl FnMut(&mut Coordinator)) {
    // The signed evidence suffices for judging, so an earlier kill may have been the first end.
    let mut ends = 0;
    while {
        start(coordinator);
        eventually("the coordinator to end or to record the run", 30, || {
            let is_recorded = coordinator.show(run)["recorded"].is_string();
            (is_recorded || coordinator.has_ended()).then_some(!is_recorded)
        })
    } {
        ends += 1;
        assert!(ends <= 2, "the run is judged a third time");
    }
    assert!(ends > 0, "the judging ended no process");
}

/// The older run cannot be judged, because its spec is lost, and is tried again at each start.
#[test]
fn a_run_is_set_aside_although_an_older_one_is_judged_first() {
    let Some(strace) = Strace::find() else { return };
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let [mut older, mut device] = [1, 2].map(|seed| coordinator.join(seed));
    let lost = coordinator.request_run_of(&older);
    let (lost_id, lost_spec) = older.next_start();
    std::fs::remove_file(coordinator.path(&format!("runs/{lost}/spec.json"))).unwrap();
    let valid = support::delivering::VALID.to_vec();
    deliver(&mut older, lost_id, &lost_spec, (SUMMARY, valid));
    eventually("the older run's judging to fail", 30, || {
        coordinator
            .printed()
            .contains("cannot record the run")
            .then_some(())
    });
    let run = coordinator.request_run_of(&device);
    let (id, spec_json) = device.next_start();
    let names = deliver_all_but_the_end(&mut device, id, &spec_json);
    coordinator.kill();
    let path = coordinator.path(&format!("runs/{run}/files/{SUMMARY}"));
    end_twice(&mut coordinator, &run, |coordinator| {
        serve_until_it_opens(coordinator, &strace, &path);
        tell_end(&mut device, id, &names);
    });
    let record = coordinator.record(&run);
    let reason = record["not_judged"][0].as_str().unwrap();
    assert!(reason.starts_with("set aside: "), "{record:#}");
    assert!(coordinator.show(&lost)["recorded"].is_null());
}

/// Whatever ends the process, the third start serves.
#[test]
fn a_run_whose_judging_ends_the_process_twice_is_set_aside() {
    let Some(strace) = Strace::find() else { return };
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let mut device = coordinator.join(1);
    let run = coordinator.request_run("PerformanceOnly");
    let (id, spec_json) = device.next_start();
    let names = deliver_all_but_the_end(&mut device, id, &spec_json);
    coordinator.kill();
    let path = coordinator.path(&format!("runs/{run}/files/{SUMMARY}"));
    let start = |coordinator: &mut Coordinator| serve_until_it_opens(coordinator, &strace, &path);
    end_twice(&mut coordinator, &run, |coordinator| {
        start(coordinator);
        tell_end(&mut device, id, &names);
    });
    let record = coordinator.record(&run);
    let reason = "set aside: the coordinator ended twice while it judged the files of this run";
    assert_eq!(record["not_judged"][0], reason, "{record:#}");
    assert_eq!(coordinator.show(&run)["cause"], "workload");
    // The device's inventory has the run, which does not reopen it.
    device.say_hello(vec![id]);
    sleep(Duration::from_secs(2));
    assert!(!coordinator.has_ended());
    assert!(coordinator.show(&run)["recorded"].is_string());
    // The store may be lost later.
    coordinator.kill();
    for name in ["regatta.db", "regatta.db-wal", "regatta.db-shm"] {
        let _ = std::fs::remove_file(coordinator.path(name));
    }
    coordinator.json(&["runs", "rebuild"]);
    start(&mut coordinator);
    device.say_hello(vec![id]);
    sleep(Duration::from_secs(2));
    assert!(!coordinator.has_ended());
    assert_eq!(coordinator.show(&run)["not_judged"][0], reason);
    coordinator.json(&["runs", "remove", &run, "--force", "--yes"]);
    assert!(!coordinator.path(&format!("runs/{run}")).exists());
    // The next run of the device is judged.
    coordinator.request_run("PerformanceOnly");
    device.play(Faults::default(), &mut Dice::new(2));
}

/// Every byte of a run is read from disk again before its record is written.
#[test]
fn small_run_is_recorded_while_a_large_one_is_judged() {
    let Some(strace) = Strace::find() else { return };
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let mut devices = [1, 2].map(|seed| coordinator.join(seed));
    let request = |device: &SimulatedDevice| {
        let words = [
            "run",
            "--benchmark",
            "digits",
            "--scenario",
            "Offline",
            "--engine",
            "null",
        ];
        let own = ["--device", device.id.as_str(), "--no-wait"];
        let requested = coordinator.json(&[&words[..], &own].concat());
        requested["runs"][0]["run"].as_str().unwrap().to_owned()
    };
    let runs = [request(&devices[0]), request(&devices[1])];
    let [large, small] = [0, 1].map(|number| devices[number].next_start());
    let path = coordinator.path(&format!("runs/{}/files/{SUMMARY}", runs[0]));
    coordinator.kill();
    // The disk of this run is slow.
    let serve = coordinator.regatta(&["serve"]);
    let program = serve.get_program().to_str().unwrap();
    let mut traced = strace.before(program, &[&path], "openat:delay_enter=10000000");
    traced.args(serve.get_args());
    coordinator.serve_by(traced);
    for (device, (run, _)) in devices.iter().zip([&large, &small]) {
        device.say_hello(vec![*run]);
    }
    let (id, spec_json) = large;
    deliver(&mut devices[0], id, &spec_json, (SUMMARY, vec![b'\n'; 65 << 20]));
    eventually("the large run to be judged", 30, || {
        let seen = strace.seen();
        let is_opened = |line: &str| line.contains("openat(") && line.contains(SUMMARY);
        seen.lines().any(is_opened).then_some(())
    });
    let (id, spec_json) = small;
    let valid = support::delivering::VALID.to_vec();
    deliver(&mut devices[1], id, &spec_json, (SUMMARY, valid));
    let record = coordinator.record(&runs[1]);
    assert_eq!(record["state"]["phase"], "done", "{record:#}");
    assert!(
        coordinator.show(&runs[0])["recorded"].is_null(),
        "the large run was first"
    );
    let record = eventually("the record of the large run", 120, || {
        let is_recorded = coordinator.show(&runs[0])["recorded"].is_string();
        is_recorded.then(|| coordinator.record(&runs[0]))
    });
    assert_eq!(record["delivery"]["complete"], true, "{record:#}");
}

/// Every file of the evidence gets a row, and would be requested from the device.
#[test]
fn evidence_lists_no_more_files_than_a_run_may_have() {
    const FILES: usize = 20_000;
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let mut device = coordinator.join(1);
    let run = coordinator.request_run("PerformanceOnly");
    let (id, spec_json) = device.next_start();
    device.tell(id, RunPhase::Running, &[]);
    let mut files = BTreeMap::from([("run.log".to_owned(), b"log".to_vec())]);
    device.seal_with(id, &spec_json, &mut files, |evidence| {
        evidence.files.extend((0..FILES).map(|number| FileProof {
            name: format!("file-{number}").parse().unwrap(),
            bytes: 0,
            sha256: "0".repeat(64),
        }));
    });
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    device.tell(id, RunPhase::Draining, &names);
    for (name, content) in &files {
        device.pour(id, name, content, 1 << 20);
    }
    device.tell(id, RunPhase::Done, &names);
    let record = coordinator.record(&run);
    assert_eq!(record["state"]["phase"], "failed", "{record:#}");
    let reason = record["state"]["reason"].as_str().unwrap();
    assert!(reason.contains("lists 20001 files"), "{reason}");
    let streams = coordinator.show(&run)["streams"].as_array().unwrap().len();
    assert_eq!(streams, files.len());
}
