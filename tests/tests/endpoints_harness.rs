//! A rehearsal of qwen3.6-27b with the real client of mlcommons/endpoints and a real llama.cpp server, to a tree that the official checker accepts;
//! and the ends of runs that the client itself calls complete. The model is small and random.
//!
//! `REGATTA_ENDPOINTS` names a checkout of mlcommons/endpoints, and `REGATTA_ENDPOINTS_PYTHON` a Python 3.12 that is not in `PATH`. The client's
//! packages are installed beside the oracles on the first run.

#![expect(clippy::unwrap_used, clippy::panic, reason = "test code")]

use std::{
    env, fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
    time::Duration,
};

use regatta_catalogue::known;
use regatta_test_requirements::{Requirement, require};
use regatta_test_support::{oracle, synthetic_endpoints};
use regatta_tests::{
    Broker, Lab, Process, eventually, free_port, mlperf_benchmark::official_checker, printed, regatta,
};
use serde_json::Value;

const MODEL: &str = "small";

/// A server, and a place for runs.
struct Bench {
    place: tempfile::TempDir,
    client: PathBuf,
    environment: PathBuf,
    python: PathBuf,
    port: u16,
}

impl Bench {
    /// Installs the client's packages and makes the model. `None` where one of them is missing.
    fn new() -> Option<Self> {
        let client = env::var_os("REGATTA_ENDPOINTS").map(PathBuf::from);
        let reason = "REGATTA_ENDPOINTS names no checkout of mlcommons/endpoints";
        let has_client = require(client.is_some(), Requirement::OfficialTools, reason);
        let client = client.filter(|_| has_client)?;
        let python = oracle::llama_cpp()?;
        let place = tempfile::tempdir().unwrap();
        let words = ["model.gguf", "tokenizer"].map(|name| place.path().join(name));
        oracle::run(
            &python,
            "llama-cpp",
            "make_chat_model.py",
            &words.each_ref().map(|word| word.as_os_str()),
        );
        let environment = oracle::installation("endpoints-client");
        let bench = Self {
            place,
            client,
            environment,
            python,
            port: free_port(),
        };
        let python = env::var("REGATTA_ENDPOINTS_PYTHON").ok();
        let named = python.as_ref().map(|python| ["--python", python]);
        let set_up = bench.endpoints("setup", named.as_ref().map_or(&[], |words| &words[..]));
        assert!(set_up.status.success(), "{}", printed(&set_up));
        Some(bench)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Starts the server, and waits until it answers.
    fn serve(&self) -> Process {
        let script = oracle::directory("llama-cpp").join("serve.py");
        let mut command = Command::new(&self.python);
        command
            .arg(script)
            .arg(self.path("model.gguf"))
            .args([&self.port.to_string(), "131072", "1", MODEL]);
        let server = Process::start(&mut command, &self.path("server.log"));
        eventually("the server is ready", 30, || is_ready(self.port));
        server
    }

    fn endpoints(&self, command: &str, words: &[&str]) -> Output {
        self.command(command, words).output().unwrap()
    }

    fn command(&self, command: &str, words: &[&str]) -> Command {
        let mut regatta = Command::new(regatta());
        regatta.args(["endpoints", command]).args(words);
        if command != "stage" {
            regatta.arg("--client").arg(&self.client);
            regatta.arg("--environment").arg(&self.environment);
        }
        regatta.args(["--format", "json"]);
        regatta
    }

    /// Stages a run of a system that the test makes up.
    fn stage(&self, run: &Path, division: &str, tree: &Path, further: &[&str]) -> Output {
        let round = known::round("v6.1").unwrap().unwrap();
        let [system, measurements] =
            synthetic_endpoints::descriptions(self.place.path(), round, division, "REHEARSAL-Example");
        let mut words = vec![run.to_str().unwrap(), "--division", division];
        words.extend(["--submitter", "Example", "--system", "Thor"]);
        for (option, path) in [
            ("--description", system.as_path()),
            ("--measurements", &measurements),
            ("--output", tree),
        ] {
            words.extend([option, path.to_str().unwrap()]);
        }
        self.endpoints("stage", &[&words[..], further].concat())
    }

    fn rehearse(&self, model: &str, output: &Path) -> Output {
        self.rehearsal(model, output).output().unwrap()
    }

    /// Returns the command that rehearses with one conversation and short answers.
    fn rehearsal(&self, model: &str, output: &Path) -> Command {
        let url = format!("http://127.0.0.1:{}", self.port);
        self.rehearsal_of(&["--url", &url, "--model", model], output)
    }

    /// As [`Self::rehearsal`], with other words for the server.
    fn rehearsal_of(&self, server: &[&str], output: &Path) -> Command {
        let tokenizer = self.path("tokenizer");
        let words = [
            "--benchmark",
            "qwen3.6-27b",
            "--tokenizer",
            tokenizer.to_str().unwrap(),
            "--output",
            output.to_str().unwrap(),
            "--rehearsal",
            "--set",
            "datasets.0.agentic_inference.num_trajectories_to_issue=1",
            "--set",
            "model_params.max_new_tokens=8",
        ];
        self.command("run", &[server, &words].concat())
    }

    /// Makes a lab whose device has the model, and a driver of the server.
    fn lab(&self) -> Option<Lab> {
        let mut lab = Lab::new(Broker::Embedded)?;
        let models = lab.scratch().join("models");
        fs::create_dir_all(&models).unwrap();
        fs::copy(self.path("model.gguf"), models.join("model.gguf")).unwrap();
        let script = oracle::directory("llama-cpp").join("serve.py");
        let driver = format!(
            "schema = 1\ntitle = \"llama.cpp\"\ncommand = [\"{}\", \"{}\", \"{{model}}\", \"{{port}}\", \"{{context}}\", \"{{parallel}}\", \"{MODEL}\", \"{{host}}\"]\n\
             ready = {{ path = \"/health\", within_s = 60 }}\n",
            self.python.display(),
            script.display()
        );
        fs::write(self.path("driver.toml"), driver).unwrap();
        lab.start_coordinator();
        lab.start_device();
        lab.wait_for_device();
        Some(lab)
    }

    /// Returns the command that rehearses with a server that the lab's device starts.
    fn rehearsal_on_device(&self, lab: &Lab, output: &Path) -> Command {
        let driver = self.path("driver.toml");
        let port = format!("server_port={}", self.port);
        let words = [
            "--device",
            "boat",
            "--host",
            "127.0.0.1",
            "--server",
            driver.to_str().unwrap(),
            "--server-model",
            "models/model.gguf",
            "--server-set",
            &port,
            "--server-set",
            "server_context=131072",
        ];
        let mut command = self.rehearsal_of(&words, output);
        command.arg("--workspace").arg(lab.workspace());
        command
    }
}

/// Checks a tree by the rules.
fn check(tree: &Path) -> Output {
    let mut check = Command::new(regatta());
    check.args(["submission", "check", "--format", "json", "--input"]);
    check.arg(tree).output().unwrap()
}

/// Returns whether the server has loaded its model. Until then it answers with another status.
fn is_ready(port: u16) -> bool {
    let Ok(mut connection) = TcpStream::connect(("127.0.0.1", port)) else {
        return false;
    };
    let mut answer = String::new();
    connection.write_all(b"GET /health HTTP/1.0\r\n\r\n").is_ok()
        && connection.read_to_string(&mut answer).is_ok()
        && answer.starts_with("HTTP/1.1 200")
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", printed(output)))
}

#[test]
fn a_rehearsal_leads_to_a_tree_that_the_official_checker_accepts() {
    let Some(bench) = Bench::new() else {
        return;
    };
    let _server = bench.serve();
    let (run, tree) = (bench.path("run"), bench.path("tree"));
    let rehearsal = bench.rehearse(MODEL, &run);
    let rehearsal = document(&rehearsal);
    assert_eq!(rehearsal["session"]["end"]["kind"], "completed", "{rehearsal:#}");
    assert_eq!(rehearsal["session"]["server"], "llama.cpp");
    let outcome = &rehearsal["session"]["outcome"];
    assert_eq!(outcome["requests"], 58, "{outcome:#}");
    assert!(outcome["mean_latency_ns"].as_f64() > Some(0.0), "{outcome:#}");
    let problems = outcome["problems"].to_string();
    assert!(problems.contains("the rules prescribe 1007"), "{problems}");
    assert!(!problems.contains("failed"), "{problems}");
    // The rules bound both figures.
    assert!(
        problems.contains("the accuracy is") && problems.contains("the normalized accuracy is"),
        "{problems}"
    );

    let refused = bench.stage(&run, "open", &tree, &[]);
    let words = printed(&refused);
    assert!(words.contains("it is a rehearsal"), "{words}");
    assert!(!tree.exists());
    let staged = bench.stage(&run, "open", &tree, &["--rehearsal"]);
    assert!(staged.status.success(), "{}", printed(&staged));
    assert_eq!(document(&check(&tree))["verdict"], "pass");
    if let Some(output) = official_checker(&tree, "v6.1") {
        assert!(!output.contains(" ERROR]"), "{output}");
    }
    // A second result of the same kind has no place there, and another system needs a description.
    let add = |system: &str| {
        let measurements = bench.path("measurements.json");
        let words = [
            run.to_str().unwrap(),
            "--division",
            "open",
            "--submitter",
            "Example",
            "--system",
            system,
            "--measurements",
            measurements.to_str().unwrap(),
            "--rehearsal",
            "--add-to",
            tree.to_str().unwrap(),
        ];
        printed(&bench.endpoints("stage", &words))
    };
    assert!(add("Thor").contains("measurements.json already exists"));
    assert!(add("Orin").contains("does not have open/REHEARSAL-Example/systems/REHEARSAL-Orin.json"));
    // In a tree that has the system but not the result, it is added.
    let result = tree.join("open/REHEARSAL-Example/results/REHEARSAL-Thor/qwen3.6-27b");
    fs::remove_dir_all(&result).unwrap();
    let added = add("Thor");
    assert!(result.join("SingleStream/measurements.json").is_file(), "{added}");
    assert_eq!(document(&check(&tree))["verdict"], "pass");
    // The rules of the closed division prescribe all conversations, and the tokens of an answer.
    let closed = bench.path("closed");
    let staged = bench.stage(&run, "closed", &closed, &["--rehearsal"]);
    assert!(staged.status.success(), "{}", printed(&staged));
    let checked = check(&closed);
    let words = printed(&checked);
    assert_eq!(checked.status.code(), Some(1), "{words}");
    for part in [
        "model_params.max_new_tokens is 8",
        "num_trajectories_to_issue is 1",
        "1007",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    let scores = run.join("report/scores.json");
    fs::write(&scores, format!("{}\n", fs::read_to_string(&scores).unwrap())).unwrap();
    let refused = bench.stage(&run, "open", &bench.path("changed"), &["--rehearsal"]);
    let words = printed(&refused);
    assert!(
        words.contains("its documents were changed after the run"),
        "{words}"
    );
}

#[test]
fn a_run_ends_with_the_first_lost_request() {
    let Some(bench) = Bench::new() else {
        return;
    };
    let mut server = bench.serve();
    let wrong = bench.rehearse("other", &bench.path("wrong"));
    let words = printed(&wrong);
    assert!(words.contains("it serves small, not other"), "{words}");
    assert!(!bench.path("wrong").exists());

    let run = bench.path("run");
    let rehearsal = thread::scope(|scope| {
        let rehearsal = scope.spawn(|| bench.rehearse(MODEL, &run));
        let log = run.join("client.log");
        eventually("the first answers", 300, || {
            fs::read_to_string(&log).is_ok_and(|text| text.contains(" 3/2002 ["))
        });
        thread::sleep(Duration::from_secs(1));
        server.kill();
        rehearsal.join().unwrap()
    });
    assert_eq!(rehearsal.status.code(), Some(1), "{}", printed(&rehearsal));
    let session = &document(&rehearsal)["session"];
    assert_eq!(session["end"]["kind"], "lost-request", "{session:#}");
    let reason = session["end"]["reason"].as_str().unwrap();
    assert!(reason.contains("Connection"), "{reason}");
    // The client itself calls it complete or interrupted, and staging refuses it in any case.
    let gone = bench.rehearse(MODEL, &bench.path("gone"));
    assert!(printed(&gone).contains("cannot be used"), "{}", printed(&gone));
}

#[test]
fn a_device_serves_the_model_and_signs_its_part_of_the_run() {
    let Some(bench) = Bench::new() else {
        return;
    };
    let Some(lab) = bench.lab() else {
        return;
    };
    let run = bench.path("run");
    let rehearsal = bench.rehearsal_on_device(&lab, &run).output().unwrap();
    let rehearsal = document(&rehearsal);
    let session = &rehearsal["session"];
    assert_eq!(session["end"]["kind"], "completed", "{rehearsal:#}");
    // The name of the server's only model.
    assert_eq!(session["model"], MODEL);
    let device_run = &session["device_run"];
    assert_eq!(device_run["failure"], Value::Null, "{device_run:#}");
    let id = device_run["run"].as_str().unwrap();
    assert_eq!(lab.phase(id), "done");
    assert!(TcpStream::connect(("127.0.0.1", bench.port)).is_err());

    // The copy is signed and complete, and has the server's log and the sensors beside it.
    let copy = run.join("device");
    let verified = lab.json(&["runs", "verify", copy.to_str().unwrap()]);
    assert_eq!(verified["runs"][0]["intact"], true, "{verified:#}");
    assert_eq!(verified["runs"][0]["has_evidence"], true, "{verified:#}");
    for file in [
        "server.log",
        "server.json",
        "telemetry.csv",
        "attempt.json",
        "evidence.sig",
    ] {
        assert!(copy.join("files").join(file).is_file(), "{file}");
    }
    let staged = bench.stage(&run, "open", &bench.path("tree"), &["--rehearsal"]);
    assert!(staged.status.success(), "{}", printed(&staged));
}

#[test]
fn the_failure_of_a_device_run_names_the_signal_that_ended_its_server() {
    let Some(bench) = Bench::new() else {
        return;
    };
    let Some(lab) = bench.lab() else {
        return;
    };
    let run = bench.path("run");
    let rehearsal = thread::scope(|scope| {
        let rehearsal = scope.spawn(|| bench.rehearsal_on_device(&lab, &run).output().unwrap());
        let log = run.join("client.log");
        eventually("the first answers", 300, || {
            fs::read_to_string(&log).is_ok_and(|text| text.contains(" 3/2002 ["))
        });
        let killed = Command::new("pkill")
            .args(["-KILL", "-f"])
            .arg(lab.scratch())
            .status();
        assert!(killed.unwrap().success());
        rehearsal.join().unwrap()
    });
    assert_eq!(rehearsal.status.code(), Some(1), "{}", printed(&rehearsal));
    let session = &document(&rehearsal)["session"];
    assert_eq!(session["end"]["kind"], "lost-request", "{session:#}");
    let failure = session["device_run"]["failure"].as_str().unwrap();
    assert!(failure.contains("was ended by signal 9"), "{failure}");
}

#[test]
fn no_client_is_left_by_a_run_that_is_killed() {
    let Some(bench) = Bench::new() else {
        return;
    };
    let _server = bench.serve();
    let run = bench.path("run");
    let mut rehearsal = Process::start(&mut bench.rehearsal(MODEL, &run), &bench.path("rehearsal.log"));
    let clients = || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let words = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
        words
            .filter(|words| {
                let words = String::from_utf8_lossy(words);
                words.contains("inference_endpoint.main") && words.contains(run.to_str().unwrap())
            })
            .count()
    };
    eventually("the client to start", 60, || clients() > 0);
    rehearsal.kill();
    eventually("the client to end", 10, || clients() == 0);
}

#[test]
fn a_changed_client_is_refused() {
    let Some(bench) = Bench::new() else {
        return;
    };
    let copy = bench.path("client");
    let cloned = Command::new("git")
        .args(["clone", "--quiet", "--shared"])
        .arg(&bench.client)
        .arg(&copy)
        .status();
    assert!(cloned.unwrap().success());
    let main = copy.join("src/inference_endpoint/main.py");
    fs::write(&main, format!("{}\n", fs::read_to_string(&main).unwrap())).unwrap();
    let changed = Bench {
        client: copy,
        ..bench
    };
    let refused = changed.rehearse(MODEL, &changed.path("run"));
    let words = printed(&refused);
    assert!(
        words.contains("has local changes: src/inference_endpoint/main.py"),
        "{words}"
    );
    assert_eq!(refused.status.code(), Some(2), "{words}");
}
