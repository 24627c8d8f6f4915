//! Tests of what a ready server answers before a run, and of what it counts after it.

use std::net::TcpListener;

use super::*;
use crate::server::model_server::ModelServer;

/// A server of chats and of tokens, with metrics. Its environment says what is wrong with it.
pub(super) const FAKE: &str = r##"
import http.server, json, os, sys
mode, port, model = os.environ["MODE"], int(sys.argv[1]), sys.argv[2]
requests = tokens = 0
print("serving", flush=True)
TEXTS = {"empty": " ", "garbage": "!!!!", "marks": "<think>\nFrance is"}
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *args): pass
    def send(self, body, status=200):
        body = body.encode()
        self.send_response(status); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def do_GET(self):
        global requests, tokens, mode
        if self.path == "/props": return self.send(json.dumps({"path": "/models/other" if mode == "other" else model}))
        if self.path != "/metrics": return self.send("ok")
        if os.path.exists(model + ".disturbed"):
            if mode == "restarted": requests = tokens = 0
            if mode == "shared": requests += 1; tokens += 9
            if mode != "uncounted": mode = ""
        name = "unnamed_total" if mode == "uncounted" else "tokens_total"
        self.send("# TYPE requests_total counter\nrequests_total{end=\"stop\"} %d\n%s %d\n" % (requests, name, tokens))
    def do_POST(self):
        global requests, tokens
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if mode == "dies": print("illegal instruction", flush=True); os._exit(7)
        if mode == "busy": return self.send("too many", 429)
        if mode == "text": return self.send("hello")
        if mode == "fails": return self.send('{"error":{"message":"no slot"}}')
        if mode == "closes": self.close_connection = True; return
        requests += 1
        if self.path == "/generate":
            tokens += len(request["prompt"])
            return self.send(json.dumps({"tokens": [token + 1 for token in request["prompt"]]}))
        assert request["model"] == model, request
        message = {"content": TEXTS.get(mode, "It is Paris.")}
        if mode == "reasons": message = {"content": "", "reasoning_content": "The user asks"}
        self.send(json.dumps({"choices": [{"message": message}]}))
http.server.ThreadingHTTPServer(("", port), Handler).serve_forever()
"##;

const TABLES: &str = r#"
[loaded_model]
path = "/props"
model = "/path"
[activity]
path = "/metrics"
requests = "requests_total"
tokens = "tokens_total"
[probe]
path = "/chat"
body = '{"model":"{model}"}'
text = "/choices/0/message/content"
contains = "Paris"
reasoning = "/choices/0/message/reasoning_content"
"#;

/// Writes the server and its driver, and returns the path of the driver.
pub(super) fn driver(bench: &Bench, mode: &str) -> PathBuf {
    let script = bench.dir.path().join("probed.py");
    fs::write(&script, FAKE).unwrap();
    let command = format!(
        "\"python3\", \"{}\", \"{{port}}\", \"{{model}}\", \"{{host}}\"",
        script.display()
    );
    let driver = bench.driver(mode, &command);
    let text = fs::read_to_string(&driver).unwrap() + TABLES;
    fs::write(&driver, text).unwrap();
    driver
}

fn serve(bench: &Bench, mode: &str) -> Result<ModelServer, String> {
    start(bench, &driver(bench, mode))
}

/// Starts a server for clients on other machines.
pub(super) fn start(bench: &Bench, driver: &Path) -> Result<ModelServer, String> {
    let driver = driver.display().to_string();
    let port = TcpListener::bind(("127.0.0.1", 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let settings = [
        ("server", driver.as_str()),
        ("server_model", "model"),
        ("server_context", "64"),
        ("server_port", &port.to_string()),
    ];
    let settings = EngineSettings::parse(EngineKind::Server, settings).unwrap();
    let files = bench.dir.path();
    ModelServer::start(&settings, Some(files), files).map_err(|error| chain(&error))
}

/// Lets the server be started again, or serve another client, as its mode says.
pub(super) fn disturb(bench: &Bench) {
    fs::write(bench.dir.path().join("model.disturbed"), "").unwrap();
}

pub(super) fn evidence(bench: &Bench) -> serde_json::Value {
    serde_json::from_slice(&fs::read(bench.dir.path().join("server.json")).unwrap()).unwrap()
}

#[test]
fn a_server_for_clients_that_answers_badly_is_refused_before_its_run() {
    let bench = Bench::new();
    for (mode, expected) in [
        ("busy", "status 429: too many"),
        ("text", "not JSON: hello"),
        (
            "fails",
            "no text at /choices/0/message/content: {\"error\":{\"message\":\"no slot\"}}",
        ),
        ("closes", "the connection to the server broke"),
        (
            "dies",
            "ended with exit code 7; it printed last:\nserving\nillegal instruction",
        ),
        ("empty", "the server's answer is empty"),
        ("garbage", "does not contain `Paris`: !!!!"),
        (
            "reasons",
            "reasons before it answers, which the benchmark forbids: The user asks",
        ),
        ("marks", "reasons before it answers"),
        ("other", "another model, /models/other, instead of"),
    ] {
        let error = serve(&bench, mode).err().unwrap();
        assert!(error.contains(expected), "{expected} in {error}");
        assert!(error.contains("it printed last:\nserving"), "{error}");
    }
}

#[test]
fn a_server_for_clients_that_was_started_again_fails_its_run() {
    let bench = Bench::new();
    let server = serve(&bench, "good").unwrap();
    assert_eq!(evidence(&bench)["before"]["requests"], 1.0, "the probe");
    server.stop().unwrap();
    let counted = evidence(&bench);
    assert_eq!(counted["after"]["requests"], 1.0, "{counted}");
    assert!(
        counted["own"].is_null(),
        "clients on other machines count themselves: {counted}"
    );

    let server = serve(&bench, "restarted").unwrap();
    disturb(&bench);
    let error = server.stop().unwrap_err();
    let error = chain(&error);
    assert!(
        error.contains("was started again during the run; it printed last:\nserving"),
        "{error}"
    );
}

/// Loads the engine, makes two requests, and ends the run.
fn two_requests(mode: &str) -> (Bench, Result<Vec<String>, String>) {
    let bench = Bench::new();
    let backend = bench.configure(&driver(&bench, mode)).unwrap();
    let mut loaded = bench.load_backend(&backend, 1).unwrap();
    for _ in 0..2 {
        query(&mut loaded).unwrap();
    }
    disturb(&bench);
    let ended = backend.end_run().map_err(|error| chain(&error));
    (bench, ended)
}

#[test]
fn requests_of_other_clients_are_warned_of_and_a_restart_fails_the_run() {
    let (bench, ended) = two_requests("good");
    assert_eq!(ended, Ok(Vec::new()));
    let counted = evidence(&bench);
    assert_eq!(
        counted["own"],
        serde_json::json!({ "requests": 2, "tokens": 6 }),
        "{counted}"
    );
    // The first request was the probe.
    assert_eq!(counted["before"]["tokens"], 1.0, "{counted}");
    assert_eq!(counted["after"]["tokens"], 7.0, "{counted}");

    let (_, ended) = two_requests("shared");
    let warnings = ended.unwrap();
    assert_eq!(
        warnings,
        [
            "the server counted 3 requests during the run, but the run made 2: another client may have been served",
            "the server counted 15 generated tokens during the run, but the run made 6: another client may have been served"
        ]
    );

    let (_, ended) = two_requests("uncounted");
    let warnings = ended.unwrap();
    assert!(
        warnings[0].starts_with("the server has no tokens_total at /metrics"),
        "{warnings:?}"
    );

    let (_, ended) = two_requests("restarted");
    let error = ended.unwrap_err();
    assert!(error.contains("was started again during the run"), "{error}");
}

#[test]
fn a_server_of_another_model_is_refused_before_loadgen_starts() {
    let bench = Bench::new();
    let error = bench.load_with(&driver(&bench, "other"), 1).err().unwrap();
    assert!(error.contains("another model, /models/other"), "{error}");
}

#[test]
fn faults_of_probes_are_named() {
    let bench = Bench::new();
    let text = fs::read_to_string(driver(&bench, "")).unwrap();
    for (from, to, expected) in [
        (
            "{model}\"}'",
            "{weights}\"}'",
            "{weights} is not a placeholder; known are model",
        ),
        ("'{\"model\":\"{model}\"}'", "'{'", "`probe.body` is not JSON"),
        (
            "\"/choices/0/message/content\"",
            "\"content\"",
            "of `probe` begin with /",
        ),
        (
            "model = \"/path\"",
            "model = \"path\"",
            "keys of `loaded_model` begin with /",
        ),
        (
            "path = \"/metrics\"",
            "path = \"metrics\"",
            "`activity.path` does not begin with /",
        ),
    ] {
        assert!(text.contains(from), "{from}");
        let error = ServerDriver::from_toml("mine", &text.replace(from, to))
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{expected} in {error}");
    }
}
