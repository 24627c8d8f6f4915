//! Tests a benchmark of generated tokens with a real model server: llama.cpp with a small random model, which the device starts by a driver, or
//! which runs before.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{
    fs,
    io::{self, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use regatta_test_support::{official_loadgen, oracle};
use regatta_tests::{
    Broker, Lab, eventually,
    mlperf_benchmark::responses,
    printed,
    small_llama::{self, BENCHMARK, MODEL, SmallLlama},
};
use serde_json::Value;

const SIZE: SmallLlama = SmallLlama {
    samples: 24,
    max_tokens: 16,
};

/// Returns a lab with the prepared benchmark, whose device has these LoadGens, and the driver of the server.
fn prepared_lab(python: &Path, plugins: Option<&Path>) -> Option<(Lab, PathBuf)> {
    let mut lab = Lab::new(Broker::Embedded)?;
    lab.write_benchmark(BENCHMARK, |text| SIZE.resize(text));
    let driver = small_llama::add_model(&lab, python);
    let data = lab.workspace().join("articles");
    SIZE.write_articles(&data, |_| String::new());
    assert_eq!(
        lab.json(&["prep", BENCHMARK, "--data", data.to_str().unwrap()])["samples"],
        SIZE.samples
    );
    if let Some(plugins) = plugins {
        let plugins = format!("REGATTA_PLUGINS={}", plugins.display());
        lab.device_prefix = vec!["env".to_owned(), plugins];
    }
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    Some((lab, driver))
}

/// Runs with the model server, whatever the outcome.
fn attempt(lab: &Lab, driver: &Path, scenario: &str, mode: &str, further: &[&str]) -> Value {
    let server = format!("server={}", driver.display());
    let model = format!("server_model={MODEL}");
    let command = [
        "run",
        "--benchmark",
        BENCHMARK,
        "--scenario",
        scenario,
        "--mode",
        mode,
        "--engine",
        "server",
        "--set",
        &server,
        "--set",
        &model,
    ];
    lab.judged(&[&command[..], further].concat())["runs"][0].clone()
}

/// Measures with the model server and returns the run.
fn measure(lab: &Lab, driver: &Path, scenario: &str, mode: &str, further: &[&str]) -> Value {
    let further = [&["--duration", "300ms"], further].concat();
    let run = attempt(lab, driver, scenario, mode, &further);
    assert_eq!(run["phase"], "done", "{run:#}");
    run
}

/// Returns what a run's files say about its server.
fn evidence(lab: &Lab, run: &Value) -> Value {
    let file = lab.run_directory(run).join("files/server.json");
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

#[test]
fn a_model_server_answers_in_tokens() {
    let (Some(python), Some(plugin)) = (oracle::llama_cpp(), official_loadgen::plugin_file("6.0.17")) else {
        return;
    };
    let Some((lab, driver)) = prepared_lab(&python, plugin.parent()) else {
        return;
    };

    // One at a time and in a stream, or several at once and whole: the answers are the same.
    let one = measure(&lab, &driver, "SingleStream", "AccuracyOnly", &[]);
    let whole = measure(
        &lab,
        &driver,
        "Offline",
        "AccuracyOnly",
        &["--set", "inference_streams=3"],
    );
    let answers = responses(&lab.accuracy_log(&one));
    assert_eq!(answers.len(), SIZE.samples);
    assert!(
        answers.values().all(|answer| answer.len() == 16 * 8),
        "{answers:?}"
    );
    assert_eq!(answers, responses(&lab.accuracy_log(&whole)));

    // The delivered and signed files say what answered.
    let files = lab.run_directory(&one).join("files");
    let evidence = evidence(&lab, &one);
    assert_eq!(
        evidence["model_sha256"].as_str().unwrap().len(),
        64,
        "{evidence:#}"
    );
    // The server generated what this run requested, and nothing else.
    let tokens = SIZE.samples as f64 * 16.0;
    assert!(
        evidence["own"]["tokens"].as_f64().unwrap() >= tokens,
        "{evidence:#}"
    );
    assert_eq!(one["warnings"], Value::Array(Vec::new()), "{one:#}");
    assert!(
        fs::read_to_string(files.join("server.log"))
            .unwrap()
            .contains("load")
    );

    // Both LoadGens get first tokens before the answers, and count tokens.
    for (loadgen, scenario) in [("native", "Server"), ("official", "SingleStream")] {
        let further = [
            "--loadgen",
            loadgen,
            "--conf",
            "min_query_count=64",
            "--conf",
            "target_qps=20",
        ];
        let run = measure(&lab, &driver, scenario, "PerformanceOnly", &further);
        let detail = lab.run_directory(&run).join("files/mlperf_log_detail.txt");
        let detail = fs::read_to_string(detail).unwrap();
        let value = |key: &str| {
            let line = detail
                .lines()
                .find(|line| line.contains(&format!("\"key\": \"{key}\"")));
            let line = line.unwrap_or_else(|| panic!("{key} of {loadgen} {scenario}"));
            let line: Value = serde_json::from_str(line.split_once("MLLOG ").unwrap().1).unwrap();
            line["value"].as_f64().unwrap()
        };
        let first = value("result_first_token_mean_latency_ns");
        let whole = value("result_mean_latency_ns");
        assert!(
            0.0 < first && first < whole,
            "{loadgen} {scenario}: {first} {whole}"
        );
    }
}

/// Tells a thread that it may end, also when the test fails before.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A server that no run starts. It ends with the test.
struct UserServer {
    process: Child,
    port: u16,
}

impl UserServer {
    fn start(lab: &Lab, python: &Path) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        Self::start_at(port, lab, python)
    }

    fn start_at(port: u16, lab: &Lab, python: &Path) -> Self {
        let process = Command::new(python)
            .arg(oracle::directory("llama-cpp").join("serve.py"))
            .arg(lab.scratch().join(MODEL))
            .args([&port.to_string(), "512", "3"])
            .spawn();
        let server = Self {
            process: process.unwrap(),
            port,
        };
        eventually("the server to be ready", 60, || {
            server
                .request("GET /health", "")
                .is_ok_and(|answer| answer.contains(" 200 "))
        });
        server
    }

    fn address(&self) -> String {
        format!("server_address=127.0.0.1:{}", self.port)
    }

    fn request(&self, what: &str, body: &str) -> io::Result<String> {
        let mut connection = TcpStream::connect(("127.0.0.1", self.port))?;
        let length = body.len();
        write!(
            connection,
            "{what} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// Returns the tokens that it has generated.
    fn generated(&self) -> f64 {
        let metrics = self.request("GET /metrics", "").unwrap();
        let name = "llamacpp:tokens_predicted_total ";
        let line = metrics.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().parse().unwrap()
    }

    fn stop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for UserServer {
    fn drop(&mut self) {
        self.stop();
    }
}

#[test]
fn several_runs_share_a_server_that_goes_on_afterwards() {
    let Some(python) = oracle::llama_cpp() else { return };
    let Some((lab, driver)) = prepared_lab(&python, None) else {
        return;
    };
    let mut server = UserServer::start(&lab, &python);
    let address = server.address();
    let shared = ["--set", &address, "--set", "inference_streams=3"];

    let one = measure(&lab, &driver, "SingleStream", "AccuracyOnly", &shared);
    let whole = measure(&lab, &driver, "Offline", "AccuracyOnly", &shared);
    let answers = responses(&lab.accuracy_log(&one));
    assert_eq!(answers.len(), SIZE.samples);
    assert_eq!(answers, responses(&lab.accuracy_log(&whole)));
    for run in [&one, &whole] {
        assert_eq!(run["warnings"], Value::Array(Vec::new()), "{run:#}");
        let evidence = evidence(&lab, run);
        assert_eq!(
            evidence["found_at"],
            address["server_address=".len()..],
            "{evidence:#}"
        );
        assert_eq!(evidence["pid"], server.process.id(), "{evidence:#}");
        assert!(evidence["start_ticks"].as_u64().unwrap() > 0, "{evidence:#}");
        assert_eq!(evidence["command"][3], server.port.to_string(), "{evidence:#}");
        for hash in ["program_sha256", "model_sha256"] {
            assert_eq!(evidence[hash].as_str().unwrap().len(), 64, "{evidence:#}");
        }
        assert!(!lab.run_directory(run).join("files/server.log").exists());
        let engine = run["loaded_engine"].as_str().unwrap();
        assert!(
            engine.contains(&format!(" at 127.0.0.1:{} with ", server.port)),
            "{engine}"
        );
    }

    // Another client during a run.
    let has_ended = AtomicBool::new(false);
    let disturbed = thread::scope(|scope| {
        let _end = Ended(&has_ended);
        scope.spawn(|| {
            while !has_ended.load(Ordering::Relaxed) {
                let body = r#"{"prompt":[7,8],"n_predict":3,"temperature":0}"#;
                server.request("POST /completion", body).unwrap();
                thread::sleep(Duration::from_millis(20));
            }
        });
        measure(&lab, &driver, "SingleStream", "AccuracyOnly", &shared)
    });
    let warning = disturbed["warnings"][0].as_str().unwrap();
    assert!(
        warning.ends_with("another client may have been served"),
        "{warning}"
    );
    assert_eq!(responses(&lab.accuracy_log(&disturbed)), answers);

    // The server is started again during a run.
    let before = server.generated();
    let long = [&shared[..], &["--duration", "20s"]].concat();
    let failed = thread::scope(|scope| {
        scope.spawn(|| {
            eventually("the run's requests", 60, || server.generated() > before + 100.0);
            server.stop();
            server = UserServer::start_at(server.port, &lab, &python);
        });
        attempt(&lab, &driver, "SingleStream", "PerformanceOnly", &long)
    });
    assert_eq!(failed["phase"], "failed", "{failed:#}");
    let reason = failed["reason"].as_str().unwrap();
    assert!(
        reason.contains("the server has ended") || reason.contains("was started again during the run"),
        "{reason}"
    );

    let again = measure(&lab, &driver, "SingleStream", "AccuracyOnly", &shared);
    assert_eq!(responses(&lab.accuracy_log(&again)), answers);
    server.stop();
    let closed = attempt(&lab, &driver, "SingleStream", "AccuracyOnly", &shared);
    let reason = closed["reason"].as_str().unwrap();
    assert!(
        reason.contains(&format!(
            "no server listens at 127.0.0.1:{}; hint: start it",
            server.port
        )),
        "{reason}"
    );
    server = UserServer::start(&lab, &python);
    refused_before_they_are_queued(&lab, &driver, &server.address());
}

fn refused_before_they_are_queued(lab: &Lab, driver: &Path, address: &str) {
    let server = format!("server={}", driver.display());
    let refused = |settings: &[&str], expected: &str| {
        let mut command = lab.regatta();
        command.args([
            "run",
            "--benchmark",
            BENCHMARK,
            "--scenario",
            "SingleStream",
            "--engine",
            "server",
        ]);
        for setting in [&[server.as_str()], settings].concat() {
            command.args(["--set", setting]);
        }
        let output = command.output().unwrap();
        let text = printed(&output);
        assert!(
            !output.status.success() && text.contains(expected),
            "{expected} in {text}"
        );
    };
    refused(
        &["server_address=192.168.7.7:8080"],
        "must be an address of the device itself",
    );
    refused(
        &[address, "server_port=8080"],
        "server_port and server_address exclude each other",
    );
    refused(
        &["server=llama-cpp", "instance_group_count=2"],
        "instance_group_count has no effect with the server's driver",
    );
}
