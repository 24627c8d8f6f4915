//! What a power session keeps for itself, and for how long: no other run is on its device, and a run that hangs ends. With the official client and
//! server of mlcommons/power-dev in a network namespace, because they only use NTP's port 123.

#![expect(clippy::expect_used, reason = "test code")]

use std::{fs, net::SocketAddr, path::Path, thread};

use regatta_power::ntp;
use regatta_tests::{
    Broker, Lab, Process, eventually, network_namespace, power_dev,
    power_sessions::{add_meter_and_device, expect_recorded_failure, processes, session, sessions},
    printed,
};
use serde_json::Value;

#[test]
fn a_session_reserves_its_device_and_ends_a_run_that_hangs() {
    let Some(power_dev) = power_dev() else { return };
    if !network_namespace::continues_inside("a_session_reserves_its_device_and_ends_a_run_that_hangs") {
        return;
    }
    ntp::answer_requests(SocketAddr::from(([127, 0, 0, 1], ntp::PORT))).expect("the namespace's port 123");
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    lab.start_coordinator();
    let lab = &lab;
    let power_dev = power_dev.as_path();
    thread::scope(|scope| {
        scope.spawn(move || a_device_that_is_reserved(lab, power_dev));
        scope.spawn(move || a_run_process_that_hangs(lab, power_dev));
    });
}

/// Nothing else runs on the device while it is measured, and no session begins on a device with a run.
fn a_device_that_is_reserved(lab: &Lab, power_dev: &Path) {
    const METER: &str = "reserved";
    add_meter_and_device(lab, power_dev, METER, "");
    let run = |words: &[&str]| {
        let mut command = lab.regatta();
        command.args([
            "run",
            "--benchmark",
            "digits",
            "--engine",
            "sim",
            "--scenario",
            "SingleStream",
        ]);
        command.args(["--duration", "10s", "--device", METER]).args(words);
        command.output().expect("regatta starts")
    };
    let first = run(&["--no-wait", "--format", "json"]);
    assert!(first.status.success(), "{}", printed(&first));
    let document: Value = serde_json::from_slice(&first.stdout).expect("JSON");
    let busy = session(lab, METER).output().expect("regatta starts");
    let words = printed(&busy);
    assert!(
        !busy.status.success() && words.contains("the device has unfinished runs"),
        "{words}"
    );
    let checked = session(lab, METER)
        .arg("--preflight")
        .output()
        .expect("regatta starts");
    let words = printed(&checked);
    assert!(words.contains("FAIL  device's work: reserved is busy"), "{words}");
    let id = document["runs"][0]["run"].as_str().expect("an id").to_owned();
    eventually("the run to end", 60, || {
        lab.json(&["runs", "show", &id])["recorded"].is_string()
    });
    let plan = lab.workspace().join("beside.toml");
    let text = format!(
        "schema = 1\nname = 'beside'\n[[cells]]\nbenchmark = 'digits'\nscenario = 'SingleStream'\nengine = 'sim'\n\
         duration = '3s'\ndevices = ['{METER}']\n"
    );
    fs::write(&plan, text).expect("the plan");
    let log = lab.workspace().join("reserved.log");
    let mut process = Process::start(&mut session(lab, METER), &log);
    eventually("the session to begin", 60, || {
        assert!(process.is_running(), "{}", process.output());
        !sessions(lab, METER).is_empty()
    });
    let _ = lab.json(&["campaign", "start", plan.to_str().expect("UTF-8")]);
    eventually("the session to be between its runs", 120, || {
        assert!(process.is_running(), "{}", process.output());
        process.output().contains("testing: the meter settles")
    });
    let refused = run(&[]);
    let words = printed(&refused);
    assert!(
        refused.status.code() == Some(3) && words.contains("measures the device with the meter reserved"),
        "{words}"
    );
    let report = || {
        let output = lab
            .regatta()
            .args(["campaign", "report", "beside", "--format", "json"])
            .output();
        serde_json::from_slice::<Value>(&output.expect("regatta starts").stdout).expect("JSON")
    };
    assert_eq!(
        report()["report"][0]["attempts"],
        serde_json::json!([]),
        "the campaign waits"
    );
    eventually("the session to end", 120, || !process.is_running());
    let row = sessions(lab, METER).remove(0);
    assert_eq!(row["verdict"], "rehearsal", "{row}\n{}", process.output());
    eventually("the campaign to end", 60, || report()["state"] == "ended");
    assert_eq!(report()["report"][0]["cell_state"], "good", "{}", report());
}

/// A run process that is stopped would keep meter and device for ever.
fn a_run_process_that_hangs(lab: &Lab, power_dev: &Path) {
    const METER: &str = "limited";
    add_meter_and_device(lab, power_dev, METER, "");
    let log = lab.workspace().join("limited.log");
    let mut process = Process::start(session(lab, METER).args(["--limit", "20s"]), &log);
    eventually("the ranging run to be requested", 60, || {
        sessions(lab, METER)
            .first()
            .is_some_and(|row| row["ranging"].is_string())
    });
    let ranging = sessions(lab, METER).remove(0)["ranging"]
        .as_str()
        .expect("an id")
        .to_owned();
    let of_run = |line: &str| line.contains("regatta-agent exec") && line.contains(&ranging);
    eventually("the run process to start", 30, || !processes(of_run).is_empty());
    for pid in processes(of_run) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).expect("a process id"));
        rustix::process::kill_process(pid.expect("a process id"), rustix::process::Signal::STOP)
            .expect("the run process is stopped");
    }
    expect_recorded_failure(lab, METER, &mut process, "within its limit of 20 s");
}
