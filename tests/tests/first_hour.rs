//! Tests a newcomer's first hour: init, serve, three devices, assets, runs of all scenarios, audits, a rehearsed submission, and
//! the usual mistakes. The golden file has what the user sees at 80 columns. Whether a loaded machine is fast enough to be VALID
//! is left out. The test executes the commands of `docs/first-hour.md`.

#![expect(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "test code")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use regatta_tests::{
    Process, eventually, free_port,
    json_schema::findings,
    transcript::{COLUMNS, Shown, Transcript},
};
use serde_json::Value;

/// The devices, in the order in which they join.
const DEVICES: [&str; 3] = ["boat-1", "boat-2", "boat-3"];

/// The session, its processes and its directory.
struct Session {
    transcript: Transcript,
    coordinator: Process,
    agents: Vec<Process>,
    directory: tempfile::TempDir,
}

#[test]
fn the_first_hour() {
    let mut session = begin();
    session.devices_join();
    session.mistakes_in_runs();
    session.first_runs();
    session.submission();
    session.a_device_leaves();
    session.documents_follow_their_schema();
    session.commands_of_the_document_were_run();
    insta::assert_snapshot!(session.transcript.text());
}

/// Makes the lab and starts its coordinator.
fn begin() -> Session {
    let directory = tempfile::tempdir().unwrap();
    let mut transcript = Transcript::new(directory.path());
    let ports = [free_port(), free_port(), free_port(), free_port()];
    for (port, mask) in ports.iter().zip(["8883", "8884", "8885", "8886"]) {
        transcript.mask(&format!("127.0.0.1:{port}"), &format!("127.0.0.1:{mask}"));
    }
    let [broker, enroll, assets, page] = ports.map(|port| format!("127.0.0.1:{port}"));
    let addresses = format!("--listen {broker} --enroll-listen {enroll} --assets-listen {assets}");
    refused(&transcript.run("regatta status"), 2);
    refused(
        &transcript.run("regatta init --workspace lab --host 127.0.0.1:8883"),
        2,
    );
    succeeded(&transcript.run(&format!(
        "regatta init --workspace lab --host 127.0.0.1 {addresses}"
    )));
    let config = directory.path().join("lab/regatta.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{text}dashboard_listen = \"{page}\"\n")).unwrap();
    transcript.export("REGATTA_WORKSPACE", "lab");
    refused(
        &transcript.run("regatta run --benchmark digits --scenario Offline"),
        2,
    );
    let log = directory.path().join("serve.log");
    let coordinator = Process::start(&mut transcript.command("regatta serve"), &log);
    transcript.mask(&format!("process {}", coordinator.id()), "process PID");
    eventually("the coordinator to serve", 30, || {
        coordinator.output().contains("reach this machine")
    });
    transcript.add("regatta serve", &coordinator.output());
    refused(&transcript.run("regatta serve"), 3);
    // Another lab with the same ports.
    succeeded(&transcript.run(&format!("regatta init --workspace other {addresses}")));
    refused(&transcript.run("regatta serve --workspace other"), 3);
    Session {
        transcript,
        coordinator,
        agents: Vec::new(),
        directory,
    }
}

impl Session {
    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs a command and parses its JSON document.
    fn json(&self, line: &str) -> Value {
        let output = self
            .transcript
            .command(&format!("{line} --format json"))
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{line}: {error}: {output:?}"))
    }

    fn devices_join(&mut self) {
        for name in DEVICES {
            let home = self.path(name);
            fs::create_dir(&home).unwrap();
            let added = self.json(&format!("regatta device add {name}"));
            let token = added["token"].as_str().expect("a token").to_owned();
            self.transcript.export("HOME", home.to_str().unwrap());
            if name == DEVICES[0] {
                refused(&self.transcript.run("regatta-agent serve"), 2);
                refused(
                    &self.transcript.run("regatta-agent enroll regatta-enroll://lab"),
                    2,
                );
            }
            succeeded(&self.transcript.run(&format!("regatta-agent enroll {token}")));
            let log = self.path(&format!("{name}.log"));
            self.agents.push(Process::start(
                &mut self.transcript.command("regatta-agent serve"),
                &log,
            ));
            eventually("the device to connect", 30, || {
                self.coordinator.output().contains(&format!("{name} connected"))
            });
        }
        refused(&self.transcript.run("regatta device add boat-1"), 2);
        succeeded(&self.transcript.run("regatta device add boat-4"));
        succeeded(&self.transcript.run("regatta device remove boat-4"));
        succeeded(&self.transcript.run("regatta device list"));
        succeeded(&self.transcript.run("regatta status"));
    }

    fn mistakes_in_runs(&mut self) {
        succeeded(&self.transcript.run("regatta benchmark list"));
        succeeded(&self.transcript.run("regatta round list"));
        for line in [
            "regatta run --benchmark digits --scenario Offline",
            "regatta run --device boat-9 --benchmark digits --scenario Offline",
            "regatta run --device boat-1 --benchmark digts --scenario Offline",
            "regatta run --device boat-1 --benchmark digits --scenario Ofline",
            "regatta run --device boat-1 --benchmark digits --scenario Offline --engine tensort",
            "regatta run --device boat-1 --benchmark digits --scenario Offline --set batchsize=4",
            "regatta run --device boat-1 --benchmark digits --scenario Offline --conf min_query_cuont=5",
            "regatta run --device boat-1 --benchmark digits --scenario Offline --system auto",
            "regatta run --device boat-1 --benchmark digits --scenario Offline --round 9.9",
            "regatta runs show last",
        ] {
            refused(&self.transcript.run(line), 2);
        }
        let dry = "regatta run --device all --benchmark digits --scenario offline --round 6.1 --dry-run";
        succeeded(&self.transcript.run(dry));
    }

    fn first_runs(&mut self) {
        succeeded(&self.transcript.run("regatta asset add --benchmark digits"));
        let all = "--scenario SingleStream,MultiStream,Server,Offline --mode AccuracyOnly,PerformanceOnly";
        let line = format!("regatta run --device boat-1 --benchmark digits {all} --duration 1s");
        measured(&self.transcript.run_measured(&line, &["run  benchmark"]));
        // The simulated engine's figures hardly depend on the machine.
        let sim = "regatta run --device boat-2 --benchmark digits --scenario SingleStream --engine sim --duration 1s --quiet";
        measured(&self.transcript.run_measured(sim, &["run  benchmark"]));
        succeeded(&self.transcript.run("regatta runs show last"));
        succeeded(&self.transcript.run("regatta runs export last --output exported"));
        succeeded(&self.transcript.run("regatta runs verify exported"));
        refused(&self.transcript.run("regatta runs show 12"), 2);
        let accuracies = self.json("regatta runs list --device boat-1");
        let accuracies = accuracies["runs"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|run| run["mode"] == "AccuracyOnly");
        assert!(
            accuracies.clone().count() == 4
                && accuracies
                    .clone()
                    .all(|run| run["accuracy"]["value"].as_f64() > Some(97.0))
        );
        measured(
            &self
                .transcript
                .run_measured("regatta runs list", &["run  benchmark"]),
        );
        // Every audit of the round, and then one by name.
        for line in [
            "regatta audit run --device boat-1 --benchmark digits --scenario SingleStream",
            "regatta audit run test04 --device boat-1 --benchmark digits --scenario MultiStream",
        ] {
            measured(&self.transcript.run_measured(line, &["run  benchmark"]));
        }
        self.every_audit_was_measured();
    }

    /// The runs of both commands are in the list, whatever their figures on a busy machine.
    fn every_audit_was_measured(&self) {
        let listed = self.json("regatta runs list --device boat-1");
        let mut audits: Vec<_> = listed["runs"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|run| !run["test"].is_null())
            .map(|run| (run["scenario"].as_str(), run["test"].as_str()))
            .collect();
        audits.sort_unstable();
        audits.dedup();
        let expected = [
            (Some("MultiStream"), Some("TEST04")),
            (Some("SingleStream"), Some("TEST01")),
            (Some("SingleStream"), Some("TEST04")),
        ];
        assert_eq!(audits, expected);
    }

    fn submission(&mut self) {
        let stage = "regatta submission stage --device boat-1 --rehearsal --output tree";
        succeeded(&self.transcript.run_measured(stage, &[]));
        refused(
            &self
                .transcript
                .run("regatta submission stage --rehearsal --output tree --device boat-1"),
            2,
        );
        let submitter = "--submitter REHEARSAL-nobody";
        let truncate = format!("regatta submission truncate --input tree {submitter} --output cut --verify");
        succeeded(&self.transcript.run_measured(&truncate, &[]));
        let check = self
            .transcript
            .run_measured("regatta submission check --input cut --round 6.1", &[]);
        assert_eq!(check.code, 1, "short runs break rules: {}", check.screen);
        fits(&check);
        fs::write(self.path("password"), "secret\n").unwrap();
        let pack = format!(
            "regatta submission pack --input cut {submitter} --output package --password-file password"
        );
        succeeded(&self.transcript.run_measured(&pack, &[]));
    }

    fn a_device_leaves(&mut self) {
        succeeded(&self.transcript.run("regatta device remove boat-3 --yes"));
        let agent = &self.agents[2];
        eventually("the removed device to hear of it", 60, || {
            agent.output().contains("removed from the lab")
        });
        refused(
            &self
                .transcript
                .run("regatta run --device boat-3 --benchmark digits --scenario Offline"),
            2,
        );
        self.agents[1].kill();
        eventually("the coordinator to miss the device", 60, || {
            self.coordinator.output().contains("boat-2 disconnected")
        });
        succeeded(&self.transcript.run("regatta device list"));
    }

    fn documents_follow_their_schema(&self) {
        let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../coordinator/commands.schema.json");
        let schema: Value = serde_json::from_slice(&fs::read(schema).unwrap()).expect("a JSON schema");
        let commands = [
            ("runs", "regatta runs list"),
            ("recorded_run", "regatta runs show last"),
            ("devices", "regatta device list"),
            ("device", "regatta device show boat-1"),
            ("status", "regatta status"),
            ("benchmarks", "regatta benchmark list"),
            ("rounds", "regatta round list"),
            ("systems", "regatta system list"),
            ("settings", "regatta settings list"),
            ("assets", "regatta asset list"),
        ];
        for (name, line) in commands {
            let found = findings(&self.json(line), &schema, name);
            assert!(found.is_empty(), "{line}: {found:#?}");
        }
    }

    fn commands_of_the_document_were_run(&self) {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/first-hour.md");
        let page = fs::read_to_string(page).unwrap();
        let run = self.transcript.commands();
        let mut count = 0;
        for block in page.split("```sh\n").skip(1) {
            let block = block.split("```").next().unwrap_or_default();
            for line in block.lines().filter(|line| line.starts_with("regatta")) {
                let command = line.split(" #").next().unwrap_or_default().trim();
                let is_daemon = ["regatta serve", "regatta-agent serve"].contains(&command);
                assert!(
                    is_daemon || run.iter().any(|run| run.starts_with(command)),
                    "`{command}` of docs/first-hour.md is not executed"
                );
                count += 1;
            }
        }
        assert!(count > 10, "{count} commands");
    }
}

fn succeeded(shown: &Shown) {
    assert_eq!(shown.code, 0, "{}", shown.screen);
    fits(shown);
}

fn refused(shown: &Shown, code: i32) {
    assert_eq!(shown.code, code, "{}", shown.screen);
    fits(shown);
}

/// Runs on a busy machine may be INVALID.
fn measured(shown: &Shown) {
    assert!([0, 1].contains(&shown.code), "{}", shown.screen);
    fits(shown);
}

/// Checks that only commands and paths, which are copied, are longer than a line of the terminal. It would break others within
/// words.
fn fits(shown: &Shown) {
    let cut = shown.screen.lines().find(|line| {
        let is_copied = line.contains('/') || line.contains("--");
        line.chars().count() > usize::from(COLUMNS) && !line.trim_start().starts_with('─') && !is_copied
    });
    assert_eq!(cut, None, "{}", shown.screen);
}
