//! Power sessions of a lab with the official client, server and checker of mlcommons/power-dev: coordinator, broker, agent and a
//! simulated PTDaemon in a network namespace, because the official programs only use NTP's port 123. Also what is left after faults.

#![expect(clippy::expect_used, clippy::panic, reason = "test code")]

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Output,
    thread,
    time::Duration,
};

use regatta_power::ntp;
use regatta_tests::{
    Broker, Lab, Process,
    browser_client::get_page,
    eventually,
    html_check::read_page,
    network_namespace, power_dev,
    power_sessions::{
        self, add_meter_and_device, expect_recorded_failure, id, processes, session, sessions,
        write_simulated_ptd,
    },
    printed, regatta,
};
use serde_json::Value;

/// The address of the lab's NTP server.
const NTP: [u8; 4] = [127, 0, 0, 1];

#[test]
fn sessions_are_recorded_and_leave_no_lease() {
    let Some(power_dev) = power_dev() else { return };
    if !network_namespace::continues_inside("sessions_are_recorded_and_leave_no_lease") {
        return;
    }
    ntp::answer_requests(SocketAddr::from((NTP, ntp::PORT))).expect("the namespace's port 123");
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    refused_before_it_begins(&lab, &power_dev);
    let power_dev = power_dev.as_path();
    thread::scope(|scope| {
        let lab = &lab;
        let parts = [
            scope.spawn(move || a_session_of_two_ordinary_runs(lab, power_dev)),
            scope.spawn(move || a_meter_that_breaks(lab, power_dev)),
            scope.spawn(move || a_server_that_is_killed(lab, power_dev)),
            scope.spawn(move || a_client_that_is_killed(lab, power_dev)),
            scope.spawn(move || a_supervisor_that_is_killed(lab, power_dev)),
            scope.spawn(move || a_command_that_is_killed(lab, power_dev)),
            scope.spawn(move || a_clock_that_is_stepped(lab, power_dev)),
            scope.spawn(move || a_watch_after_the_first_minute(lab, power_dev)),
            scope.spawn(move || a_ptd_that_hangs_in_a_session(lab, power_dev)),
            scope.spawn(move || a_python_that_hangs(lab, power_dev)),
        ];
        for part in parts {
            part.join().expect("this part of the test holds");
        }
    });
    a_session_of_a_campaign(&mut lab, power_dev);
    let meters = lab.json(&["meter", "list"]);
    let leased = |meter: &&Value| !meter["lease"].is_null();
    let leases: Vec<_> = meters["meters"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(leased)
        .collect();
    assert!(leases.is_empty(), "{leases:?}");
    let running = commands_with(&lab.workspace().join("power"));
    assert!(running.is_empty(), "{running:?}");
}

/// A cell of a campaign: it follows its good run, its first attempt ends with the coordinator, and the second one is good.
fn a_session_of_a_campaign(lab: &mut Lab, power_dev: &Path) {
    const METER: &str = "night";
    add_meter_and_device(lab, power_dev, METER, "");
    let plan = lab.workspace().join("night.toml");
    let text = format!(
        "schema = 1\nname = 'night'\n[[cells]]\nbenchmark = 'digits'\nscenario = 'SingleStream'\nengine = 'sim'\n\
         duration = '4s'\npower = '{METER}'\ndevices = ['{METER}']\n"
    );
    let plan = plan.to_str().expect("UTF-8");
    fs::write(plan, text.replace("power = 'night'", "power = 'day'")).expect("the plan");
    let unknown = lab
        .regatta()
        .args(["campaign", "plan", plan])
        .output()
        .expect("regatta starts");
    let words = printed(&unknown);
    assert!(
        unknown.status.code() == Some(2) && words.contains("line 8: the lab has no meter `day`"),
        "{words}"
    );
    fs::write(plan, text).expect("the plan");
    let planned = lab.json(&["campaign", "plan", plan]);
    assert_eq!(planned["cells"], 2);
    assert_eq!(planned["combinations"][1]["mode"], "power session");
    let _ = lab.json(&["campaign", "start", plan]);
    eventually("the session to have its ranging run", 90, || {
        sessions(lab, METER)
            .first()
            .is_some_and(|session| session["ranging"].is_string())
    });
    lab.coordinator.as_mut().expect("it runs").kill();
    lab.start_coordinator();
    let report = || {
        let output = lab
            .regatta()
            .args(["campaign", "report", "--format", "json"])
            .output();
        let output = output.expect("regatta starts");
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    eventually("the campaign to end", 240, || report()["state"] == "ended");
    let report = report();
    let cells = report["report"].as_array().expect("cells");
    assert!(cells.iter().all(|cell| cell["cell_state"] == "good"), "{report}");
    let session = cells
        .iter()
        .find(|cell| cell["mode"] == "power session")
        .expect("a cell");
    let attempts = session["attempts"].as_array().expect("attempts");
    assert_eq!(attempts.len(), 2, "{session}");
    assert_eq!(attempts[0]["cause"], "infrastructure", "{session}");
    let made = sessions(lab, METER);
    assert_eq!(made.len(), 2, "{made:?}");
    let (newest, interrupted) = (&made[0], &made[1]);
    assert_eq!(
        (&newest["verdict"], &newest["testing"]),
        (&"rehearsal".into(), &attempts[1]["run"]),
        "{newest}"
    );
    assert!(interrupted["verdict"].is_null() && interrupted["reason"].is_string());
}

/// Checks the newest session with a meter: it failed for this reason.
fn failed(lab: &Lab, meter: &str, output: &Output, reason: &str) {
    let printed = printed(output);
    assert!(
        !output.status.success() && printed.contains(reason),
        "{meter}: {}\n{printed}",
        output.status
    );
    let row = sessions(lab, meter).remove(0);
    assert!(
        row["verdict"].is_null() && row["reason"].as_str().is_some_and(|words| words.contains(reason)),
        "{row}"
    );
}

fn refused_before_it_begins(lab: &Lab, power_dev: &Path) {
    add_meter_and_device(lab, power_dev, "gone", "");
    fs::remove_file(lab.workspace().join("ptd-gone")).expect("it is there");
    let output = session(lab, "gone").output().expect("regatta starts");
    let words = printed(&output);
    assert!(
        output.status.code() == Some(3)
            && words.contains("FAIL  PTDaemon")
            && words.contains("nothing was started"),
        "{words}"
    );
    assert!(sessions(lab, "gone").is_empty());
    // A second meter at one port would be the same meter.
    let twice = lab
        .regatta()
        .args([
            "meter",
            "add",
            "twice",
            "--device-type",
            "49",
            "--device-port",
            "gone",
        ])
        .args(["--ntp", "127.0.0.1", "--ptd", "ptd", "--power-dev"])
        .arg(power_dev)
        .output()
        .expect("regatta starts");
    let words = printed(&twice);
    assert!(
        twice.status.code() == Some(2) && words.contains("the meter gone is at gone already"),
        "{words}"
    );
}

fn a_session_of_two_ordinary_runs(lab: &Lab, power_dev: &Path) {
    add_meter_and_device(lab, power_dev, "good", "");
    let log = lab.workspace().join("second.log");
    let first = thread::scope(|scope| {
        let first = scope.spawn(|| {
            session(lab, "good")
                .args(["--format", "json"])
                .output()
                .expect("regatta starts")
        });
        eventually("the session to begin", 60, || {
            first.is_finished() || !sessions(lab, "good").is_empty()
        });
        if first.is_finished() {
            panic!("{}", printed(&first.join().expect("no panic")));
        }
        let second = session(lab, "good").output().expect("regatta starts");
        let words = printed(&second);
        assert!(
            !second.status.success() && words.contains("uses the meter good"),
            "{words}"
        );
        fs::write(&log, words).expect("a log");
        first.join().expect("no panic")
    });
    assert!(first.status.success(), "{}", printed(&first));
    let document: Value = serde_json::from_slice(&first.stdout).expect("JSON");
    let record = &document["sessions"][0];
    assert_eq!(record["verdict"], "rehearsal", "{record}");
    assert_eq!(record["official_summary"], "11 of 11 checks passed", "{record}");
    assert_eq!(record["simulated"], true, "{record}");
    assert_eq!(record["findings"], serde_json::json!([]), "{record}");
    let row = sessions(lab, "good").remove(0);
    let obstacles = row["obstacles"].as_array().expect("a list");
    assert!(
        row["simulated"] == true
            && obstacles
                .iter()
                .any(|text| text.as_str().expect("text").starts_with("simulated:")),
        "the engine is simulated: {row}"
    );
    let directory = PathBuf::from(record["directory"].as_str().expect("a directory"));
    let conf =
        fs::read_to_string(directory.with_file_name("server.conf")).expect("the session's server.conf");
    assert!(conf.contains("listen: 127.0.0.1 "), "{conf}");
    assert!(
        record["energy"]["joules"]
            .as_f64()
            .is_some_and(|joules| joules > 0.0),
        "{record}"
    );
    // Both runs are ordinary ones, whose delivered logs the session has as they are.
    for (part, directory) in [("ranging", "ranging"), ("testing", "run_1")] {
        let run = record["runs"][part].as_str().expect("a run");
        let name = "mlperf_log_detail.txt";
        let delivered = fs::read(lab.workspace().join("runs").join(run).join("files").join(name));
        let session = PathBuf::from(record["directory"].as_str().expect("a directory"));
        let in_session = fs::read(session.join(directory).join(name));
        assert!(
            delivered.expect("the run's log") == in_session.expect("the session's log"),
            "{part}"
        );
        assert!(!session.join("run_1/ptd_out.txt").exists());
        let verified = lab
            .regatta()
            .args(["runs", "verify", run])
            .output()
            .expect("regatta starts");
        assert!(verified.status.success(), "{}", printed(&verified));
    }
    shown_on_its_page(lab, record);
}

/// Checks the live page of a session that the official programs made.
fn shown_on_its_page(lab: &Lab, record: &Value) {
    let session = record["session"].as_str().expect("an id");
    let page = get_page(&lab.page_url(), &format!("/power/{session}"));
    let text = read_page(&page.body).text;
    let watts = format!("{:.3} W over", record["energy"]["watts"].as_f64().expect("watts"));
    for part in [
        "11 of 11 checks passed",
        "PTDaemon is simulated",
        &watts,
        "ranging",
        "testing",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let runs = &record["runs"];
    for run in [&runs["ranging"], &runs["testing"]] {
        let link = format!("href=\"/run/{}\"", run.as_str().expect("a run"));
        assert!(page.body.contains(&link), "{link}: {}", page.body);
    }
    assert_eq!(
        page.body.matches("<svg class=\"plot\"").count(),
        1,
        "{}",
        page.body
    );
}

fn a_meter_that_breaks(lab: &Lab, power_dev: &Path) {
    add_meter_and_device(lab, power_dev, "broken", "--fault crash=ranging:1");
    let output = session(lab, "broken").output().expect("regatta starts");
    failed(lab, "broken", &output, "PTDaemon has ended");
}

/// Starts a session, and kills the process whose command line has these words once the ranging run is under way.
fn kill(lab: &Lab, power_dev: &Path, meter: &str, words: &str, is_supervisor: bool) -> Process {
    add_meter_and_device(lab, power_dev, meter, "");
    let process = Process::start(
        &mut session(lab, meter),
        &lab.workspace().join(format!("{meter}.log")),
    );
    eventually("the ranging run to be requested", 60, || {
        sessions(lab, meter)
            .first()
            .is_some_and(|row| row["ranging"].is_string())
    });
    let id = id(&sessions(lab, meter).remove(0));
    let victims = processes(|line| {
        line.contains(&id) && line.contains(words) && line.contains("import") == is_supervisor
    });
    assert!(!victims.is_empty(), "no process has {words}");
    power_sessions::kill(&victims);
    process
}

fn a_server_that_is_killed(lab: &Lab, power_dev: &Path) {
    let mut process = kill(lab, power_dev, "server-killed", "server.py", false);
    expect_recorded_failure(lab, "server-killed", &mut process, "the server has ended");
}

fn a_client_that_is_killed(lab: &Lab, power_dev: &Path) {
    let mut process = kill(lab, power_dev, "client-killed", "client.py", false);
    expect_recorded_failure(lab, "client-killed", &mut process, "the client has failed");
}

/// The server ends with its supervisor, and PTDaemon with the server.
fn a_supervisor_that_is_killed(lab: &Lab, power_dev: &Path) {
    let mut process = kill(lab, power_dev, "supervisor-killed", "server.py", true);
    expect_recorded_failure(lab, "supervisor-killed", &mut process, "the server has ended");
    let row = sessions(lab, "supervisor-killed").remove(0);
    assert_eq!(row["simulated"], true, "a failed rehearsal is one, too: {row}");
    let id = id(&row);
    eventually("the server to end", 30, || {
        processes(|line| line.contains(&id)).is_empty()
    });
}

/// It is stopped while the meter settles: the official server waits for its answer without limit.
fn a_ptd_that_hangs_in_a_session(lab: &Lab, power_dev: &Path) {
    add_meter_and_device(lab, power_dev, "hung", "");
    let mut process = Process::start(&mut session(lab, "hung"), &lab.workspace().join("hung.log"));
    eventually("the meter to settle", 60, || {
        process.output().contains("ranging: the meter settles")
    });
    let of_meter = |line: &str| line.contains("simulate-ptd") && line.contains(" 49 hung");
    eventually("PTDaemon to measure", 30, || !processes(of_meter).is_empty());
    for pid in processes(of_meter) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).expect("a process id"));
        let stopped =
            rustix::process::kill_process(pid.expect("a process id"), rustix::process::Signal::STOP);
        stopped.expect("PTDaemon is stopped");
    }
    // The watch notices that PTDaemon does not answer, or the official server first that it did not listen.
    expect_recorded_failure(lab, "hung", &mut process, "PTDaemon ");
}

/// The checks before a session have a time limit on every machine.
fn a_python_that_hangs(lab: &Lab, power_dev: &Path) {
    add_meter_and_device(lab, power_dev, "endless", "");
    let python = lab.workspace().join("endless-python");
    fs::write(&python, "#!/bin/sh\nexec sleep 600\n").expect("a program");
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).expect("a program");
    let mut replace = lab.regatta();
    let added = power_sessions::add_meter(
        &mut replace,
        "endless",
        power_dev,
        &lab.workspace().join("ptd-endless"),
    )
    .arg("--replace")
    .arg("--python")
    .arg(&python)
    .output()
    .expect("regatta starts");
    assert!(added.status.success(), "{}", printed(&added));
    let checked = session(lab, "endless")
        .arg("--preflight")
        .output()
        .expect("regatta starts");
    let words = printed(&checked);
    let line = format!("FAIL  Python: {} has not ended within 90 s", python.display());
    assert!(
        checked.status.code() == Some(1) && words.contains(&line),
        "{words}"
    );
}

/// Adds a meter and a device of this name, whose Python has a clock and a disk of its own in the returned directory.
fn add_meter_with_own_clock(lab: &Lab, power_dev: &Path, name: &str) -> PathBuf {
    let place = lab.workspace().join(name);
    power_sessions::write_python(&place, None);
    let program = lab.workspace().join(format!("ptd-{name}"));
    lab.add_device(name);
    write_simulated_ptd(&program, &regatta(), "");
    let added = power_sessions::add_meter(&mut lab.regatta(), name, power_dev, &program)
        .arg("--python")
        .arg(place.join("python"))
        .output()
        .expect("regatta starts");
    assert!(added.status.success(), "{}", printed(&added));
    place
}

/// Returns whether `regatta events` has printed a text about a power session.
fn is_reported(events: &Process, text: &str) -> bool {
    let lines = events.output();
    lines
        .lines()
        .any(|line| line.contains("power session") && line.contains(text))
}

/// A machine is watched to the session's end: a filling disk and a step are seen after the first minute.
fn a_watch_after_the_first_minute(lab: &Lab, power_dev: &Path) {
    let place = add_meter_with_own_clock(lab, power_dev, "watched");
    let events = Process::start(lab.regatta().arg("events"), &place.join("events.txt"));
    let mut command = lab.regatta();
    power_sessions::run_session_of(&mut command, "watched", "30s").args(["--device", "watched"]);
    let mut process = Process::start(&mut command, &place.join("session.txt"));
    eventually("the meter to settle", 60, || {
        process.output().contains("ranging: the meter settles")
    });
    thread::sleep(Duration::from_secs(65));
    assert!(process.is_running(), "{}", process.output());
    power_sessions::set_python_free_space(&place, 3);
    let low = "the device's disk has only 3 MiB left";
    eventually("the event of the full disk", 20, || is_reported(&events, low));
    power_sessions::set_python_clock(&place, 1.25);
    let large = "the device's clock was stepped by +1.250 s";
    expect_recorded_failure(lab, "watched", &mut process, large);
}

/// A small step is an event and an observation, and the session goes on. A step of a second ends it.
fn a_clock_that_is_stepped(lab: &Lab, power_dev: &Path) {
    let place = add_meter_with_own_clock(lab, power_dev, "stepped");
    let events = Process::start(lab.regatta().arg("events"), &place.join("events.txt"));
    let mut process = Process::start(&mut session(lab, "stepped"), &place.join("session.txt"));
    eventually("the meter to settle", 60, || {
        process.output().contains("ranging: the meter settles")
    });
    power_sessions::set_python_clock(&place, 0.25);
    let small = "the device's clock was stepped by +0.250 s";
    eventually("the event of the small step", 60, || is_reported(&events, small));
    assert!(process.is_running(), "{}", process.output());
    power_sessions::set_python_clock(&place, 1.25);
    let large = "the device's clock was stepped by +1.000 s";
    expect_recorded_failure(lab, "stepped", &mut process, large);
    eventually("the event of the end", 10, || is_reported(&events, large));
    let id = id(&sessions(lab, "stepped").remove(0));
    let shown = lab.json(&["power", "show", &id]);
    let observations = shown["record"]["observations"].as_array().expect("a list");
    let texts: Vec<_> = observations
        .iter()
        .filter_map(|one| one["text"].as_str())
        .collect();
    assert_eq!(texts, [small, large], "{shown}");
}

/// Regatta itself is killed: the server ends, and the next session takes the lease over and says so.
fn a_command_that_is_killed(lab: &Lab, power_dev: &Path) {
    add_meter_and_device(lab, power_dev, "killed", "--fault crash=ranging:0");
    let mut process = Process::start(&mut session(lab, "killed"), &lab.workspace().join("killed.log"));
    eventually("the session to begin", 60, || !sessions(lab, "killed").is_empty());
    let id = id(&sessions(lab, "killed").remove(0));
    process.kill();
    eventually("the official programs to end", 60, || {
        processes(|line| line.contains(&id)).is_empty()
    });
    let output = session(lab, "killed").output().expect("regatta starts");
    assert!(
        printed(&output).contains("ended without a result"),
        "{}",
        printed(&output)
    );
    let rows = sessions(lab, "killed");
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!(
        rows[1]["reason"],
        "the process of this session ended in the middle"
    );
}

/// The command lines that name a directory.
fn commands_with(directory: &Path) -> Vec<u32> {
    let name = directory.display().to_string();
    processes(|line| line.contains(&name))
}
