//! Tests of campaigns on real agents through a real broker. The coordinator is killed twice and one agent permanently. Every cell
//! ends with one good attempt or the right cause.

#![expect(clippy::expect_used, reason = "test code")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Instant,
};

use regatta_tests::{Broker, Lab, Process, agent, eventually, json_schema::findings};
use serde_json::Value;

const BOARDS: usize = 8;
/// The agent that is killed permanently. Two cells can only run there.
const LOST: usize = 7;

const PLAN: &str = r#"
schema = 1
name = "weekend"
seed = 5
deadline = "1h"
lose_device_after = "5s"

[[cells]]
devices = ["all"]
benchmark = "digits"
scenario = ["SingleStream", "Offline"]
engine = "sim"
duration = "1s"
settings = [
    { name = "small", set = { batch_size = 2 } },
    { name = "large", set = { batch_size = 8 } },
]
repeat = 5

[[cells]]
devices = ["board-0", "board-7"]
placement = "each"
priority = -1
benchmark = "digits"
scenario = ["SingleStream", "Offline"]
mode = ["AccuracyOnly"]
engine = "null"
"#;

struct Fleet {
    lab: Lab,
    agents: Vec<Process>,
}

impl Fleet {
    fn of(boards: usize) -> Self {
        let mut lab = Lab::new(Broker::Embedded).expect("the embedded broker");
        lab.start_coordinator();
        let agents = (0..boards).map(|number| start_agent(&lab, number)).collect();
        let fleet = Self { lab, agents };
        eventually("every board to be heard", 60, || {
            let devices = fleet.lab.json(&["device", "list"]);
            let devices = devices["devices"].as_array().expect("a list").clone();
            let online = devices.iter().filter(|device| device["online"] == true);
            (online.count() == boards).then_some(())
        });
        fleet
    }

    fn status(&self) -> Value {
        // Its exit code is 1 once a cell has failed.
        let output = self.regatta(&["campaign", "status", "--format", "json"]);
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    fn regatta(&self, words: &[&str]) -> Output {
        self.lab.regatta().args(words).output().expect("regatta")
    }

    fn plan(&self, text: &str) -> PathBuf {
        let path = self.lab.workspace().join("weekend.toml");
        fs::write(&path, text).expect("the plan");
        path
    }

    fn good(&self) -> u64 {
        self.status()["good"].as_u64().expect("a count")
    }

    fn wait_for_good(&self, count: u64) {
        eventually("good cells", 90, || (self.good() >= count).then_some(()));
    }

    /// Kills the coordinator as a power cut would, and starts it again. Returns the seconds from its listening line to the next attempt.
    fn restart_coordinator(&mut self) -> f64 {
        self.lab.coordinator.as_mut().expect("it runs").kill();
        let before = self.attempts();
        let starts = self.listening_lines() + 1;
        self.lab.start_coordinator();
        eventually("the coordinator to listen", 60, || {
            (self.listening_lines() == starts).then_some(())
        });
        let listening = Instant::now();
        eventually("the campaign to continue", 30, || {
            (self.attempts() > before).then_some(())
        });
        listening.elapsed().as_secs_f64()
    }

    fn listening_lines(&self) -> usize {
        let log = self.lab.coordinator.as_ref().expect("it was started").output();
        log.lines().filter(|line| line.starts_with("serving ")).count()
    }

    fn attempts(&self) -> u64 {
        self.status()["attempts"].as_u64().expect("a count")
    }

    fn is_busy(&self, name: &str) -> bool {
        let status = self.status();
        let devices = status["devices"].as_array().expect("a list");
        devices
            .iter()
            .any(|device| device["name"] == name && device["cell"].is_u64())
    }
}

fn start_agent(lab: &Lab, number: usize) -> Process {
    let directory = lab.workspace().with_file_name(format!("board-{number}"));
    fs::create_dir_all(&directory).expect("the device's directory");
    let settings = format!(
        "name = \"board-{number}\"\nstate_dir = \"state\"\nscratch = \"{}\"\nbroker = \"mqtt://127.0.0.1:{}\"\nmin_free_mib = 1\n",
        lab.scratch().display(),
        lab.port
    );
    fs::write(directory.join("agent.toml"), settings).expect("agent.toml");
    let mut command = Command::new(agent());
    command
        .args(["serve", "--config", "agent.toml"])
        .current_dir(&directory);
    Process::start(&mut command, &directory.join("agent.log"))
}

#[test]
fn a_campaign_survives_kills_of_the_coordinator_and_of_an_agent() {
    let mut fleet = Fleet::of(BOARDS);
    let plan = fleet.plan(PLAN);
    let plan = plan.to_str().expect("UTF-8");
    let planned = fleet.lab.json(&["campaign", "plan", plan]);
    assert_eq!(planned["cells"], 24);
    let started = fleet.lab.json(&["campaign", "start", plan]);
    assert_eq!(
        (&started["campaign"], &started["cells"]),
        (&"weekend".into(), &24.into())
    );
    let again = fleet.regatta(&["campaign", "start", plan]);
    let errors = String::from_utf8_lossy(&again.stderr);
    assert!(
        again.status.code() == Some(2) && errors.contains("a campaign `weekend` was started"),
        "{errors}"
    );

    fleet.wait_for_good(2);
    let lost = format!("board-{LOST}");
    eventually("the board to be busy", 30, || fleet.is_busy(&lost).then_some(()));
    fleet.agents[LOST].kill();
    let first = fleet.restart_coordinator();
    fleet.wait_for_good(10);
    let second = fleet.restart_coordinator();
    println!("the campaign continued after {first:.1} s and {second:.1} s");
    assert!(first.max(second) < 5.0, "{first:.1} s and {second:.1} s");

    eventually("the campaign to end", 120, || {
        (fleet.status()["state"] == "ended").then_some(())
    });
    check_report(&fleet, &lost);
    follows_schema(&planned, "campaign_plan");
    follows_schema(&fleet.status(), "campaign");
    follows_schema(&fleet.lab.json(&["campaign", "list"]), "campaigns");
}

const AUDITED_PLAN: &str = r#"
schema = 1
name = "audited"

[[cells]]
task = "asset-fetch"
devices = "all"
benchmark = "digits"
scenario = "Offline"
engine = "sim"

[[cells]]
devices = ["board-0", "board-1"]
placement = "each"
benchmark = "digits"
scenario = ["SingleStream"]
mode = ["AccuracyOnly", "PerformanceOnly"]
audits = ["TEST01"]
engine = "sim"
duration = "1s"

[[cells]]
devices = ["board-0"]
benchmark = "digits"
scenario = ["Offline"]
mode = ["AccuracyOnly", "PerformanceOnly"]
audits = ["test04"]
engine = "sim"
gate = { max_temperature = "1C", wait = "1s" }
"#;

/// Each audit follows the runs that it audits, on their device. None follows a run that is not good: no board is colder than the
/// gate.
#[test]
fn audits_follow_the_valid_runs_of_their_cells_on_the_same_device() {
    let mut fleet = Fleet::of(2);
    let plan = fleet.plan(AUDITED_PLAN);
    let plan = plan.to_str().expect("UTF-8");
    let planned = fleet.lab.json(&["campaign", "plan", plan]);
    follows_schema(&planned, "campaign_plan");
    let audits = planned["combinations"].as_array().expect("combinations").iter();
    let audits: Vec<&Value> = audits.filter(|row| row["audit"].is_string()).collect();
    assert_eq!(
        (&planned["cells"], audits.len(), &audits[1]["audit"]),
        (&11.into(), 2, &"TEST04".into()),
        "{planned}"
    );
    let started = fleet.lab.json(&["campaign", "start", plan]);
    assert_eq!(started["cells"], 11);
    fleet.wait_for_good(1);
    fleet.restart_coordinator();
    eventually("the campaign to end", 120, || {
        (fleet.status()["state"] == "ended").then_some(())
    });
    let output = fleet.regatta(&["campaign", "report", "--format", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    follows_schema(&report, "campaign_report");
    let cells = report["report"].as_array().expect("cells");
    fetches_come_first(cells);
    for cell in cells.iter().filter(|cell| cell["audit"] == "TEST01") {
        let attempts = cell["attempts"].as_array().expect("attempts");
        let last = attempts.last().expect("an attempt");
        // Whether its speed passes depends on the machine; that it ran and was judged does not.
        assert!(
            cell["cell_state"] == "good" || last["cause"] == "workload" || last["cause"] == "invalid",
            "{cell}"
        );
        let id = last["run"].as_str().expect("a run");
        let spec = fleet.lab.workspace().join("runs").join(id).join("spec.json");
        let spec: Value = serde_json::from_slice(&fs::read(spec).expect("the spec")).expect("JSON");
        let audited = ["performance", "accuracy"].map(|kind| spec["audit"][kind].as_str().expect("a run"));
        for (run, mode) in audited.into_iter().zip(["PerformanceOnly", "AccuracyOnly"]) {
            let of_run = |cell: &&Value| {
                let mut attempts = cell["attempts"].as_array().expect("attempts").iter();
                attempts.any(|attempt| attempt["run"] == run && attempt["device"] == last["device"])
            };
            let cell = cells.iter().find(of_run).expect("the audited cell");
            assert_eq!(
                (&cell["mode"], &cell["cell_state"]),
                (&mode.into(), &"good".into())
            );
        }
    }
    let skipped = cells
        .iter()
        .find(|cell| cell["audit"] == "TEST04")
        .expect("a cell");
    assert_eq!(skipped["cell_state"], "skipped", "{skipped}");
    let reason = skipped["reason"].as_str().expect("a reason");
    assert!(reason.ends_with("has no good run"), "{reason}");
}

/// On each board, the files are fetched before anything is measured.
fn fetches_come_first(cells: &[Value]) {
    let requested = |cell: &Value| cell["attempts"][0]["requested"].as_str().map(str::to_owned);
    for board in ["board-0", "board-1"] {
        let on_board = |cell: &&Value| cell["attempts"][0]["device_name"] == board;
        let first = cells.iter().filter(on_board).min_by_key(|cell| requested(cell));
        let first = first.expect("a cell of the board");
        assert_eq!(
            (&first["mode"], &first["cell_state"]),
            (&"asset fetch".into(), &"good".into()),
            "{first}"
        );
    }
}

/// Checks that a document is as `coordinator/commands.schema.json` describes it.
fn follows_schema(document: &Value, name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../coordinator/commands.schema.json");
    let schema = serde_json::from_slice(&fs::read(path).expect("the schema")).expect("JSON");
    let found = findings(document, &schema, name);
    assert!(found.is_empty(), "{name}: {found:#?}");
}

/// Checks that every cell has one good attempt, or failed because its only device is lost.
fn check_report(fleet: &Fleet, lost: &str) {
    let output = fleet.regatta(&["campaign", "report", "--format", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    follows_schema(&report, "campaign_report");
    let cells = report["report"].as_array().expect("cells");
    assert_eq!(cells.len(), 24);
    let mut runs = BTreeSet::new();
    let mut failed = 0;
    for cell in cells {
        let attempts = cell["attempts"].as_array().expect("attempts");
        for attempt in attempts {
            let run = attempt["run"].as_str().expect("a run");
            assert!(runs.insert(run.to_owned()), "run {run} belongs to two attempts");
            assert!(attempt["ended"].is_string(), "{attempt}");
        }
        let good: Vec<&Value> = attempts
            .iter()
            .filter(|attempt| attempt["cause"].is_null())
            .collect();
        if cell["cell_state"] == "good" {
            assert_eq!(good.len(), 1, "{cell}");
            let result = &good[0]["result"];
            assert!(result["phase"] == "done" && result["signed"] == true, "{cell}");
            assert!(result["valid"] != false, "{cell}");
        } else {
            failed += 1;
            let reason = cell["reason"].as_str().unwrap_or_default();
            assert!(good.is_empty() && cell["cause"] == "infrastructure", "{cell}");
            assert!(reason.contains(lost), "{reason}");
        }
    }
    // The two cells of the lost board came last.
    assert_eq!(failed, 2, "{report}");
    assert_eq!(output.status.code(), Some(1));
    let listed = fleet.lab.json(&["runs", "list"]);
    let listed = listed["runs"].as_array().expect("runs").iter();
    let listed: BTreeSet<String> = listed
        .filter_map(|run| Some(run["run"].as_str()?.to_owned()))
        .collect();
    assert_eq!(listed, runs, "every run belongs to an attempt");
    let abandoned = cells
        .iter()
        .flat_map(|cell| cell["attempts"].as_array().expect("attempts"));
    let mut abandoned =
        abandoned.filter(|attempt| attempt["device_name"] == lost && attempt["cause"] == "infrastructure");
    assert!(
        abandoned.next().is_some(),
        "the run of the killed agent was given up"
    );
    let text = fleet.regatta(&["campaign", "report"]);
    let text = String::from_utf8_lossy(&text.stdout);
    for cell in cells {
        let (number, state) = (&cell["cell"], cell["cell_state"].as_str().expect("a state"));
        let mut lines = text
            .lines()
            .map(|line| line.split_whitespace().take(2).collect::<Vec<_>>());
        let expected = [&*number.to_string(), state];
        assert!(lines.any(|words| words == expected), "{expected:?} in\n{text}");
    }
    let csv = fleet.regatta(&["campaign", "report", "--format", "csv"]);
    let lines = String::from_utf8_lossy(&csv.stdout).lines().count();
    assert!(lines > 24, "{lines}");
}
