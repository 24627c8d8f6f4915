//! A state from the command line to the table: `regatta run --state MaxP` on a board whose root is made up (with twins of nvpmodel
//! and systemctl), through the real coordinator, agent and helper.

use std::{fs, io::Write as _};

use regatta_test_support::settable_board::{Socket, bytes_of, own_user, settable_orin};
use regatta_tests::{Broker, DEVICE, Lab, agent, succeed_output};
use serde_json::Value;

#[test]
fn a_run_in_maxp_is_proven_shown_and_leaves_the_board_as_it_was() {
    let root = settable_orin();
    let helper = Socket::listen(agent().with_file_name("regatta-state"), root.path(), own_user());
    let mut lab = Lab::new(Broker::Embedded).unwrap();
    let settings = lab.device_directory().join("agent.toml");
    let mut settings = fs::File::options().append(true).open(settings).unwrap();
    let (socket, system) = (helper.path(), root.path());
    writeln!(
        settings,
        "state_socket = '{}'\nsystem_root = '{}'",
        socket.display(),
        system.display()
    )
    .unwrap();
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
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
    // Whether the null engine's run is VALID is no matter here.
    let requested = command
        .args(["--state", "MaxP", "--format", "json"])
        .output()
        .unwrap();
    let requested: Value = serde_json::from_slice(&requested.stdout).unwrap();
    let run = requested["runs"][0]["run"].as_str().unwrap();
    assert_eq!(requested["runs"][0]["phase"], "done", "{requested:#}");
    let proof = &requested["runs"][0]["device_state"];
    assert_eq!(proof["asked"]["name"], "MaxP");
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

    // Words that cannot be: said before anything is asked for.
    for (state, printed) in [
        ("fast", "known are MaxP, MaxQ, as-is"),
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
