//! Tests of a fleet of simulated devices in one process: each has its own identity, executes runs and delivers every byte. A fleet with
//! more devices than the lab may connect keeps those that it has.

#![expect(clippy::expect_used, reason = "test code")]

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use regatta_tests::{Broker, Lab, Process, agent, eventually, starved::Starved, succeed_output};

const DEVICES: usize = 3;

fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).expect("the run's files");
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.expect("an entry");
        let bytes = fs::read(entry.path()).expect("a file");
        (entry.file_name().to_string_lossy().into_owned(), bytes)
    };
    entries.map(read).collect()
}

fn simulate(lab: &Lab, words: &[&str]) -> Command {
    let mut command = Command::new(agent());
    command
        .args(["simulate", "--state-dir"])
        .arg(lab.scratch().join("fleet"))
        .args(words);
    command
}

/// Enrolls and starts the devices. `simulate` ends when the coordinator does not answer.
fn enroll(lab: &Lab, devices: usize) -> Process {
    let _ = lab.page_url();
    let count = devices.to_string();
    let tokens = succeed_output(
        lab.regatta()
            .args(["device", "add", "boat-sim", "--count", &count]),
    );
    let path = lab.scratch().join("tokens");
    fs::write(&path, &tokens.stdout).expect("the tokens");
    let path = path.to_string_lossy().into_owned();
    let words = ["--devices", &count, "--tokens", &path, "--concurrent-runs", "1"];
    Process::start(&mut simulate(lab, &words), &lab.scratch().join("fleet.log"))
}

/// Returns the names of the devices that are online.
fn online(lab: &Lab) -> Vec<String> {
    let listed = lab.json(&["device", "list"])["devices"].clone();
    let devices = listed.as_array().cloned().unwrap_or_default();
    let online = devices.iter().filter(|device| device["online"] == true);
    online.map(|device| device["name"].to_string()).collect()
}

#[test]
fn a_fleet_that_is_too_large_keeps_its_connections_and_says_what_to_do() {
    let Some(mut lab) = Lab::secure(Broker::Embedded) else {
        return;
    };
    let config = lab.workspace().join("regatta.toml");
    let settings = fs::read_to_string(&config).expect("regatta.toml");
    fs::write(&config, format!("max_devices = {}\n{settings}", DEVICES - 1)).expect("regatta.toml");
    lab.start_coordinator();
    let _fleet = enroll(&lab, DEVICES);
    eventually("as many devices as may connect", 60, || {
        online(&lab).len() == DEVICES - 1
    });
    let log = || fs::read_to_string(lab.scratch().join("fleet.log")).expect("the devices' log");
    eventually("the refusal of another device", 30, || {
        log().contains("it has reached its limit of devices; hint: raise `max_devices`")
    });
    let connected = online(&lab);
    // A device that took another's place would do so within a few seconds.
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(online(&lab), connected);
    }
}

#[test]
fn simulated_devices_execute_runs_at_once_and_deliver_every_byte() {
    let Some(mut lab) = Lab::secure(Broker::Embedded) else {
        return;
    };
    lab.start_coordinator();
    let count = DEVICES.to_string();
    let refused = simulate(&lab, &["--devices", &count])
        .output()
        .expect("it starts");
    assert_eq!(refused.status.code(), Some(2));
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(text.contains("3 of 3 devices are not enrolled"), "{text}");

    let mut fleet = enroll(&lab, DEVICES);
    let online = || online(&lab).len();
    eventually("the simulated devices", 60, || online() == DEVICES);

    let requested = lab.json(&[
        "run",
        "--device",
        "all",
        "--benchmark",
        "digits",
        "--scenario",
        "SingleStream",
        "--engine",
        "sim",
        "--duration",
        "200ms",
        "--no-wait",
    ]);
    let runs: Vec<String> = requested["runs"]
        .as_array()
        .expect("runs")
        .iter()
        .filter_map(|run| run["run"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(runs.len(), DEVICES);
    for run in &runs {
        eventually("the run's record", 120, || {
            lab.show(run)["recorded"].as_str().is_some()
        });
        let shown = lab.show(run);
        assert_eq!(
            (&shown["phase"], &shown["complete"]),
            (&"done".into(), &true.into())
        );
        let name = shown["device_name"].as_str().expect("a name").to_owned();
        let own = lab
            .scratch()
            .join("fleet")
            .join(name)
            .join("state/runs")
            .join(run)
            .join("files");
        assert_eq!(
            files(&own),
            files(&lab.workspace().join("runs").join(run).join("files"))
        );
    }

    // Only the last wills of their connections report it.
    fleet.kill();
    eventually("the killed devices to be offline", 30, || online() == 0);
}

/// Returns the number of hellos of each device, which grows with every connection.
fn hellos(lab: &Lab) -> BTreeMap<String, i64> {
    let store = rusqlite::Connection::open(lab.workspace().join("regatta.db")).expect("the store");
    store.busy_timeout(Duration::from_secs(30)).expect("a limit");
    let mut rows = store.prepare("SELECT id, hellos FROM devices").expect("devices");
    let rows = rows.query_map([], |row| Ok((row.get("id")?, row.get("hellos")?)));
    rows.expect("devices").map(|row| row.expect("a device")).collect()
}

/// Kills the coordinator and starts it again while other programs need the processor. `REGATTA_RECONNECTING=DEVICES,PERCENT` selects the long form;
/// `coordinator/lab-net/tests/reconnect_storm.rs` tests the mechanism.
#[test]
fn fleet_reconnects_to_a_coordinator_that_is_short_of_processor_time() {
    let form = std::env::var("REGATTA_RECONNECTING").unwrap_or_else(|_| "20,10".to_owned());
    let (devices, percent) = form.split_once(',').expect("DEVICES,PERCENT");
    let devices: usize = devices.parse().expect("a number of devices");
    let percent = percent.parse().expect("a percentage");
    let Some(mut lab) = Lab::secure(Broker::Embedded) else {
        return;
    };
    lab.coordinator_prefix = ["taskset", "--cpu-list", "0"].map(str::to_owned).to_vec();
    lab.start_coordinator();
    let _fleet = enroll(&lab, devices);
    eventually("the simulated devices", 120, || online(&lab).len() == devices);
    lab.coordinator.as_mut().expect("it runs").kill();
    let before = hellos(&lab);
    lab.start_coordinator();
    let process = lab.coordinator.as_ref().expect("it runs").id();
    let starved = Starved::new(process, percent);
    let begun = Instant::now();
    eventually("the devices to be back", 240, || {
        std::thread::sleep(Duration::from_millis(200));
        let is_back = |(id, count): &(&String, &i64)| before.get(*id).is_some_and(|before| *count > before);
        hellos(&lab).iter().filter(is_back).count() == devices
    });
    println!("{devices} devices at {percent} %: {:?}", begun.elapsed());
    drop(starved);
}
