//! Tests of gates and limits on real agents over boards whose temperature the test sets. A run waits until its board has cooled
//! down. A board that stays hot loses the cell to another one, and a run that never ends is aborted at its limit.

#![expect(clippy::expect_used, reason = "test code")]

use std::{fs, process::Command, time::Duration};

use regatta_test_support::settable_board::{put, settable_orin};
use regatta_tests::{Broker, Lab, Process, agent, eventually};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

const ZONE: &str = "sys/class/thermal/thermal_zone0/temp";
const CLOSED: &str = "the device did not become ready: ";

struct Board {
    root: TempDir,
    _agent: Process,
}

impl Board {
    fn start(lab: &Lab, name: &str) -> Self {
        let root = settable_orin();
        let directory = lab.workspace().with_file_name(name);
        fs::create_dir_all(&directory).expect("the device's directory");
        let settings = format!(
            "name = \"{name}\"\nstate_dir = \"state\"\nscratch = \"{}\"\nbroker = \"mqtt://127.0.0.1:{}\"\nmin_free_mib = 1\n\
             system_root = \"{}\"\n",
            lab.scratch().display(),
            lab.port,
            root.path().display()
        );
        fs::write(directory.join("agent.toml"), settings).expect("agent.toml");
        let mut command = Command::new(agent());
        command
            .args(["serve", "--config", "agent.toml"])
            .current_dir(&directory);
        let agent = Process::start(&mut command, &directory.join("agent.log"));
        let board = Self { root, _agent: agent };
        board.set_celsius(45);
        board
    }

    fn set_celsius(&self, degrees: u32) {
        put(self.root.path(), ZONE, &format!("{degrees}000\n"));
    }
}

/// Starts two cells behind a gate of 60 C.
fn start_campaign(lab: &Lab, name: &str, wait: &str, cells: &str) {
    let path = lab.workspace().join(format!("{name}.toml"));
    let plan = format!(
        "schema = 1\nname = \"{name}\"\n[gate]\nmax_temperature = \"60C\"\nwait = \"{wait}\"\n\
         [[cells]]\nbenchmark = \"digits\"\nscenario = [\"SingleStream\"]\nengine = \"sim\"\nrepeat = 2\n{cells}\n"
    );
    fs::write(&path, plan).expect("the plan");
    let started = lab.json(&["campaign", "start", path.to_str().expect("UTF-8")]);
    assert_eq!(started["cells"], 2);
}

fn json_of(lab: &Lab, words: &[&str]) -> Value {
    // The exit code is 1 once a cell has failed.
    let mut command = lab.regatta();
    let output = command.args(words).args(["--format", "json"]).output();
    serde_json::from_slice(&output.expect("regatta").stdout).expect("JSON")
}

/// Waits until a board waits for its gate, and returns its sentence.
fn waiting(lab: &Lab, campaign: &str, degrees: &str) -> String {
    let sentence = || {
        let status = json_of(lab, &["campaign", "status", campaign]);
        let devices = status["devices"].as_array()?.iter();
        let mut waits = devices.filter_map(|device| device["waits_for"].as_str());
        waits.find(|text| text.contains(degrees)).map(str::to_owned)
    };
    eventually("a run to wait for its gate", 60, sentence)
}

fn wait_for_end(lab: &Lab, campaign: &str) -> Value {
    eventually("the campaign to end", 90, || {
        let status = json_of(lab, &["campaign", "status", campaign]);
        (status["state"] == "ended").then_some(())
    });
    json_of(lab, &["campaign", "report", campaign])["report"].clone()
}

fn attempts(report: &Value) -> Vec<Value> {
    let cells = report.as_array().expect("cells").iter();
    cells
        .flat_map(|cell| cell["attempts"].as_array().expect("attempts").clone())
        .collect()
}

#[test]
fn cells_wait_for_their_gate_and_leave_a_board_that_stays_hot() {
    let mut lab = Lab::new(Broker::Embedded).expect("the embedded broker");
    lab.start_coordinator();
    let [cool, hot] = ["cool", "hot"].map(|name| Board::start(&lab, name));
    eventually("both boards to be heard", 60, || {
        let devices = lab.json(&["device", "list"]);
        let devices = devices["devices"].as_array().expect("a list").clone();
        let online = devices.iter().filter(|device| device["online"] == true);
        (online.count() == 2).then_some(())
    });

    // Two cells of one board: the second one waits until the board has cooled down.
    start_campaign(&lab, "cool-down", "5m", "devices = [\"cool\"]\nduration = \"5s\"");
    eventually("the first cell to run", 60, || {
        let runs = lab.json(&["runs", "list"]);
        let runs = runs["runs"].as_array().expect("runs").clone();
        runs.iter().any(|run| run["phase"] == "running").then_some(())
    });
    cool.set_celsius(71);
    let sentence = waiting(&lab, "cool-down", "71.0 C");
    assert!(
        sentence.starts_with("waits up to 5m for its gate: ")
            && sentence.ends_with("at most 60.0 C is allowed"),
        "{sentence}"
    );
    let text = lab
        .regatta()
        .args(["campaign", "status"])
        .output()
        .expect("regatta");
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("is at 71.0 C"), "{text}");
    // The value on screen is the present one.
    cool.set_celsius(66);
    waiting(&lab, "cool-down", "66.0 C");
    cool.set_celsius(52);
    let report = wait_for_end(&lab, "cool-down");
    let attempts_of_both = attempts(&report);
    assert_eq!(attempts_of_both.len(), 2, "{report}");
    assert!(
        attempts_of_both.iter().all(|attempt| attempt["cause"].is_null()),
        "{report}"
    );
    let last = attempts_of_both[1]["run"].as_str().expect("a run").to_owned();
    let shown = lab
        .regatta()
        .args(["runs", "show", &last])
        .output()
        .expect("regatta");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.contains("at most 60.0 C, waits up to 300 s") && shown.contains(" s at 52.0 C"),
        "{shown}"
    );

    // A board that stays hot: a precondition, and another board takes the cell.
    hot.set_celsius(90);
    start_campaign(
        &lab,
        "hot-board",
        "1s",
        "devices = [\"cool\", \"hot\"]\nduration = \"1s\"",
    );
    let report = wait_for_end(&lab, "hot-board");
    let attempts = attempts(&report);
    let (good, refused): (Vec<&Value>, Vec<&Value>) =
        attempts.iter().partition(|attempt| attempt["cause"].is_null());
    assert!(good.len() == 2 && !refused.is_empty(), "{report}");
    assert!(
        good.iter().all(|attempt| attempt["device_name"] == "cool"),
        "{report}"
    );
    for attempt in refused {
        let reason = attempt["reason"].as_str().expect("a reason");
        assert!(
            attempt["device_name"] == "hot" && attempt["cause"] == "precondition",
            "{attempt}"
        );
        assert!(
            reason.starts_with(CLOSED) && reason.contains("is at 90.0 C"),
            "{reason}"
        );
    }
    let health = lab.json(&["device", "health", "hot"]);
    assert!(health.to_string().contains("\"health\":\"good\""), "{health}");

    // A single run prints what it waits for, and can be aborted meanwhile.
    let run = |wait: &str| {
        let mut command = lab.regatta();
        command.args([
            "run",
            "--device",
            "hot",
            "--benchmark",
            "digits",
            "--scenario",
            "Offline",
        ]);
        command.args(["--engine", "sim", "--duration", "1s"]);
        command.args(["--max-temperature", "60C", "--gate-wait", wait]);
        command
    };
    let output = run("2s").output().expect("regatta");
    let printed =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(
        printed.contains("waits up to 2s for its gate: ") && printed.contains(CLOSED),
        "{printed}"
    );
    let queued = run("5m")
        .args(["--no-wait", "--format", "json"])
        .output()
        .expect("regatta");
    let queued: Value = serde_json::from_slice(&queued.stdout).expect("JSON");
    let id = queued["runs"][0]["run"].as_str().expect("a run");
    eventually("the run to wait", 30, || {
        let shown = lab
            .regatta()
            .args(["runs", "show", id])
            .output()
            .expect("regatta");
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        shown.contains("preparing: waits up to 5m").then_some(())
    });
    let aborted = lab
        .regatta()
        .args(["runs", "abort", id])
        .output()
        .expect("regatta");
    assert!(aborted.status.success());
    eventually("the run to end", Duration::from_secs(30).as_secs(), || {
        (lab.json(&["runs", "show", id])["phase"] == "aborted").then_some(())
    });
}

#[test]
fn a_run_that_never_ends_costs_its_limit() {
    let mut lab = Lab::new(Broker::Embedded).expect("the embedded broker");
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    let path = lab.workspace().join("stuck.toml");
    let plan = "schema = 1\nname = \"stuck\"\nrun_limit = \"15s\"\n[[cells]]\ndevices = [\"all\"]\nbenchmark = \"digits\"\n\
                scenario = [\"SingleStream\"]\nengine = \"sim\"\nduration = \"5s\"\n";
    // A limit that no run can meet is refused with its line.
    fs::write(&path, plan.replace("15s", "4s")).expect("the plan");
    let plan_path = path.to_str().expect("UTF-8");
    let refused = lab
        .regatta()
        .args(["campaign", "start", plan_path])
        .output()
        .expect("regatta");
    let errors = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        refused.status.code() == Some(2)
            && errors.contains(
                "line 6: on boat: the limit of 4 s is no longer than the run, which measures for at least 5 s"
            ),
        "{errors}"
    );
    fs::write(&path, plan).expect("the plan");
    let started = lab.json(&["campaign", "start", plan_path]);
    assert_eq!(started["cells"], 1);
    // A run that is stopped earlier has not started, which is another cause.
    eventually("the run to measure", 60, || {
        (lab.json(&["runs", "list"])["runs"][0]["phase"] == "running").then_some(())
    });
    // A stopped process never ends by itself, and ignores SIGTERM.
    let process = eventually("the run process", 60, || {
        let runs = fs::read_dir(lab.state().join("runs")).ok()?;
        let job = fs::read(runs.flatten().next()?.path().join("job.json")).ok()?;
        let job: Value = serde_json::from_slice(&job).ok()?;
        Pid::from_raw(i32::try_from(job["process"]["pid"].as_i64()?).ok()?)
    });
    kill_process(process, Signal::STOP).expect("SIGSTOP");
    let report = wait_for_end(&lab, "stuck");
    let attempts = attempts(&report);
    assert_eq!(attempts.len(), 1, "{report}");
    assert_eq!(
        (&attempts[0]["cause"], &attempts[0]["reason"]),
        (
            &"workload".into(),
            &"the run did not end within its limit of 15 s".into()
        )
    );
    eventually("the device to be idle", 30, || {
        let devices = lab.json(&["device", "list"]);
        (devices["devices"][0]["state"] == "idle").then_some(())
    });
}
