//! Tests of runs that end together and share a transaction. One whose record or row cannot be written delays no other. It is
//! logged with its cause, and recorded once when that is possible.

#![expect(clippy::unwrap_used, reason = "test code")]

mod support;

use std::{collections::BTreeMap, fs, thread::sleep, time::Duration};

use regatta_types::{RunId, documents::RunPhase};
use regatta_wire::{
    message::{Message as _, StreamEnd},
    topic::Leaf,
};
use rusqlite::Connection;
use sha2::{Digest as _, Sha256};
use support::{Dice, coordinator::Coordinator, delivering::Faults, device::SimulatedDevice, eventually};

/// The reason of all runs: a fault of their devices.
const REASON: &str = "cannot read the model: Input/output error (os error 5)";
const FILES: [&str; 3] = ["run.log", "evidence.json", "evidence.sig"];

/// Delivers a run that failed through its device, except the signature of its evidence, which is returned.
fn deliver_failed(device: &mut SimulatedDevice) -> (RunId, Vec<u8>) {
    let (run, spec_json) = device.next_start();
    device.tell(run, RunPhase::Running, &[]);
    let mut files = BTreeMap::from([("run.log".to_owned(), b"one line\n".to_vec())]);
    device.seal_as((RunPhase::Failed, Some(REASON)), run, &spec_json, &mut files);
    device.tell(run, RunPhase::Draining, &FILES);
    let signature = files.remove("evidence.sig").unwrap();
    device.deliver(run, &files, Faults::default(), &mut Dice::new(3), |_| {});
    (run, signature)
}

/// Publishes the signature, which ends the run.
fn send_signature(device: &SimulatedDevice, run: RunId, signature: &[u8]) {
    device.send_chunk(run, "evidence.sig", 0, signature);
    let end = StreamEnd {
        length: signature.len() as u64,
        sha256: Sha256::digest(signature).into(),
    };
    let leaf = Leaf::Log(run, "evidence.sig".parse().unwrap());
    device.say(leaf, end.to_frame().unwrap(), false);
}

fn is_recorded(database: &Connection, run: RunId) -> bool {
    let query = "SELECT recorded IS NOT NULL FROM runs WHERE id = ?1";
    database
        .query_row(query, [run.to_string()], |row| row.get(0))
        .unwrap()
}

/// Returns the number of entries about a run in the devices' logs.
fn judgements(database: &Connection, run: RunId) -> u32 {
    let query = "SELECT count(*) FROM device_log WHERE run = ?1";
    database
        .query_row(query, [run.to_string()], |row| row.get(0))
        .unwrap()
}

fn four_end_together(effect: &str) {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let mut devices: Vec<SimulatedDevice> = (1..=4).map(|seed| coordinator.join(seed)).collect();
    let request = "run --device all --benchmark digits --scenario Offline --engine null --no-wait";
    coordinator.json(&request.split(' ').collect::<Vec<_>>());
    let (runs, signatures): (Vec<RunId>, Vec<Vec<u8>>) = devices.iter_mut().map(deliver_failed).unzip();
    let [unwritable, refused, ..] = runs[..] else {
        unreachable!("four devices have four runs");
    };
    let database = Connection::open(coordinator.path("regatta.db")).unwrap();
    database.busy_timeout(Duration::from_secs(10)).unwrap();
    // A directory in the place of the record.
    let obstacle = coordinator.path(&format!("runs/{unwritable}/record.json"));
    fs::create_dir_all(obstacle.join("x")).unwrap();
    let trigger = format!(
        "CREATE TRIGGER refused BEFORE UPDATE OF recorded ON runs WHEN NEW.id = '{refused}'
         BEGIN SELECT RAISE({effect}, 'database or disk is full'); END"
    );
    database.execute_batch(&trigger).unwrap();
    // The lock makes their last files arrive in one transaction.
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    for ((device, run), signature) in devices.iter().zip(&runs).zip(&signatures) {
        send_signature(device, *run, signature);
    }
    sleep(Duration::from_millis(300));
    database.execute_batch("COMMIT").unwrap();
    eventually("the records of the other runs", 20, || {
        runs[2..]
            .iter()
            .all(|run| is_recorded(&database, *run))
            .then_some(())
    });
    eventually("both causes in the log", 20, || {
        let printed = coordinator.printed();
        let is_reported = |run: RunId, cause: &str| {
            let mut lines = printed.lines();
            lines.any(|line| line.contains(&run.to_string()) && line.contains(cause))
        };
        (is_reported(unwritable, "record.json") && is_reported(refused, "disk is full")).then_some(())
    });
    for run in [unwritable, refused] {
        assert!(
            !is_recorded(&database, run) && judgements(&database, run) == 0,
            "{effect}"
        );
    }
    database.execute_batch("DROP TRIGGER refused").unwrap();
    fs::remove_dir_all(&obstacle).unwrap();
    for run in &runs {
        let record = coordinator.record(&run.to_string());
        assert_eq!(record["delivery"]["complete"], true, "{effect}: {record:#}");
        assert_eq!(
            judgements(&database, *run),
            1,
            "{effect}: once for each failed run"
        );
    }
}

#[test]
fn a_record_that_is_refused_delays_no_other() {
    four_end_together("FAIL");
}

#[test]
fn a_full_disk_that_undoes_the_transaction_loses_and_doubles_nothing() {
    four_end_together("ROLLBACK");
}

/// Without its stored end, a duplicated identity would keep the device offline until the coordinator starts again.
#[test]
fn a_full_disk_hides_neither_the_begin_nor_the_end_of_a_duplicated_identity() {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let device = coordinator.join(1);
    let database = Connection::open(coordinator.path("regatta.db")).unwrap();
    database.busy_timeout(Duration::from_secs(10)).unwrap();
    let is = |online: bool, duplicated: bool| {
        eventually("the device's state", 10, || {
            let listed = coordinator.json(&["device", "list"]);
            let shown = &listed["devices"][0];
            (shown["online"] == online && shown["duplicated"] == duplicated).then_some(())
        });
    };
    let fill_disk = || {
        let trigger = "CREATE TRIGGER refused BEFORE UPDATE OF duplicated ON devices
             BEGIN SELECT RAISE(ROLLBACK, 'database or disk is full'); END";
        database.execute_batch(trigger).unwrap();
    };
    let free_disk = || database.execute_batch("DROP TRIGGER refused").unwrap();
    fill_disk();
    for session in [2, 3, 2] {
        device.say_inventory(session, &[]);
    }
    sleep(Duration::from_secs(1));
    free_disk();
    device.say_inventory(3, &[]);
    is(false, true);
    fill_disk();
    // The other agent is silent for long enough.
    sleep(Duration::from_secs(16));
    device.say_inventory(3, &[]);
    sleep(Duration::from_secs(1));
    free_disk();
    let hello = device.hello(Vec::new()).to_frame().unwrap();
    device.say(Leaf::Hello, hello, true);
    is(true, false);
    let shown = coordinator.json(&["device", "health", device.id.as_str()]);
    assert_eq!(shown["devices"][0]["health"], "quarantined", "{shown:#}");
}
