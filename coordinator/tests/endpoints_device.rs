//! Tests of `endpoints run --device` over the real coordinator with a simulated device, a made-up checkout and a made-up client that fails when
//! the test lets it. The real client is in `tests/tests/endpoints_harness.rs`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "test code")]

mod support;

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command as Process, Output, Stdio},
    thread,
};

use regatta_catalogue::known;
use regatta_test_support::synthetic_endpoints;
use regatta_types::{
    RunId,
    documents::{DeviceFacts, Document as _, EngineKind, RunPhase, RunSpec, RunTask},
};
use regatta_wire::message::Command;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::{Dice, coordinator::Coordinator, delivering::Faults, device::SimulatedDevice, eventually};

const REFERENCE: &str = "examples/11_Edge_Agentic_Example/online_edge_full_run.yaml";
/// The client: it ends without documents once the file `go` is beside it.
const CLIENT: &str = "#!/bin/sh\ncase \"$*\" in *freeze*) exit 0;; esac\nwhile ! [ -e \"$(dirname \"$0\")/go\" ]; do sleep 0.1; done\nexit 3\n";

struct Bench {
    coordinator: Coordinator,
    device: SimulatedDevice,
    place: tempfile::TempDir,
    port: u16,
}

impl Bench {
    fn new() -> Self {
        let mut coordinator = Coordinator::embedded();
        coordinator.serve();
        let device = coordinator.join_with("simulated", &EngineKind::ALL, &DeviceFacts::default());
        let place = tempfile::tempdir().unwrap();
        write_checkout(&place.path().join("client"));
        let environment = place.path().join("environment");
        fs::create_dir_all(environment.join("bin")).unwrap();
        fs::write(environment.join("ready"), "").unwrap();
        write_program(&environment.join("bin/python"), CLIENT);
        Self {
            port: serve_models(),
            coordinator,
            device,
            place,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn command(&self, further: &[&str]) -> Process {
        let [client, environment, output] = ["client", "environment", "run"].map(|name| self.path(name));
        let mut command = self.coordinator.regatta(&["endpoints", "run"]);
        command
            .args([
                "--benchmark",
                "qwen3.6-27b",
                "--device",
                "simulated",
                "--server",
                "llama-cpp",
            ])
            .args(["--server-model", "models/small.gguf"])
            .args(["--server-set", &format!("server_port={}", self.port)])
            .arg("--client")
            .arg(client)
            .arg("--environment")
            .arg(environment)
            .arg("--output")
            .arg(output)
            .args(further);
        command
    }

    fn start(&self) -> Child {
        let mut command = self.command(&["--host", "127.0.0.1"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// The device accepts the run of the server, and its server is ready.
    fn serve_model(&mut self) -> (RunId, Vec<u8>) {
        let (run, spec) = self.device.next_start();
        self.device.tell(run, RunPhase::Ready, &[]);
        self.device.tell(run, RunPhase::Running, &[]);
        (run, spec)
    }

    /// Waits until the command has started the client.
    fn wait_for_client(&self, command: &mut Child) {
        eventually("the client", 20, || {
            if let Some(status) = command.try_wait().unwrap() {
                let mut words = String::new();
                let _ = command.stderr.take().unwrap().read_to_string(&mut words);
                panic!("the command has ended early, {status}: {words}");
            }
            self.path("run/client.log").is_file().then_some(())
        });
    }

    fn end_client(&self) {
        fs::write(self.path("environment/bin/go"), "").unwrap();
    }

    /// The device delivers the files of a run that ended well.
    fn deliver(&mut self, run: RunId, spec: &[u8]) {
        let mut files = BTreeMap::from([("server.log".to_owned(), b"loading\n".to_vec())]);
        self.device.seal(run, spec, &mut files);
        let names: Vec<&str> = files.keys().map(String::as_str).collect();
        self.device.tell(run, RunPhase::Draining, &names);
        self.device
            .deliver(run, &files, Faults::default(), &mut Dice::new(1), |_| {});
        self.device.tell(run, RunPhase::Done, &names);
    }

    fn session(&self) -> Value {
        serde_json::from_slice(&fs::read(self.path("run/session.json")).unwrap()).unwrap()
    }
}

fn write_program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    let mut permissions = fs::metadata(path).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
    fs::set_permissions(path, permissions).unwrap();
}

/// Makes a checkout with the files that are read in it.
fn write_checkout(root: &Path) {
    let main = root.join("src/inference_endpoint/main.py");
    fs::create_dir_all(main.parent().unwrap()).unwrap();
    fs::write(main, "").unwrap();
    let tree = tempfile::tempdir().unwrap();
    synthetic_endpoints::write(tree.path(), known::round("v6.1").unwrap().unwrap());
    let reference = root.join(REFERENCE);
    fs::create_dir_all(reference.parent().unwrap()).unwrap();
    fs::copy(
        tree.path()
            .join(synthetic_endpoints::SCENARIO)
            .join("config.yaml"),
        reference,
    )
    .unwrap();
    for words in [
        &["init", "--quiet"][..],
        &["add", "."],
        &[
            "-c",
            "user.name=test",
            "-c",
            "user.email=test@localhost",
            "commit",
            "--quiet",
            "-m",
            "Add",
        ],
    ] {
        let status = Process::new("git").arg("-C").arg(root).args(words).status();
        assert!(status.unwrap().success());
    }
}

/// Answers every request with a list of one model, and returns the port.
fn serve_models() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let mut connection = connection;
            // A request that is not read to its end resets the connection.
            let mut lines = BufReader::new(connection.try_clone().unwrap()).lines();
            while lines
                .next()
                .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
            {}
            let body = r#"{"data":[{"id":"small"}]}"#;
            let _ = write!(connection, "HTTP/1.1 200 OK\r\nServer: llama.cpp\r\n\r\n{body}");
        }
    });
    port
}

fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[test]
fn the_server_is_stopped_after_its_client_and_its_run_is_copied() {
    let mut bench = Bench::new();
    let mut command = bench.start();
    let (run, spec) = bench.serve_model();
    let read = RunSpec::from_json(&spec).unwrap();
    assert_eq!(read.task, RunTask::ModelServer);
    let settings = &read.engine.settings;
    assert_eq!(
        (settings.server_port, settings.server_context),
        (Some(bench.port), Some(32_768))
    );
    bench.wait_for_client(&mut command);
    bench.device.expect_no_command(run);
    bench.end_client();
    // A lost command is repeated.
    for _ in 0..2 {
        bench
            .device
            .wait_for_command(run, |command| *command == Command::StopServer);
    }
    bench.deliver(run, &spec);
    let output = command.wait_with_output().unwrap();
    let words = printed(&output);
    assert!(words.contains("the client failed"), "{words}");
    let device_run = &bench.session()["device_run"];
    assert_eq!(device_run["run"], run.to_string());
    assert_eq!(device_run["failure"], Value::Null);
    assert_eq!(device_run["evidence_sha256"].as_str().unwrap().len(), 64);
    assert!(bench.path("run/device/files/server.log").is_file());
}

#[test]
fn a_run_whose_command_ended_early_is_completed_later() {
    let mut bench = Bench::new();
    let mut command = bench.start();
    let (run, spec) = bench.serve_model();
    bench.wait_for_client(&mut command);
    bench.end_client();
    bench
        .device
        .wait_for_command(run, |command| *command == Command::StopServer);
    bench.coordinator.kill();
    eventually("the session", 20, || {
        bench.path("run/session.json").is_file().then_some(())
    });
    // The wait can be ended, also while no coordinator serves.
    thread::sleep(std::time::Duration::from_millis(500));
    interrupt(&command);
    let output = command.wait_with_output().unwrap();
    let words = printed(&output);
    let directory = bench.path("run").display().to_string();
    assert!(
        words.contains(&format!("endpoints collect {directory}")),
        "{words}"
    );
    assert_eq!(bench.session()["device_run"]["evidence_sha256"], Value::Null);

    bench.coordinator.serve();
    bench.device.say_hello(vec![run]);
    bench.deliver(run, &spec);
    let collected = bench
        .coordinator
        .output(&["endpoints", "collect", &directory, "--format", "json"]);
    let document: Value = serde_json::from_slice(&collected.stdout).unwrap();
    let device_run = &document["session"]["device_run"];
    assert!(device_run["evidence_sha256"].is_string(), "{document:#}");
    // The client had failed.
    assert_eq!(collected.status.code(), Some(1));
}

#[test]
fn an_interrupted_start_aborts_the_run_of_the_server() {
    let bench = Bench::new();
    let command = bench.start();
    let (run, _) = bench.device.next_start();
    interrupt(&command);
    let output = command.wait_with_output().unwrap();
    assert!(printed(&output).contains("interrupted while the server started"));
    bench
        .device
        .wait_for_command(run, |command| matches!(command, Command::Abort { .. }));
    assert!(!bench.path("run").exists());
}

#[test]
fn a_run_that_must_fail_is_refused_before_a_server_is_started() {
    let bench = Bench::new();
    let refused = |further: &[&str]| {
        let output = bench.command(further).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
        printed(&output)
    };
    let words = refused(&[]);
    assert!(
        words.contains("was not deployed over SSH") && words.contains("--host"),
        "{words}"
    );
    let words = refused(&["--host", "no-such-host.invalid"]);
    assert!(words.contains("no-such-host.invalid has no address"), "{words}");
    let local = ["--host", "127.0.0.1"];
    let words = refused(&[&local[..], &["--rehearsal", "--set", "model_params=1"]].concat());
    assert!(words.contains("has no value `model_params`"), "{words}");
    let found = ["--server-set", "server_address=127.0.0.1:8080"];
    let words = refused(&[&local[..], &found].concat());
    assert!(
        words.contains("`server_address` is for runs of LoadGen")
            && words.contains("--url measures a server"),
        "{words}"
    );
    let words = refused(&[&local[..], &["--server-set", "batch=1"]].concat());
    assert!(words.contains("no setting `batch`"), "{words}");
    let _ = bench.coordinator.json(&["device", "drain", "simulated"]);
    let words = refused(&local);
    assert!(words.contains("accepts no runs: it is in maintenance"), "{words}");
    let listed = bench.coordinator.json(&["runs", "list"]);
    assert_eq!(listed["runs"], Value::Array(Vec::new()));
}
