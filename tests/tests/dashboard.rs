//! Tests of the live page of `regatta serve` over HTTP: 20 active simulated devices, hostile names, headers, and refused
//! requests.

#![expect(clippy::expect_used, clippy::panic, reason = "test code")]

use std::{fs, path::Path, process::Command};

use regatta_tests::{
    Broker, Lab, Process, agent,
    browser_client::{PageEvents, get_page, request_page},
    eventually, json_schema, regatta, succeed_output,
};
use regatta_types::{DeviceId, documents::DeviceFacts};
use regatta_wire::{
    message::{Hello, Message as _},
    signed_report::SignedReport,
    topic::{Leaf, Topic},
};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use rumqttc::{Client, MqttOptions, PublishOptions, QoS};
use serde_json::{Value, json};

const DEVICES: usize = 20;

/// A lab with the embedded broker and without keys, whose page has a free port.
fn plain_lab() -> Lab {
    let lab = Lab::new(Broker::Embedded).expect("it needs nothing that could be missing");
    listen(&lab, "127.0.0.1:0");
    lab
}

/// Sets where the page listens.
fn listen(lab: &Lab, address: &str) {
    let config = lab.workspace().join("regatta.toml");
    let text = fs::read_to_string(&config).expect("regatta.toml");
    fs::write(&config, format!("{text}dashboard_listen = \"{address}\"\n")).expect("regatta.toml");
}

/// Starts devices of one process.
fn simulated_devices(lab: &Lab) -> Process {
    let mut command = Command::new(agent());
    command
        .args([
            "simulate",
            "--devices",
            &DEVICES.to_string(),
            "--concurrent-runs",
            "1",
        ])
        .args([
            "--broker",
            &format!("mqtt://127.0.0.1:{}", lab.port),
            "--state-dir",
        ])
        .arg(lab.scratch().join("fleet"));
    Process::start(&mut command, &lab.scratch().join("fleet.log"))
}

#[test]
fn the_fleet_page_shows_devices_and_their_changes() {
    let mut lab = plain_lab();
    lab.start_coordinator();
    let url = lab.page_url();
    let empty = get_page(&url, "/");
    assert!(
        empty.body.contains("No device has connected yet"),
        "{}",
        empty.body
    );
    let _fleet = simulated_devices(&lab);
    let rows = |path: &str| get_page(&url, path).body.matches("<tr id=\"d-").count();
    eventually("every device to be idle", 90, || rows("/?state=idle") == DEVICES);

    let _ = succeed_output(lab.regatta().args(["device", "label", "boat-sim-0003", "+edge"]));
    eventually("the label", 20, || rows("/?label=edge") == 1);
    assert_eq!(rows("/?text=SIM-0003"), 1);
    assert_eq!(rows("/?text=nothing"), 0);
    let by_name = get_page(&url, "/?sort=name&order=down").body;
    let at = |name: &str| by_name.find(name).expect("the device");
    assert!(at("boat-sim-0020") < at("boat-sim-0003"));

    let mut events = PageEvents::open(&url, "/live/fleet?");
    let first = events.next_data();
    assert_eq!(first.matches("boat-sim-").count(), DEVICES, "{first}");
    let note = "<b>fan</b>\u{202e}";
    let _ = succeed_output(
        lab.regatta()
            .args(["device", "drain", "boat-sim-0007", "--note", note]),
    );
    let change = loop {
        let change = events.next_data();
        if change.contains("maintenance") {
            break change;
        }
    };
    assert!(change.contains("boat-sim-0007"), "{change}");
    assert!(!change.contains("boat-sim-0008"), "only what changed: {change}");
    assert!(change.contains(r"&lt;b&gt;fan&lt;/b&gt;\\u{202e}"), "{change}");

    let requested = lab.json(&[
        "run",
        "--device",
        "boat-sim-0001",
        "--benchmark",
        "digits",
        "--scenario",
        "Offline",
        "--engine",
        "sim",
        "--duration",
        "5s",
        "--no-wait",
    ]);
    assert!(requested["runs"][0]["run"].is_string());
    let run = loop {
        let change = events.next_data();
        if change.contains("digits Offline") {
            break change;
        }
    };
    assert!(run.contains("boat-sim-0001"), "{run}");
}

/// Requests runs of simulated devices and returns their ids.
fn request(lab: &Lab, devices: &str, words: &[&str]) -> Vec<String> {
    let common = [
        "run",
        "--device",
        devices,
        "--benchmark",
        "digits",
        "--engine",
        "sim",
        "--no-wait",
    ];
    let requested = lab.json(&[&common, words].concat());
    let runs = requested["runs"].as_array().expect("runs").iter();
    runs.map(|run| run["run"].as_str().expect("an id").to_owned())
        .collect()
}

#[test]
fn the_runs_pages_show_each_run_with_its_proof_and_files() {
    let mut lab = plain_lab();
    lab.start_coordinator();
    let url = lab.page_url();
    assert!(get_page(&url, "/runs").body.contains("No run yet"));
    let _fleet = simulated_devices(&lab);
    let rows = |path: &str| get_page(&url, path).body.matches("<tr id=\"r-").count();
    let online = || get_page(&url, "/?state=idle").body.matches("<tr id=\"d-").count();
    eventually("every device to be idle", 90, || online() == DEVICES);

    let words = [
        "--scenario",
        "SingleStream",
        "--duration",
        "3s",
        "--conf",
        "target_latency=2",
    ];
    let run = request(&lab, "boat-sim-0001", &words).remove(0);
    let mut events = PageEvents::open(&url, &format!("/live/run/{run}"));
    assert!(events.next_data().contains("Shown once the run is recorded"));
    let recorded = loop {
        let change = events.next_data();
        if change.contains("Latency in") || change.contains("latency in ms") {
            break change;
        }
    };
    assert!(recorded.contains("judged: 90th percentile"), "{recorded}");
    let page = get_page(&url, &format!("/run/{run}")).body;
    let shown = succeed_output(lab.regatta().args(["runs", "show", &run]));
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    // The page has the reasons that the command prints.
    let reasons = shown
        .lines()
        .filter_map(|line| line.split_once(": ").map(|(_, reason)| reason));
    let reasons: Vec<&str> = reasons.filter(|reason| reason.contains("sim")).collect();
    assert!(!reasons.is_empty(), "{shown}");
    for reason in reasons {
        assert!(page.contains(reason), "{reason}: {page}");
    }
    for part in [
        "signed by the device",
        "every file of the evidence is here",
        "99.9th percentile",
        "Processor load",
        "regatta run --device boat-sim-0001 --benchmark digits --scenario SingleStream",
        "--duration 3000ms",
        "--conf digits.SingleStream.target_latency=2",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("style=") && !page.contains("<script>"), "{page}");

    // The command repeats the run.
    let command = page
        .split("<code>regatta run ")
        .nth(1)
        .and_then(|rest| rest.split('<').next());
    let command = command.expect("a command").to_owned();
    let again = lab.json(
        &[
            &["run"][..],
            &command.split(' ').collect::<Vec<_>>(),
            &["--no-wait"],
        ]
        .concat(),
    );
    let again = again["runs"][0]["run"].as_str().expect("a run").to_owned();
    let spec = |run: &str| {
        let path = lab.workspace().join("runs").join(run).join("spec.json");
        eventually("the spec", 60, || path.is_file());
        let mut spec: Value = serde_json::from_slice(&fs::read(path).expect("a spec")).expect("JSON");
        let fields = spec.as_object_mut().expect("an object");
        fields.remove("run");
        fields.remove("created");
        spec
    };
    assert_eq!(spec(&run), spec(&again));

    let file = |name: &str| get_page(&url, &format!("/run/{run}/file/{name}"));
    let detail = file("mlperf_log_detail.txt");
    let own = lab
        .workspace()
        .join("runs")
        .join(&run)
        .join("files/mlperf_log_detail.txt");
    assert_eq!(detail.body, fs::read_to_string(own).expect("the log"));
    let disposition = "attachment; filename=\"mlperf_log_detail.txt\"";
    assert_eq!(detail.header("content-disposition"), Some(disposition));
    assert_eq!(detail.header("content-type"), Some("application/octet-stream"));
    assert_eq!(file("record.json").status, 200);
    for name in [
        "nothing.txt",
        "..%2frecord.json",
        "%2e%2e%2f%2e%2e%2fregatta.toml",
        "staged.json",
        ".hidden",
        "files",
    ] {
        assert_eq!(file(name).status, 404, "{name}");
    }
    assert_eq!(get_page(&url, "/run/nothing").status, 404);
    assert_eq!(
        get_page(&url, &format!("/run/{}", run.replace(&run[..8], "00000000"))).status,
        404
    );

    let more = request(
        &lab,
        "all",
        &["--scenario", "Offline", "--duration", "100ms", "--repeat", "3"],
    );
    assert_eq!(more.len(), 3 * DEVICES);
    let page = get_page(&url, "/runs").body;
    assert_eq!(page.matches("<tr id=\"r-").count(), 50);
    assert!(page.contains(">Older</a>"), "{page}");
    let older = page
        .split("href=\"/runs?before=")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    assert_eq!(rows(&format!("/runs?before={}", older.expect("a link"))), 12);
    assert_eq!(rows("/runs?device=sim-0003"), 3);
    assert_eq!(rows("/runs?device=nobody"), 0);
    let verdict = if lab.show(&run)["valid"] == true {
        "valid"
    } else {
        "invalid"
    };
    let is_listed = |verdict: &str| {
        let path = format!("/runs?verdict={verdict}&device=sim-0001&benchmark=digits");
        get_page(&url, &path)
            .body
            .contains(&format!("<tr id=\"r-{run}\""))
    };
    assert!(is_listed(verdict) && !is_listed("aborted"));
    assert_eq!(get_page(&url, "/runs?verdict=good").status, 400);
}

/// The operations whose documents need more than this lab has.
const COMPARISON: &str = "/api/v1/comparison";
const HISTORIES: &str = "/api/v1/histories";
const POWER_SESSION: &str = "/api/v1/power-sessions/{session}";

/// Checks that an operation refuses a request without what its description requires.
fn assert_that_required_words_are_required(url: &str, path: &str, operation: &Value) {
    let parameters = operation["get"]["parameters"].as_array().expect("parameters");
    let required = parameters.iter().filter(|one| one["required"] == true).count();
    let expected = match path {
        COMPARISON => (2, 400),
        HISTORIES => (0, 400),
        _ => (1, 404),
    };
    assert_eq!((required, get_page(url, path).status), expected, "{path}");
}

/// Checks that the Grafana dashboard only queries existing metrics, and that each of its panels has a unit.
fn assert_that_grafana_finds_its_metrics(url: &str, metrics: &str) {
    let dashboard = get_page(url, "/metrics/grafana.json");
    assert_eq!(dashboard.header("content-type"), Some("application/json"));
    let dashboard: Value = serde_json::from_str(&dashboard.body).expect("JSON");
    let families: Vec<&str> = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    let names = |expression: &str| -> Vec<String> {
        let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        words
            .filter(|word| word.starts_with("regatta_"))
            .map(str::to_owned)
            .collect()
    };
    let mut used = names(&dashboard["templating"].to_string());
    let panels = dashboard["panels"].as_array().expect("panels");
    assert!(panels.len() > 10);
    for panel in panels {
        assert!(
            panel["fieldConfig"]["defaults"]["unit"].is_string(),
            "{} has no unit",
            panel["title"]
        );
        for target in panel["targets"].as_array().expect("targets") {
            let found = names(target["expr"].as_str().expect("a query"));
            assert!(!found.is_empty(), "{target}");
            used.extend(found);
        }
    }
    for name in &used {
        assert!(families.contains(&name.as_str()), "the lab has no metric {name}");
    }
    for family in families {
        assert!(used.iter().any(|name| name == family), "no panel shows {family}");
    }
}

/// Compares the answers of `/api/v1` with its OpenAPI document and with what commands print, and reads `/metrics`.
fn assert_that_programs_read_what_commands_print(lab: &Lab, url: &str) {
    let read = |path: &str| -> Value {
        let answer = get_page(url, path);
        assert_eq!(answer.header("content-type"), Some("application/json"), "{path}");
        serde_json::from_str(&answer.body).expect("JSON")
    };
    let openapi = read("/api/v1/openapi.json");
    let schemas = openapi["components"]["schemas"].to_string();
    let schemas = schemas.replace("#/components/schemas/", "#/$defs/");
    let schemas = json!({ "$defs": serde_json::from_str::<Value>(&schemas).expect("schemas") });
    let run = read("/api/v1/runs")["runs"][0]["run"]
        .as_str()
        .expect("a run")
        .to_owned();
    let paths = openapi["paths"].as_object().expect("paths");
    for (path, operation) in paths {
        let filled = path
            .replace("{device}", "boat-sim-0003")
            .replace("{run}", &run)
            .replace("{campaign}", "night-1.b");
        if [COMPARISON, HISTORIES, POWER_SESSION].contains(&path.as_str()) {
            // The lab has no runs that count and no session: `dashboard_views` reads these.
            assert_that_required_words_are_required(url, path, operation);
            continue;
        }
        let responses = &operation["get"]["responses"];
        let schema = |status: &str| {
            let name = responses[status]["content"]["application/json"]["schema"]["$ref"].as_str();
            name.and_then(|name| name.rsplit('/').next())
                .expect("a schema")
                .to_owned()
        };
        assert_eq!(
            json_schema::findings(&read(&filled), &schemas, &schema("200")),
            Vec::<String>::new(),
            "{path}"
        );
        let missing = path.replace('{', "no-").replace('}', "");
        if missing != *path {
            assert_eq!(get_page(url, &missing).status, 404);
            assert_eq!(
                json_schema::findings(&read(&missing), &schemas, &schema("default")),
                Vec::<String>::new()
            );
        }
    }
    assert_eq!(paths.len(), 10);
    assert_eq!(get_page(url, "/api/v1/runs?verdict=good").status, 400);
    let (served, printed) = (
        read("/api/v1/devices/boat-sim-0003"),
        lab.json(&["device", "show", "boat-sim-0003"]),
    );
    assert_eq!(
        (&served["device"], &served["facts"]),
        (&printed["device"], &printed["facts"])
    );

    let metrics = get_page(url, "/metrics");
    assert_eq!(
        metrics.header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    assert_that_grafana_finds_its_metrics(url, &metrics.body);
    let value = |name: &str| -> f64 {
        let line = metrics
            .body
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name}: {}", metrics.body))
            .parse()
            .expect("a number")
    };
    let states = ["busy", "idle", "offline", "duplicated"]
        .map(|state| value(&format!("regatta_devices{{state=\"{state}\"}}")));
    assert_eq!(states.iter().sum::<f64>(), DEVICES as f64);
    assert_eq!(
        value("regatta_devices_by_health{health=\"good\"}"),
        DEVICES as f64
    );
    assert_eq!(value("regatta_broker_connected"), 1.0);
    let families: Vec<&str> = metrics
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .collect();
    assert!(
        families
            .iter()
            .all(|family| family.ends_with("_total counter") || family.ends_with(" gauge")),
        "{families:?}"
    );
}

#[test]
fn the_campaign_page_shows_every_cell_and_its_changes() {
    let mut lab = plain_lab();
    lab.start_coordinator();
    let url = lab.page_url();
    assert!(get_page(&url, "/campaigns").body.contains("No campaign yet"));
    let _fleet = simulated_devices(&lab);
    let online = || get_page(&url, "/?state=idle").body.matches("<tr id=\"d-").count();
    eventually("every device to be idle", 90, || online() == DEVICES);
    let plan = lab.scratch().join("plan.toml");
    let text = "schema = 1\nname = \"night-1.b\"\n[[cells]]\ndevices = [\"all\"]\nplacement = \"each\"\n\
                benchmark = \"digits\"\nscenario = [\"Offline\", \"SingleStream\"]\nengine = \"sim\"\n\
                duration = \"100ms\"\nrepeat = 2\n";
    fs::write(&plan, text).expect("a plan");
    let _ = succeed_output(lab.regatta().args(["campaign", "start"]).arg(&plan));
    let page = get_page(&url, "/campaign/night-1.b").body;
    assert_eq!(page.matches("<tr id=\"m-").count(), DEVICES, "{page}");
    let cells = page.matches("aria-label=\"cell ").count();
    assert_eq!(cells, 2 * 2 * DEVICES, "{page}");
    let mut events = PageEvents::open(&url, "/live/campaign/night-1.b");
    loop {
        let change = events.next_data();
        if change.contains(": good\\\"") || change.contains(": failed") {
            break;
        }
    }
    assert_that_programs_read_what_commands_print(&lab, &url);
    assert!(get_page(&url, "/campaigns").body.contains("/campaign/night-1.b"));
    assert_eq!(get_page(&url, "/campaign/none").status, 404);
    assert_eq!(get_page(&url, "/live/campaign/none").status, 404);

    let _ = succeed_output(lab.regatta().args(["campaign", "pause", "night-1.b"]));
    let page = get_page(&url, "/campaign/night-1.b").body;
    assert!(page.contains("Requests") && page.contains("Continue"), "{page}");
    let _ = lab.json(&["dashboard", "token", "add", "olga", "--role", "operator"]);
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../coordinator/commands.schema.json");
    let schema: Value = serde_json::from_slice(&fs::read(schema).expect("the schema")).expect("JSON");
    for (name, words) in [
        ("campaignLog", &["campaign", "log", "night-1.b"]),
        ("pageTokens", &["dashboard", "token", "list"]),
    ] {
        assert_eq!(
            json_schema::findings(&lab.json(words), &schema, name),
            Vec::<String>::new()
        );
    }
}

#[test]
fn a_devices_text_cannot_change_the_page() {
    let mut lab = plain_lab();
    lab.start_coordinator();
    let url = lab.page_url();
    let names = [
        "<script>alert(1)</script>".to_owned(),
        "\"><img src=x onerror=alert(1)>".to_owned(),
        "boat\u{202e}dab\u{200b}".to_owned(),
        "boat\x1b[2J\r\n\0".to_owned(),
        "n".repeat(10_000),
    ];
    let (client, mut connection) = Client::builder(MqttOptions::new("hostile", ("127.0.0.1", lab.port)))
        .capacity(16)
        .build();
    let connected = std::thread::spawn(move || for _ in connection.iter().take_while(Result::is_ok) {});
    for (number, name) in (1_u8..).zip(&names) {
        let facts = DeviceFacts {
            model: format!("{name}{}", "<i>m</i>".repeat(1_250)),
            hottest_millicelsius: Some(45_600),
            ..DeviceFacts::default()
        };
        let key = Ed25519KeyPair::from_seed_unchecked(&[number; 32]).expect("a key");
        let public_key = key.public_key().as_ref().try_into().expect("32 bytes");
        let device = DeviceId::of_public_key(&public_key);
        let hello = Hello {
            device: device.clone(),
            name: name.clone(),
            public_key,
            online: true,
            agent: name.clone(),
            engines: Vec::new(),
            facts_json: serde_json::to_vec(&facts).expect("facts"),
            runs: Vec::new(),
        };
        let topic = Topic {
            device,
            leaf: Leaf::Hello,
        };
        let frame = hello.to_frame().expect("a frame");
        let signature = key.sign(&SignedReport::statement(&topic, &frame));
        let report = SignedReport {
            public_key,
            signature: signature.as_ref().try_into().expect("64 bytes"),
            message: &frame,
        };
        client
            .publish(
                topic.to_string(),
                report.to_frame().expect("a frame"),
                PublishOptions::new(QoS::AtLeastOnce),
            )
            .expect("the broker takes it");
    }
    let page = || get_page(&url, "/").body;
    eventually("the devices", 30, || {
        page().matches("<tr id=\"d-").count() == names.len()
    });
    let page = page();
    for harmful in [
        "<script>alert",
        "<img",
        "<i>",
        "\u{202e}",
        "\u{200b}",
        "\x1b",
        "\0",
    ] {
        assert!(!page.contains(harmful), "{harmful:?}");
    }
    for visible in ["&lt;script&gt;alert(1)", r"boat\u{202e}dab\u{200b}", "45.6 °C"] {
        assert!(page.contains(visible), "{visible}");
    }
    assert!(page.len() < 20_000, "{} bytes", page.len());
    let live = PageEvents::open(&url, "/live/fleet?").next_data();
    let harmful = ["<script>alert", "<img", "<i>", "\u{202e}", r"\u202e", r"\u001b"];
    assert!(!harmful.iter().any(|harmful| live.contains(harmful)), "{live}");
    client.disconnect().expect("it is connected");
    let _ = connected.join();
}

#[test]
fn the_page_answers_only_readers_of_this_machine_and_forbids_foreign_content() {
    let mut lab = plain_lab();
    lab.start_coordinator();
    let url = lab.page_url();
    let page = get_page(&url, "/");
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").expect("a policy");
    for rule in [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "frame-ancestors 'none'",
    ] {
        assert!(policy.contains(rule), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(page.header("referrer-policy"), Some("same-origin"));
    assert_eq!(page.header("cache-control"), Some("no-store"));
    assert!(!page.body.contains("style=") && !page.body.contains("onclick"));
    // Everything that the page loads is from this server, and small.
    let mut bytes = page.body.len();
    for link in page
        .body
        .split(['"', '\''])
        .filter(|text| text.starts_with("/static/"))
    {
        let file = get_page(&url, link);
        assert_eq!(file.status, 200, "{link}");
        bytes += file.body.len();
    }
    assert!(!page.body.contains("http://") && !page.body.contains("https://"));
    assert!(bytes < 150_000, "{bytes}");

    for (lines, status) in [
        ("GET / HTTP/1.1\r\nHost: evil.example\r\n", 421),
        ("GET / HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n", 421),
        ("GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n", 421),
        ("GET / HTTP/1.1\r\n", 421),
        ("GET /live/fleet HTTP/1.1\r\nHost: evil.example\r\n", 421),
        ("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n", 405),
        ("DELETE /static/live.js HTTP/1.1\r\nHost: localhost\r\n", 405),
        ("HEAD / HTTP/1.1\r\nHost: localhost\r\n", 200),
        ("GET /nothing HTTP/1.1\r\nHost: localhost\r\n", 404),
        ("GET /static/../regatta.toml HTTP/1.1\r\nHost: localhost\r\n", 404),
        (
            "GET /static/%2e%2e%2fregatta.toml HTTP/1.1\r\nHost: localhost\r\n",
            404,
        ),
        ("GET /?state=asleep HTTP/1.1\r\nHost: localhost\r\n", 400),
    ] {
        let answer = request_page(&url, lines);
        assert_eq!(answer.status, status, "{lines}: {}", answer.body);
        assert!(answer.header("content-security-policy").is_some(), "{lines}");
    }
    let refused = get_page(&url, "/?sort=%3Cscript%3E").body;
    assert!(refused.contains("`sort` is one of: name, state"), "{refused}");
}

#[test]
fn the_page_needs_a_free_port_and_says_who_has_it() {
    let mut lab = plain_lab();
    lab.start_coordinator();
    let url = lab.page_url();
    let other = Lab::new(Broker::Embedded).expect("it needs nothing that could be missing");
    listen(&other, url.trim_start_matches("http://"));
    let refused = other.regatta().arg("serve").output().expect("regatta runs");
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(3), "{text}");
    assert!(
        text.contains("cannot serve the live page at") && text.contains("`regatta` (process"),
        "{text}"
    );
    assert!(
        text.contains("set another port with `dashboard_listen`"),
        "{text}"
    );

    let open = Lab::new(Broker::Embedded).expect("it needs nothing that could be missing");
    listen(&open, "0.0.0.0:8886");
    let refused = Command::new(regatta())
        .args(["serve", "--workspace"])
        .arg(open.workspace())
        .output()
        .expect("regatta runs");
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(text.contains("this workspace has no TLS for a login"), "{text}");
}
