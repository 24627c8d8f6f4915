//! Tests of a board's state through the real coordinator, agent and helper, over a simulated root with fakes of nvpmodel and
//! systemctl. A state is set, and the power at the wall gets from the device's files to the tables.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{
    fs,
    io::Write as _,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use regatta_test_support::settable_board::{Socket, bytes_of, own_user, settable_orin};
use regatta_tests::{Broker, DEVICE, Lab, agent, succeed_output};
use serde_json::Value;

/// A lab whose device has the sensors and controls below `root`. `settings` are further lines of its configuration.
fn lab_on(root: &Path, settings: &str) -> Lab {
    let mut lab = Lab::new(Broker::Embedded).unwrap();
    let file = lab.device_directory().join("agent.toml");
    let mut file = fs::File::options().append(true).open(file).unwrap();
    writeln!(file, "system_root = '{}'\n{settings}", root.display()).unwrap();
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    lab
}

#[test]
fn a_run_in_maxp_is_proven_shown_and_leaves_the_board_as_it_was() {
    let root = settable_orin();
    let helper = Socket::listen(agent().with_file_name("regatta-state"), root.path(), own_user());
    let lab = lab_on(
        root.path(),
        &format!("state_socket = '{}'", helper.path().display()),
    );
    let before = bytes_of(root.path());
    let mut command = lab.regatta();
    command.args([
        "run",
        "--device",
        DEVICE,
        "--benchmark",
        "digits",
        "--engine",
        "null",
    ]);
    command.args([
        "--scenario",
        "Offline",
        "--mode",
        "PerformanceOnly",
        "--duration",
        "2s",
    ]);
    // Whether the null engine's run is VALID does not matter here.
    let requested = command
        .args(["--state", "MaxP", "--format", "json"])
        .output()
        .unwrap();
    let requested: Value = serde_json::from_slice(&requested.stdout).unwrap();
    let run = requested["runs"][0]["run"].as_str().unwrap();
    assert_eq!(requested["runs"][0]["phase"], "done", "{requested:#}");
    let proof = &requested["runs"][0]["device_state"];
    assert_eq!(proof["requested"]["name"], "MaxP");
    assert_eq!(proof["before"], proof["after"]);
    assert_eq!(bytes_of(root.path()), before);
    let shown = succeed_output(lab.regatta().args(["runs", "show", run]));
    let shown = String::from_utf8(shown.stdout).unwrap();
    for line in [
        "board      set to MaxP",
        "memory-rate",
        "telemetry.csv",
        "not from the machine itself",
    ] {
        assert!(shown.contains(line), "{line} is missing in {shown}");
    }

    // Impossible values are refused before anything is requested.
    for (state, printed) in [
        ("fast", "possible values: MaxP, MaxQ, as-is"),
        ("MaxQ", "no MaxQ clocks are published for digits Offline"),
    ] {
        let mut command = lab.regatta();
        command.args([
            "run",
            "--benchmark",
            "digits",
            "--engine",
            "null",
            "--scenario",
            "Offline",
        ]);
        let refused = command.args(["--state", state]).output().unwrap();
        let words = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            refused.status.code() == Some(2) && words.contains(printed),
            "{words}"
        );
    }
}

/// Rewrites a meter's file every half second until it is dropped, as a program for a smart plug does.
struct PlugProgram<'a>(&'a AtomicBool);

impl Drop for PlugProgram<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_meter_at_the_wall_is_shown_beside_the_rails_and_kept_for_the_device() {
    let root = settable_orin();
    let meter = root.path().join("plug-milliwatts");
    let lab = lab_on(root.path(), &format!("wall_meter = '{}'", meter.display()));
    let is_over = AtomicBool::new(false);
    let requested = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                fs::write(&meter, "31500\n").unwrap();
                thread::sleep(Duration::from_millis(500));
            }
        });
        let _plug = PlugProgram(&is_over);
        let mut command = lab.regatta();
        command.args([
            "run",
            "--device",
            DEVICE,
            "--benchmark",
            "digits",
            "--engine",
            "null",
        ]);
        command.args(["--scenario", "Offline", "--mode", "PerformanceOnly"]);
        command
            .args(["--duration", "3s", "--format", "json"])
            .output()
            .unwrap()
    });
    let requested: Value = serde_json::from_slice(&requested.stdout).unwrap();
    let run = &requested["runs"][0];
    let telemetry = &run["device_state"]["telemetry"];
    assert_eq!(telemetry["wall_milliwatts"], 31_500, "{requested:#}");
    let rails = telemetry["milliwatts"].as_f64().unwrap();
    let text =
        |arguments: &[&str]| String::from_utf8(succeed_output(lab.regatta().args(arguments)).stdout).unwrap();
    let shown = text(&["runs", "show", run["run"].as_str().unwrap()]);
    let expected = format!(
        "31.50 W at the wall while LoadGen ran, {:.3} times the rails",
        31_500.0 / rails
    );
    assert!(shown.contains(&expected), "{expected} is missing in {shown}");
    let device = text(&["device", "show", DEVICE]);
    assert!(device.contains("wall/rails"), "{device}");
    let device: Value = serde_json::from_str(&text(&["device", "show", DEVICE, "--format", "json"])).unwrap();
    let ratio = &device["wall_over_rails"];
    // A run that a guessed rate made INVALID was repeated.
    assert!(ratio["runs"].as_u64() >= Some(1), "{ratio}");
    assert!(
        (ratio["median"].as_f64().unwrap() - 31_500.0 / rails).abs() < 1e-9,
        "{ratio}"
    );
}
