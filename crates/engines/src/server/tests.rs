//! Tests of the server engine with a made-up server: a shell or Python script that its driver starts. tests/tests/model_server.rs has a real one.

mod found;
mod llama;
mod probes;
mod texts;
#[cfg(feature = "tract")]
mod triton;

use std::{
    fs,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use regatta_catalogue::known;
use regatta_types::{
    Scenario,
    benchmark::{Benchmark, Generation},
    engine_settings::EngineSettings,
};

use super::*;
use crate::{Answers, Batch, Input, SequenceBuckets};

/// A server of Python's standard library. It answers a prompt with the prompt's tokens plus one each, as its environment says.
const FAKE: &str = r#"
import http.server, json, os, sys, time
mode = os.environ.get("MODE", "")
print("loading", flush=True)
if mode == "crash":
    print("out of memory", flush=True); sys.exit(3)
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *args): pass
    def do_GET(self):
        self.send_response(503 if mode == "never" else 200); self.send_header("Content-Length", "2"); self.end_headers(); self.wfile.write(b"ok")
    def do_POST(self):
        global mode
        # The next request may come on another connection before this one ends.
        current, mode = mode, mode.removeprefix("later ")
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        tokens = [token + request.get("n", 1) for token in request.get("prompt", [])]
        if current == "die": print("illegal instruction", flush=True); os._exit(7)
        if current == "busy": self.send_response(429); self.send_header("Content-Length", "8"); self.end_headers(); self.wfile.write(b"too many"); return
        if current == "text": body = b"hello"
        elif "messages" in request: body = json.dumps({"choices": [{"message": {"content": "a b", "reasoning_content": "Let me see" if current == "reasons" else None}}]}).encode()
        else: body = json.dumps({"tokens": tokens}).encode()
        if not request.get("stream"):
            self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
        else:
            self.send_response(200); self.send_header("Transfer-Encoding", "chunked"); self.end_headers()
            for token in tokens:
                data = b'data: {"tokens":[%d]}\n\n' % token
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data)); self.wfile.flush(); time.sleep(0.05)
            self.wfile.write(b"0\r\n\r\n")
        # As llama.cpp: the header promises to keep the connection.
        if current == "closes": self.close_connection = True
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

struct Bench {
    dir: tempfile::TempDir,
    benchmark: Benchmark,
    is_streaming: bool,
}

impl Bench {
    fn new() -> Self {
        let benchmarks = known::benchmarks().unwrap().into_iter();
        let mut benchmark = benchmarks
            .into_iter()
            .find(|benchmark| benchmark.name == "llama3.1-8b-edge")
            .unwrap();
        benchmark.model.input_shape = vec![4];
        benchmark.model.generation = Some(Generation::greedy(8));
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("fake.py"), FAKE).unwrap();
        fs::write(dir.path().join("model"), "weights").unwrap();
        Self {
            dir,
            benchmark,
            is_streaming: false,
        }
    }

    fn driver(&self, mode: &str, command: &str) -> PathBuf {
        let path = self.dir.path().join("driver.toml");
        let text = format!(
            "schema = 1\ntitle = \"fake\"\ncommand = [{command}]\nenvironment = {{ MODE = \"{mode}\" }}\nstop_s = 5\n\
             ready = {{ path = \"/health\", within_s = 20 }}\n[generate]\npath = \"/generate\"\n\
             body = '{{\"prompt\":{{prompt}},\"stream\":{{stream}}}}'\ntokens = \"/tokens\"\n\
             beam_body = '{{\"prompt\":{{prompt}},\"n\":{{beams}},\"min_tokens\":{{min_tokens}}}}'\n"
        );
        fs::write(&path, text).unwrap();
        path
    }

    fn load(&self, mode: &str) -> Result<Loaded, String> {
        let script = self.dir.path().join("fake.py");
        let command = format!("\"python3\", \"{}\", \"{{port}}\"", script.display());
        self.load_with(&self.driver(mode, &command), 1)
    }

    fn load_with(&self, driver: &Path, streams: usize) -> Result<Loaded, String> {
        let backend = self.configure(driver)?;
        self.load_backend(&backend, streams)
    }

    fn configure(&self, driver: &Path) -> Result<ServerBackend, String> {
        self.configure_with(driver, &[])
    }

    fn configure_with(&self, driver: &Path, further: &[(&str, &str)]) -> Result<ServerBackend, String> {
        let driver = driver.display().to_string();
        let named = [("server", driver.as_str())];
        let settings = named.iter().chain(further).copied();
        let settings = EngineSettings::parse(EngineKind::Server, settings).unwrap();
        ServerBackend::configure(&EngineRequest {
            settings: &settings,
            scenario: Scenario::Server,
            model: &self.benchmark.model,
            scratch: Some(self.dir.path()),
            sends_first_tokens: self.is_streaming,
            files: self.dir.path(),
        })
        .map_err(|error| chain(&error))
    }

    fn load_backend(&self, backend: &ServerBackend, streams: usize) -> Result<Loaded, String> {
        let request = LoadRequest {
            benchmark: &self.benchmark,
            model_file: self.dir.path().join("model"),
            image_sizes: Arc::default(),
            volumes: Arc::default(),
            sequences: Arc::new(SequenceBuckets::default()),
            batch_sizes: &[1],
            takes_any_batch: false,
            streams,
        };
        crate::load(backend, &request, None).map_err(|error| chain(&error))
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Asks for the answer to a prompt of three tokens. Returns it with the times of the first token and of the answer.
fn query(loaded: &mut Loaded) -> Result<(Vec<i32>, Option<Duration>, Duration), String> {
    let sample: Vec<u8> = [5, 6, 7, 0, 3_i32]
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let batch = Batch {
        samples: &[0],
        input: Input::Contiguous(&sample),
    };
    let (mut answers, mut first) = (Answers::default(), None);
    let begun = Instant::now();
    let answered = loaded.engines[0].infer_streaming(&batch, &mut answers, &mut |place, token| {
        assert_eq!((place, token), (0, &6_i32.to_le_bytes()[..]));
        first = Some(begun.elapsed());
    });
    answered.map_err(|error| chain(&error))?;
    let took = begun.elapsed();
    assert_eq!(answers.token_counts().collect::<Vec<_>>(), [3]);
    let bytes = answers.iter().next().unwrap().chunks_exact(4);
    let tokens = bytes
        .map(|token| i32::from_le_bytes(token.try_into().unwrap()))
        .collect();
    Ok((tokens, first, took))
}

fn is_running(pid: &str) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat"));
    state.is_ok_and(|text| !text.contains(") Z "))
}

#[test]
fn answers_come_whole_or_in_a_stream_and_the_server_ends_with_the_engine() {
    let mut bench = Bench::new();
    for (is_streaming, mode) in [(false, ""), (true, ""), (false, "closes"), (true, "closes")] {
        bench.is_streaming = is_streaming;
        let mut loaded = bench.load(mode).unwrap();
        for _ in 0..3 {
            let (tokens, first, took) = query(&mut loaded).unwrap();
            assert_eq!(tokens, [6, 7, 8]);
            assert_eq!(first.is_some(), is_streaming);
            // The made-up server waits between tokens.
            assert!(
                first.is_none_or(|first| first + Duration::from_millis(80) < took),
                "{first:?} {took:?}"
            );
        }
        let evidence = fs::read(bench.dir.path().join("server.json")).unwrap();
        let evidence: serde_json::Value = serde_json::from_slice(&evidence).unwrap();
        let pid = evidence["pid"].to_string();
        assert!(
            is_running(&pid) && evidence["start_ticks"].as_u64().unwrap() > 0,
            "{evidence}"
        );
        assert_eq!(
            evidence["program_sha256"].as_str().unwrap().len(),
            64,
            "{evidence}"
        );
        assert_eq!(evidence["model_sha256"].as_str().unwrap().len(), 64, "{evidence}");
        drop(loaded);
        assert!(!is_running(&pid));
        let log = fs::read_to_string(bench.dir.path().join("server.log")).unwrap();
        assert!(log.starts_with("loading"), "{log}");
    }
}

#[test]
fn servers_that_do_not_start_are_explained() {
    let bench = Bench::new();
    let error = bench.load("crash").err().unwrap();
    assert!(
        error.contains("ended with exit code 3") && error.contains("out of memory"),
        "{error}"
    );
    let missing = bench.driver("", "\"no-such-server\", \"{port}\"");
    let error = bench.load_with(&missing, 1).err().unwrap();
    assert!(
        error.contains("its program is not installed") && error.contains("no-such-server"),
        "{error}"
    );
    let slow = fs::read_to_string(bench.driver(
        "never",
        &format!(
            "\"python3\", \"{}\", \"{{port}}\"",
            bench.dir.path().join("fake.py").display()
        ),
    ))
    .unwrap();
    let path = bench.dir.path().join("driver.toml");
    fs::write(&path, slow.replace("within_s = 20", "within_s = 3")).unwrap();
    let error = bench.load_with(&path, 1).err().unwrap();
    assert!(
        error.contains(
            "was not ready within 3 s: the server answered with status 503: ok; it printed last:\nloading"
        ),
        "{error}"
    );
}

#[test]
fn answers_that_fail_are_explained() {
    let bench = Bench::new();
    for (mode, expected) in [
        ("die", "ended with exit code 7"),
        ("die", "illegal instruction"),
        ("busy", "status 429: too many"),
        ("text", "not JSON: hello"),
    ] {
        // The first request is before the run.
        let error = bench.load(mode).err().unwrap();
        assert!(error.contains(expected), "{expected} in {error}");
        assert!(error.contains("loading"), "the last lines in {error}");
        let mut loaded = bench.load(&format!("later {mode}")).unwrap();
        let error = query(&mut loaded).unwrap_err();
        assert!(error.contains(expected), "{expected} in {error}");
    }
}

#[test]
fn benchmarks_without_prompts_are_refused() {
    let mut bench = Bench::new();
    bench.benchmark.model.generation = None;
    let error = bench.load("").err().unwrap();
    assert!(
        error.contains(
            "no model server computes the responses of benchmark llama3.1-8b-edge: its file has no"
        ),
        "{error}"
    );
}

#[test]
fn beams_are_requested_where_the_benchmark_decodes_with_them() {
    let mut bench = Bench::new();
    bench.is_streaming = true;
    let generation = bench.benchmark.model.generation.as_mut().unwrap();
    (generation.min_tokens, generation.beams) = (2, std::num::NonZeroUsize::new(4));
    let mut loaded = bench.load("").unwrap();
    // The made-up server adds the number of beams to each token. Nothing is streamed.
    let sample: Vec<u8> = [5, 6, 7, 0, 3_i32]
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let batch = Batch {
        samples: &[0],
        input: Input::Contiguous(&sample),
    };
    let mut answers = Answers::default();
    loaded.engines[0].infer(&batch, &mut answers).unwrap();
    let expected: Vec<u8> = [9, 10, 11_i32]
        .iter()
        .flat_map(|token| token.to_le_bytes())
        .collect();
    assert_eq!(answers.iter().next().unwrap(), expected);
    assert!(!loaded.engines[0].streams_tokens());
    let error = bench.configure_with(Path::new("llama-cpp"), &[]).err().unwrap();
    assert!(
        error.contains(
            "the server driver llama.cpp has no `generate.beam_body`: its server does not decode with 4 beams"
        ),
        "{error}"
    );
}

/// A server must not outlive a process that is killed, which cannot stop it.
#[test]
fn a_server_ends_with_a_process_that_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let pid_file = dir.path().join("pid");
    // It holds the writing end of the pipe, as the process does that starts a server.
    let mut parent = Command::new("sleep")
        .arg("60")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut shell = Command::new("sh")
        .args(["-c", super::process::WATCHED])
        .arg(&pid_file)
        .args(["sleep", "300"])
        .process_group(0)
        .stdin(parent.stdout.take().unwrap())
        .spawn()
        .unwrap();
    let pid = loop {
        match fs::read_to_string(&pid_file) {
            Ok(text) if text.ends_with('\n') => break text.trim().to_owned(),
            _ => thread::sleep(Duration::from_millis(10)),
        }
    };
    assert!(is_running(&pid));
    parent.kill().unwrap();
    parent.wait().unwrap();
    let begun = Instant::now();
    while is_running(&pid) {
        assert!(begun.elapsed() < Duration::from_secs(10), "the server goes on");
        thread::sleep(Duration::from_millis(20));
    }
    shell.wait().unwrap();
}
