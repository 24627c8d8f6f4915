//! Tests of upgrading a device's agent while a campaign runs on it: a board behind a real sshd, and the real agent with modified bytes as the new
//! version. The upgrade is refused while the device has a run, no run begins during the upgrade, and no run is lost.

#![expect(clippy::expect_used, reason = "test code")]

use std::{fs, process::Output};

use regatta_tests::{
    Process,
    deploy_lab::{BOAT, DeployLab},
    eventually, printed,
    sshd::{Likeness, Sshd},
    succeed_output,
};
use serde_json::Value;

const CELLS: u64 = 8;

/// A failed attempt is not repeated, so a lost run would result in a failed cell.
const PLAN: &str = r#"
schema = 1
name = "weekend"
retries = 0
rate_retries = 0
software = "any"

[[cells]]
benchmark = "digits"
scenario = "SingleStream"
engine = "sim"
duration = "5s"
repeat = 8
"#;

struct Board {
    deploy_lab: DeployLab,
    sshd: Sshd,
}

impl Board {
    /// Returns the only device of the lab.
    fn device(&self) -> Value {
        self.deploy_lab.lab.json(&["device", "list"])["devices"][0].clone()
    }

    fn agent_sha256(&self) -> String {
        let stated = &self.device()["facts"]["software"]["agent_sha256"];
        stated.as_str().expect("the agent's hash").to_owned()
    }

    fn regatta(&self, words: &[&str]) -> Output {
        let mut command = self.deploy_lab.lab.regatta();
        command.args(words).output().expect("regatta starts")
    }

    fn campaign(&self) -> Value {
        let output = self.regatta(&["campaign", "status", "weekend", "--format", "json"]);
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    fn count(&self, key: &str) -> u64 {
        self.campaign()[key].as_u64().expect("a count")
    }

    fn is_busy(&self) -> bool {
        self.device()["run"].is_string()
    }

    /// Waits until a run of the campaign executes. Returns its id.
    fn wait_for_run(&self) -> String {
        let mut running = String::new();
        eventually("a run of the campaign to execute", 60, || {
            running = self.device()["run"].as_str().unwrap_or_default().to_owned();
            !running.is_empty() && self.deploy_lab.lab.phase(&running) == "running"
        });
        running
    }
}

#[test]
fn agent_is_upgraded_during_a_campaign_and_no_run_is_lost() {
    let Some(sshd) = Sshd::start(Likeness::default()) else {
        return;
    };
    let deploy_lab = DeployLab::default();
    deploy_lab.pack_agent();
    let board = Board { deploy_lab, sshd };
    let deployed = board.deploy_lab.deploy(&board.sshd, &[]);
    assert!(deployed.status.success(), "{}", printed(&deployed));
    let plan = board.deploy_lab.path().join("weekend.toml");
    fs::write(&plan, PLAN).expect("the plan");
    let started = board
        .deploy_lab
        .lab
        .json(&["campaign", "start", plan.to_str().expect("UTF-8")]);
    assert_eq!(started["cells"], CELLS);
    let first = board.agent_sha256();

    refused_while_a_run_executes(&board, &first);
    let second = upgraded_in_maintenance(&board);
    assert_ne!(second, first);
    let third = nothing_begins_during_an_upgrade(&board);
    assert!(third != first && third != second, "{third}");

    eventually("the campaign to end", 120, || {
        board.campaign()["state"] == "ended"
    });
    every_cell_has_one_good_attempt(&board);
}

fn refused_while_a_run_executes(board: &Board, agent: &str) {
    // Packing takes as long as a run, so it is done first.
    board.deploy_lab.pack_other_agent("0.2.0");
    let run = board.wait_for_run();
    let refused = board.deploy_lab.upgrade(&board.sshd, &["--device", BOAT]);
    let words = printed(&refused);
    assert_eq!(refused.status.code(), Some(2), "{words}");
    for part in [
        "an upgrade would end the runs or power sessions of boat-1",
        "let them finish: `regatta device drain boat-1 --wait",
        "; or use --force",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    eventually("the run to be recorded", 60, || {
        board.deploy_lab.lab.show(&run)["recorded"].is_string()
    });
    assert_eq!(board.deploy_lab.lab.phase(&run), "done");
    assert_eq!(board.agent_sha256(), agent);
}

/// Upgrades in maintenance, as the hint suggests. The campaign's cells wait.
fn upgraded_in_maintenance(board: &Board) -> String {
    let drained = board.regatta(&["device", "drain", BOAT, "--wait"]);
    assert!(drained.status.success(), "{}", printed(&drained));
    assert!(!board.is_busy(), "a run remains: {}", printed(&drained));
    let before = board.count("attempts");
    assert!(before < CELLS, "{before} of {CELLS} attempts");
    let upgraded = board.deploy_lab.upgrade(&board.sshd, &["--device", BOAT]);
    assert!(upgraded.status.success(), "{}", printed(&upgraded));
    assert_eq!(
        board.device()["takes_runs"],
        false,
        "the operator's maintenance stays"
    );
    assert_eq!(board.count("attempts"), before);
    let resumed = board.regatta(&["device", "resume", BOAT]);
    assert!(resumed.status.success(), "{}", printed(&resumed));
    eventually("the campaign to continue", 60, || {
        board.count("attempts") > before
    });
    board.agent_sha256()
}

/// Upgrades an idle device before the campaign ends, and checks that the campaign continues.
fn nothing_begins_during_an_upgrade(board: &Board) -> String {
    board.deploy_lab.pack_other_agent("0.3.0");
    let paused = board.regatta(&["campaign", "pause", "weekend"]);
    assert!(paused.status.success(), "{}", printed(&paused));
    for words in [
        &["device", "drain", BOAT, "--wait"][..],
        &["device", "resume", BOAT],
    ] {
        let output = board.regatta(words);
        assert!(output.status.success(), "{}", printed(&output));
    }
    let before = board.count("attempts");
    assert!(before < CELLS, "{before} of {CELLS} attempts");
    let mut command = board
        .deploy_lab
        .upgrade_command(&board.sshd, &["--device", BOAT, "--pause", "1s"]);
    let log = board.deploy_lab.path().join("upgrade.log");
    let mut upgrade = Process::start(&mut command, &log);
    eventually("the upgrade to begin", 60, || {
        board.device()["takes_runs"] == false
    });
    let resumed = board.regatta(&["campaign", "resume", "weekend"]);
    assert!(resumed.status.success(), "{}", printed(&resumed));
    let mut looks = 0;
    while board.device()["takes_runs"] == false {
        assert_eq!(board.count("attempts"), before, "{}", upgrade.output());
        looks += 1;
    }
    assert!(looks > 2, "the upgrade ended too soon to be seen");
    eventually("the upgrade to end", 60, || !upgrade.is_running());
    assert!(
        upgrade.output().contains("boat-1: deployed"),
        "{}",
        upgrade.output()
    );
    eventually("the campaign to continue", 60, || {
        board.count("attempts") > before
    });
    let log = printed(&succeed_output(
        board.deploy_lab.lab.regatta().args(["device", "log", BOAT]),
    ));
    assert!(log.contains("its agent is being upgraded"), "{log}");
    board.agent_sha256()
}

fn every_cell_has_one_good_attempt(board: &Board) {
    let report = board.deploy_lab.lab.json(&["campaign", "report", "weekend"]);
    let cells = report["report"].as_array().expect("cells");
    assert_eq!(cells.len() as u64, CELLS, "{report}");
    for cell in cells {
        let attempts = cell["attempts"].as_array().expect("attempts");
        assert_eq!(
            (&cell["cell_state"], attempts.len()),
            (&"good".into(), 1),
            "{cell}"
        );
        let result = &attempts[0]["result"];
        assert!(result["phase"] == "done" && result["signed"] == true, "{cell}");
        let run = attempts[0]["run"].as_str().expect("a run");
        let verified = board.regatta(&["runs", "verify", run]);
        assert!(verified.status.success(), "{}", printed(&verified));
    }
}
