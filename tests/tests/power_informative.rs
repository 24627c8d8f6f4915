//! Informative power sessions: Regatta's own power server and client, without power-dev and with any PTDaemon, here the simulated one, on a board
//! with rails. They are labelled wherever they show, and never staged. Needs a network namespace for NTP's port 123.

#![expect(clippy::expect_used, reason = "test code")]

use std::{fs, io::Write as _, net::SocketAddr, path::PathBuf, process::Command};

use regatta_power::ntp;
use regatta_test_support::settable_board::settable_orin;
use regatta_tests::{
    Broker, DEVICE, Lab,
    browser_client::get_page,
    free_port,
    html_check::read_page,
    network_namespace,
    power_sessions::{id, json, processes, run_session, write_simulated_ptd},
    printed, regatta, succeed_output,
};
use serde_json::Value;

#[test]
fn informative_sessions_need_no_official_program_and_are_never_staged() {
    if !network_namespace::continues_inside(
        "informative_sessions_need_no_official_program_and_are_never_staged",
    ) {
        return;
    }
    ntp::answer_requests(SocketAddr::from(([127, 0, 0, 1], ntp::PORT))).expect("the namespace's port 123");
    let board = settable_orin();
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    let settings = lab.device_directory().join("agent.toml");
    let mut settings = fs::File::options()
        .append(true)
        .open(settings)
        .expect("agent.toml");
    writeln!(settings, "system_root = '{}'", board.path().display()).expect("agent.toml");
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    let program = lab.workspace().join("ptd");
    // No round accepts this version.
    write_simulated_ptd(&program, &regatta(), "--ptd-version 0.7.0");
    add_meter(&lab, &program);
    let refused = session(&lab).output().expect("regatta starts");
    let words = printed(&refused);
    assert!(
        refused.status.code() == Some(2) && words.contains("power run --informative"),
        "{words}"
    );
    let output = session(&lab)
        .args(["--informative", "--format", "json"])
        .output()
        .expect("regatta starts");
    let words = printed(&output);
    assert!(output.status.success(), "{words}");
    assert!(
        words.contains("INFORMATIVE: Regatta's own power programs"),
        "{words}"
    );
    let record = json(&output)["sessions"][0].clone();
    assert_eq!(record["verdict"], "informative", "{record}");
    assert_eq!(record["informative"], true, "{record}");
    assert_eq!(record["official_summary"], Value::Null, "{record}");
    assert_eq!(record["findings"], serde_json::json!([]), "{record}");
    let watts = record["energy"]["watts"].as_f64().expect("watts");
    let rails = record["rails"]["watts"].as_f64().expect("the rails' watts");
    let ratio = record["rails"]["meter_over_rails"].as_f64().expect("a ratio");
    assert!((ratio - watts / rails).abs() < 1e-9, "{record}");
    expect_labelled(&lab, &id(&record), ratio);
    expect_not_staged(&lab, &record);
    let left = processes(|line| line.contains(&id(&record)));
    assert!(left.is_empty(), "{left:?}");
    a_meter_that_breaks(&lab);
}

fn add_meter(lab: &Lab, program: &std::path::Path) {
    let ports = [free_port(), free_port()].map(|port| port.to_string());
    let mut add = lab.regatta();
    add.args([
        "meter",
        "add",
        "own",
        "--device-type",
        "49",
        "--device-port",
        "own",
    ])
    .args(["--ntp", "127.0.0.1", "--port", &ports[0], "--ptd-port", &ports[1]])
    .arg("--ptd")
    .arg(program);
    let _ = succeed_output(&mut add);
}

fn session(lab: &Lab) -> Command {
    let mut command = lab.regatta();
    run_session(&mut command, "own");
    command
}

/// The word is in every view. A rehearsal is no measurement, so the device has no ratio.
fn expect_labelled(lab: &Lab, id: &str, ratio: f64) {
    let text =
        |words: &[&str]| String::from_utf8(succeed_output(lab.regatta().args(words)).stdout).expect("text");
    let shown = text(&["power", "show", id]);
    let times = format!("the meter shows {ratio:.3} times as much (informative)");
    for part in ["informative (rehearsal)", "INFORMATIVE", "FAKEPTD", &times] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("official checker"), "{shown}");
    assert!(text(&["power", "list"]).contains("informative (rehearsal)"));
    assert!(!text(&["device", "show", DEVICE]).contains("meter/rails"));
    let page = read_page(&get_page(&lab.page_url(), &format!("/power/{id}")).body).text;
    assert!(page.contains("It can never be submitted"), "{page}");
}

fn expect_not_staged(lab: &Lab, record: &Value) {
    let id = id(record);
    let directory = PathBuf::from(record["directory"].as_str().expect("a directory"));
    let elsewhere = lab.workspace().join("copy");
    let _ = succeed_output(Command::new("cp").arg("-r").arg(&directory).arg(&elsewhere));
    for (word, reason) in [
        (id.clone(), "is informative"),
        (directory.display().to_string(), "is informative"),
        (
            elsewhere.display().to_string(),
            "Regatta's own power client or server",
        ),
    ] {
        let refused = lab
            .regatta()
            .args(["submission", "stage", "--rehearsal", "--power", &word, "--output"])
            .arg(lab.workspace().join("staged"))
            .output()
            .expect("regatta starts");
        let words = printed(&refused);
        assert!(
            !refused.status.success() && words.contains(reason),
            "{word}: {words}"
        );
    }
}

fn a_meter_that_breaks(lab: &Lab) {
    write_simulated_ptd(
        &lab.workspace().join("ptd"),
        &regatta(),
        "--fault crash=ranging:1",
    );
    let output = session(lab)
        .arg("--informative")
        .output()
        .expect("regatta starts");
    let words = printed(&output);
    assert!(
        !output.status.success() && words.contains("PTDaemon has ended"),
        "{words}"
    );
    let meters = lab.json(&["meter", "list"]);
    assert!(meters["meters"][0]["lease"].is_null(), "{meters}");
}
