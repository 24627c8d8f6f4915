//! Tests of runs that serve a model for a client elsewhere: the server of a made-up driver runs until the coordinator stops it.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{Ipv4Addr, TcpListener, TcpStream},
};

use regatta_types::{
    Scenario,
    benchmark::Benchmark,
    documents::{Attempt, EngineKind, EngineSpec, RunPhase, RunSpec, RunTask},
    engine_settings::EngineSettings,
};
use regatta_wire::message::Command;
use serde_json::Value;

use crate::{agent::Agent, coordinator::Coordinator, eventually, mosquitto::Mosquitto};

/// It answers every request with its arguments.
const SERVER: &str = r#"
import http.server, os, sys
print("serving", *sys.argv[1:], flush=True)
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args): pass
    def do_GET(self):
        if self.path == "/crash":
            print("out of memory", flush=True); os._exit(9)
        body = " ".join(sys.argv[1:]).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"#;

/// An agent with a driver and a model.
struct Bench {
    agent: Agent,
    coordinator: Coordinator,
    scratch: tempfile::TempDir,
    port: u16,
    _broker: Mosquitto,
}

impl Bench {
    fn new() -> Option<Self> {
        let broker = Mosquitto::start()?;
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path();
        fs::write(path.join("server.py"), SERVER).unwrap();
        fs::create_dir(path.join("models")).unwrap();
        fs::write(path.join("models/small"), "weights").unwrap();
        let script = path.join("server.py");
        let driver = format!(
            "schema = 1\ntitle = \"made up\"\ncommand = [\"python3\", \"{}\", \"{{host}}\", \"{{port}}\", \"{{context}}\", \"{{parallel}}\"]\n\
             client_arguments = [\"--for-clients\"]\nready = {{ path = \"/\", within_s = 20 }}\nstop_s = 5\n",
            script.display()
        );
        fs::write(path.join("driver.toml"), driver).unwrap();
        let config = format!("min_free_mib = 16\nscratch = '{}'", path.display());
        let agent = Agent::start_with(broker.port, &config);
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        Some(Self {
            coordinator: Coordinator::start(broker.port, &agent.device),
            agent,
            scratch,
            port: listener.local_addr().unwrap().port(),
            _broker: broker,
        })
    }

    fn spec(&self, further: &[(&str, &str)]) -> RunSpec {
        let driver = self.scratch.path().join("driver.toml").display().to_string();
        let port = self.port.to_string();
        let mut settings = vec![
            ("server", driver.as_str()),
            ("server_model", "models/small"),
            ("server_port", &port),
            ("server_context", "4096"),
        ];
        settings.extend(further);
        let task = RunTask::ModelServer;
        RunSpec {
            schema: RunSpec::schema_with(None, None, task),
            task,
            benchmark: Benchmark::measured_by_client("qwen3.6-27b"),
            scenario: Scenario::SingleStream,
            engine: EngineSpec {
                kind: EngineKind::Server,
                settings: EngineSettings::parse(EngineKind::Server, settings).unwrap(),
            },
            ..self.agent.spec(1000)
        }
    }

    fn get(&self, path: &str) -> Option<String> {
        let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).ok()?;
        write!(connection, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).ok()?;
        Some(answer)
    }

    fn expect_free_port(&self) {
        eventually("the server to be gone", 10, || {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, self.port)).ok()
        });
    }
}

#[test]
fn a_server_runs_until_the_coordinator_stops_it() {
    let Some(bench) = Bench::new() else { return };
    let spec = bench.spec(&[]);
    bench.coordinator.start_run(&spec);
    bench.coordinator.wait_for(spec.run, RunPhase::Running, 30);
    // For clients on other machines, with the driver's arguments for them.
    let expected = format!("0.0.0.0 {} 4096 1 --for-clients", bench.port);
    assert!(bench.get("/").unwrap().ends_with(&expected));
    bench.coordinator.command(spec.run, &Command::StopServer);
    bench.coordinator.command(spec.run, &Command::StopServer);
    bench.coordinator.wait_for(spec.run, RunPhase::Done, 20);
    bench.expect_free_port();

    let streams = bench.coordinator.wait_for_streams(spec.run, 10);
    let log = String::from_utf8_lossy(&streams["server.log"]);
    assert!(log.contains("serving 0.0.0.0"), "{log}");
    let server: Value = serde_json::from_slice(&streams["server.json"]).unwrap();
    assert_eq!(server["model_sha256"].as_str().unwrap().len(), 64, "{server:#}");
    let attempt: Attempt = serde_json::from_slice(&streams["attempt.json"]).unwrap();
    assert!(
        attempt.engine.starts_with("made up: python3"),
        "{}",
        attempt.engine
    );
    assert!(attempt.started.is_some() && attempt.ended.is_some());
    assert!(streams.contains_key("evidence.sig"));
    assert!(
        !streams.keys().any(|name| name.starts_with("mlperf_log")),
        "LoadGen does not run"
    );
}

#[test]
fn a_server_that_ends_by_itself_fails_its_run_with_its_last_lines() {
    let Some(bench) = Bench::new() else { return };
    let spec = bench.spec(&[]);
    bench.coordinator.start_run(&spec);
    bench.coordinator.wait_for(spec.run, RunPhase::Running, 30);
    bench.get("/crash");
    let report = bench.coordinator.wait_for(spec.run, RunPhase::Failed, 20);
    let reason = report.state.reason.unwrap();
    assert!(
        reason.contains("ended with exit code 9") && reason.contains("out of memory"),
        "{reason}"
    );
    bench.coordinator.wait_for_streams(spec.run, 10);
}

#[test]
fn an_aborted_run_leaves_no_server() {
    let Some(bench) = Bench::new() else { return };
    let spec = bench.spec(&[]);
    bench.coordinator.start_run(&spec);
    bench.coordinator.wait_for(spec.run, RunPhase::Running, 30);
    let reason = "the user pressed ^C".to_owned();
    bench.coordinator.command(spec.run, &Command::Abort { reason });
    bench.coordinator.wait_for(spec.run, RunPhase::Aborted, 20);
    bench.expect_free_port();
}

#[test]
fn a_killed_agent_leaves_no_server() {
    let Some(mut bench) = Bench::new() else { return };
    let spec = bench.spec(&[]);
    bench.coordinator.start_run(&spec);
    bench.coordinator.wait_for(spec.run, RunPhase::Running, 30);
    bench.agent.kill();
    bench.expect_free_port();
    bench.agent.launch();
    let report = bench.coordinator.wait_for(spec.run, RunPhase::Failed, 20);
    assert!(report.state.reason.unwrap().starts_with("interrupted: "));
}

#[test]
fn a_server_that_cannot_start_fails_its_run_with_the_cause() {
    let Some(bench) = Bench::new() else { return };
    let failed = |spec: &RunSpec| {
        bench.coordinator.start_run(spec);
        let report = bench.coordinator.wait_for(spec.run, RunPhase::Failed, 30);
        report.state.reason.unwrap()
    };
    let missing = bench.spec(&[("server_model", "models/absent")]);
    let reason = failed(&missing);
    assert!(reason.contains("models/absent does not exist"), "{reason}");

    let _listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, bench.port)).unwrap();
    let reason = failed(&bench.spec(&[]));
    assert!(
        reason.contains(&format!("cannot listen on port {}", bench.port)),
        "{reason}"
    );

    let driver = bench.scratch.path().join("driver.toml");
    let loopback = fs::read_to_string(&driver)
        .unwrap()
        .replace("{host}", "127.0.0.1");
    let other = bench.scratch.path().join("loopback.toml");
    fs::write(&other, loopback).unwrap();
    let reason = failed(&bench.spec(&[("server", other.to_str().unwrap())]));
    assert!(reason.contains("has no {host}"), "{reason}");
}
