//! Power sessions of campaigns, which `regatta serve` makes itself: with the official client and server of mlcommons/power-dev in a network
//! namespace, because they only use NTP's port 123. What a stop or a kill of `serve`, an abort and a failed check leave: causes, leases, and
//! no processes.

#![expect(clippy::expect_used, reason = "test code")]

use std::{fs, net::SocketAddr, path::Path};

use regatta_power::ntp;
use regatta_tests::{
    Broker, Lab, eventually, network_namespace, power_dev,
    power_sessions::{add_meter_and_device, id, processes, sessions},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Requests a cell with a power session. Meter and device have the campaign's name.
fn start_campaign(lab: &Lab, name: &str) {
    let plan = lab.workspace().join(format!("{name}.toml"));
    let text = format!(
        "schema = 1\nname = '{name}'\nretries = 3\n[[cells]]\nbenchmark = 'digits'\nscenario = 'SingleStream'\nengine = 'sim'\n\
         duration = '4s'\npower = '{name}'\ndevices = ['{name}']\n"
    );
    fs::write(&plan, text).expect("the plan");
    let _ = lab.json(&["campaign", "start", plan.to_str().expect("UTF-8")]);
}

/// Returns the cell of a campaign's power session, once the campaign has ended.
fn session_cell(lab: &Lab, name: &str) -> Value {
    let report = || {
        let output = lab
            .regatta()
            .args(["campaign", "report", name, "--format", "json"])
            .output();
        serde_json::from_slice::<Value>(&output.expect("regatta starts").stdout).expect("JSON")
    };
    eventually("the campaign to end", 200, || {
        matches!(report()["state"].as_str(), Some("ended" | "aborted"))
    });
    let report = report();
    let mut cells = report["report"].as_array().expect("cells").iter();
    let cell = cells.find(|cell| cell["mode"] == "power session");
    cell.expect("a cell").clone()
}

/// Waits until the newest of `count` sessions with a meter measures, and returns its id.
fn wait_for_session(lab: &Lab, meter: &str, count: usize) -> String {
    eventually("the session to have its ranging run", 120, || {
        let rows = sessions(lab, meter);
        rows.len() == count && rows.first().is_some_and(|row| row["ranging"].is_string())
    });
    let session = id(&sessions(lab, meter).remove(0));
    assert!(!programs_of(&session).is_empty(), "the official programs run");
    session
}

/// Returns the processes that make a session: supervisors, official programs, and the program that watches.
fn programs_of(session: &str) -> Vec<u32> {
    processes(|line| line.contains(session))
}

fn lease(lab: &Lab, meter: &str) -> Value {
    let meters = lab.json(&["meter", "list"]);
    let mut rows = meters["meters"].as_array().expect("a list").iter();
    rows.find(|row| row["name"] == meter).expect("the meter")["lease"].clone()
}

#[test]
fn sessions_of_campaigns_end_with_their_coordinator_and_have_typed_causes() {
    let Some(power_dev) = power_dev() else { return };
    if !network_namespace::continues_inside(
        "sessions_of_campaigns_end_with_their_coordinator_and_have_typed_causes",
    ) {
        return;
    }
    ntp::answer_requests(SocketAddr::from(([127, 0, 0, 1], ntp::PORT))).expect("the namespace's port 123");
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    lab.start_coordinator();
    for meter in ["night", "gone", "ended"] {
        add_meter_and_device(&lab, &power_dev, meter, "");
    }
    fs::remove_file(lab.workspace().join("ptd-gone")).expect("PTDaemon's program");
    for campaign in ["night", "gone", "ended"] {
        start_campaign(&lab, campaign);
    }
    killed_with_the_coordinator(&mut lab);
    stopped_with_the_coordinator(&mut lab);
    aborted_with_its_campaign(&lab);

    let cell = session_cell(&lab, "gone");
    let attempts = cell["attempts"].as_array().expect("attempts");
    assert_eq!(
        (attempts.len(), &attempts[0]["cause"]),
        (1, &"precondition".into()),
        "{cell}"
    );
    let reason = attempts[0]["reason"].as_str().expect("a reason");
    assert!(
        reason.starts_with("no power session could begin: a session cannot succeed: PTDaemon:"),
        "{reason}"
    );
    assert!(sessions(&lab, "gone").is_empty());

    let cell = session_cell(&lab, "night");
    let causes: Vec<_> = cell["attempts"]
        .as_array()
        .expect("attempts")
        .iter()
        .map(|attempt| attempt["cause"].as_str())
        .collect();
    assert_eq!(
        causes,
        [Some("infrastructure"), Some("infrastructure"), None],
        "{cell}"
    );
    assert_eq!(cell["cell_state"], "good");
    let made = sessions(&lab, "night");
    assert_eq!(made[0]["verdict"], "rehearsal", "{made:?}");
    for meter in ["night", "gone", "ended"] {
        assert!(lease(&lab, meter).is_null(), "{meter}: {}", lease(&lab, meter));
    }
    expect_no_process_of_power(&lab.workspace());
}

/// Nothing of the session outlives `serve`. Its end is recorded by the next one.
fn killed_with_the_coordinator(lab: &mut Lab) {
    let session = wait_for_session(lab, "night", 1);
    lab.coordinator.as_mut().expect("it runs").kill();
    eventually("the official programs to end", 60, || {
        programs_of(&session).is_empty()
    });
    assert_eq!(lease(lab, "night")["state"], "stale");
    lab.start_coordinator();
    eventually("the session's end to be recorded", 60, || {
        sessions(lab, "night")
            .iter()
            .any(|row| row["session"] == session.as_str() && row["ended"].is_string())
    });
    let shown = lab.json(&["power", "show", &session]);
    assert_eq!(
        (
            &shown["session"]["cause"],
            &shown["session"]["reason"],
            &shown["record"]
        ),
        (
            &"infrastructure".into(),
            &"the coordinator ended during the power session".into(),
            &Value::Null
        )
    );
}

/// `serve` ends its sessions in order before it ends.
fn stopped_with_the_coordinator(lab: &mut Lab) {
    let session = wait_for_session(lab, "night", 2);
    let coordinator = lab.coordinator.as_mut().expect("it runs");
    let pid = Pid::from_raw(i32::try_from(coordinator.id()).expect("a process id"));
    kill_process(pid.expect("a process id"), Signal::TERM).expect("the coordinator is asked to stop");
    eventually("the coordinator to stop", 100, || !coordinator.is_running());
    assert_eq!(programs_of(&session), Vec::<u32>::new());
    assert!(lease(lab, "night").is_null());
    let shown = lab.json(&["power", "show", &session]);
    let failure = &shown["record"]["failure"];
    assert_eq!(failure["cause"], "infrastructure", "{shown}");
    assert!(
        failure["reason"]
            .as_str()
            .is_some_and(|text| text.contains("the coordinator was stopped")),
        "{shown}"
    );
    lab.start_coordinator();
}

/// The session ends, and `serve` goes on.
fn aborted_with_its_campaign(lab: &Lab) {
    let newest = |rows: &[Value]| {
        rows.first()
            .is_some_and(|row| row["ended"].is_null() && row["ranging"].is_string())
    };
    eventually("a session to measure", 120, || newest(&sessions(lab, "ended")));
    let session = id(&sessions(lab, "ended").remove(0));
    let _ = lab.json(&["campaign", "abort", "ended", "--yes"]);
    let cell = session_cell(lab, "ended");
    let attempts = cell["attempts"].as_array().expect("attempts");
    let last = attempts.last().expect("an attempt");
    assert_eq!(
        (&last["cause"], &last["reason"]),
        (&"operator".into(), &"the campaign was aborted by the user".into()),
        "{cell}"
    );
    assert_eq!(programs_of(&session), Vec::<u32>::new());
    let shown = lab.json(&["power", "show", &session]);
    assert_eq!(shown["record"]["failure"]["cause"], "operator", "{shown}");
}

fn expect_no_process_of_power(workspace: &Path) {
    let name = workspace.join("power").display().to_string();
    let running = processes(|line| line.contains(&name));
    assert!(running.is_empty(), "{running:?}");
}
