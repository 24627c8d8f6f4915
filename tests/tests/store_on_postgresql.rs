//! A lab whose database is a real PostgreSQL server: it is moved there and back, serves runs, and continues after the server was killed.

#![expect(clippy::expect_used, reason = "test code")]

use std::fs;

use regatta_tests::{Broker, Lab, eventually, postgresql::PostgreSql, succeed_output};

const RUN: [&str; 8] = [
    "--engine",
    "sim",
    "--scenario",
    "SingleStream",
    "--mode",
    "PerformanceOnly",
    "--duration",
    "200ms",
];

fn stop(lab: &mut Lab) {
    lab.coordinator.take().expect("it runs").kill();
}

fn wait_for_record(lab: &Lab, run: &str) {
    eventually("the run's record", 60, || {
        lab.show(run)["recorded"].as_str().is_some()
    });
    let [coordinator, device] = lab.hashes(run);
    assert_eq!(coordinator, device);
}

fn runs(lab: &Lab) -> serde_json::Value {
    lab.json(&["runs", "list"])
}

#[test]
fn a_lab_moves_to_postgresql_and_back_and_keeps_every_run() {
    let Some(mut server) = PostgreSql::start() else {
        return;
    };
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    let first = lab.request_run(&RUN);
    wait_for_record(&lab, &first);
    let served = lab.regatta().args(["store", "move", &server.address()]).output();
    let refused = served.expect("it starts");
    assert!(!refused.status.success(), "the coordinator still runs");
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        words.contains("serves this workspace") && words.contains("--stop"),
        "{words}"
    );
    stop(&mut lab);

    let before = runs(&lab);
    let moved = succeed_output(lab.regatta().args(["store", "move", &server.address()]));
    assert!(String::from_utf8_lossy(&moved.stdout).contains("both have the same contents"));
    assert!(!lab.workspace().join("regatta.db").exists());
    assert_eq!(runs(&lab), before);

    // Devices, runs and their files continue, also after the server was killed in between.
    lab.start_coordinator();
    let second = lab.request_run(&RUN);
    wait_for_record(&lab, &second);
    server.restart();
    let third = lab.request_run(&RUN);
    wait_for_record(&lab, &third);
    stop(&mut lab);

    let before = runs(&lab);
    let _ = succeed_output(lab.regatta().args(["store", "move", "--to-file"]));
    assert_eq!(runs(&lab), before);
    let config = fs::read_to_string(lab.workspace().join("regatta.toml")).expect("regatta.toml");
    assert!(!config.contains("database"), "{config}");
    let again = lab.regatta().args(["store", "move", &server.address()]).output();
    let again = again.expect("it starts");
    let words = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(
        words.contains("has rows") && words.contains("name an empty database"),
        "{words}"
    );
}

#[test]
fn a_database_that_cannot_be_used_is_named_with_the_cause() {
    let Some(mut server) = PostgreSql::start() else {
        return;
    };
    let Some(lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    let config = lab.workspace().join("regatta.toml");
    let settings = fs::read_to_string(&config).expect("regatta.toml");
    let list = |database: &str| {
        fs::write(&config, format!("{settings}database = \"{database}\"\n")).expect("regatta.toml");
        let output = lab.regatta().args(["runs", "list"]).output().expect("it starts");
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let wrong = server.address().replace("/lab", "/other");
    let (ok, words) = list(&wrong);
    assert!(
        !ok && words.contains("database \"other\" does not exist"),
        "{words}"
    );
    let (ok, words) = list("postgresql://db.example/lab");
    assert!(!ok && words.contains("`database_ca` is missing"), "{words}");
    let (ok, words) = list(&server.address());
    assert!(ok, "{words}");
    server.stop();
    let (ok, words) = list(&server.address());
    assert!(
        !ok && words.contains("cannot open the store database `lab`"),
        "{words}"
    );
}
