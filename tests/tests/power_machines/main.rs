//! Power sessions whose director and device are other machines, behind real sshds: the official client, server and checker of
//! mlcommons/power-dev, a simulated PTDaemon, and what is left after faults. Needs root for the machines' users, and a network namespace
//! for NTP's port 123.

#![expect(clippy::expect_used, reason = "test code")]

mod bench;
mod faults;
mod staging;

use std::{fs, net::SocketAddr, path::PathBuf, process::Command, thread};

use bench::Bench;
use faults::{
    a_command_that_is_interrupted, a_command_that_is_killed, a_connection_that_ends,
    a_connection_that_ends_with_the_files, a_device_that_is_lost, a_director_that_prints_without_end,
    a_network_that_stalls, a_program_that_is_killed, a_session_whose_files_stay_on_the_device,
};
use regatta_power::ntp;
use regatta_tests::{
    DEVICE, network_namespace, power_dev, printed,
    sshd::SAILOR,
    succeed_output,
    wire::{CUT, SILENT},
};
use staging::a_director_on_this_machine;

#[test]
fn sessions_of_three_machines_are_recorded_and_leave_nothing() {
    let Some(power_dev) = power_dev() else { return };
    let test = "sessions_of_three_machines_are_recorded_and_leave_nothing";
    if !network_namespace::continues_inside_as_root(test) {
        return;
    }
    ntp::answer_requests(SocketAddr::from(([127, 0, 0, 1], ntp::PORT))).expect("the namespace's port 123");
    let Some(mut bench) = Bench::new(&power_dev) else {
        return;
    };
    refused_before_it_begins(&bench);
    a_device_is_examined(&bench);
    thread::scope(|scope| {
        let bench = &bench;
        let parts = [
            scope.spawn(move || a_session_of_three_machines(bench)),
            scope.spawn(move || a_program_that_is_killed(bench, "server.py", "the server has ended")),
            scope.spawn(move || a_program_that_is_killed(bench, "client.py", "the client has failed")),
            scope.spawn(move || a_connection_that_ends(bench, CUT)),
            scope.spawn(move || a_connection_that_ends(bench, SILENT)),
            scope.spawn(move || a_network_that_stalls(bench)),
            scope.spawn(move || a_connection_that_ends_with_the_files(bench)),
            scope.spawn(move || a_command_that_is_killed(bench)),
            scope.spawn(move || a_command_that_is_interrupted(bench)),
            scope.spawn(move || a_session_whose_files_stay_on_the_device(bench)),
            scope.spawn(move || a_director_on_this_machine(bench)),
            scope.spawn(move || a_director_that_prints_without_end(bench)),
        ];
        for part in parts {
            part.join().expect("this part of the test holds");
        }
    });
    a_device_that_is_lost(&mut bench);
    let meters = bench.json(&["meter", "list"]);
    let meters = meters["meters"].as_array().expect("a list").clone();
    let leased: Vec<_> = meters.iter().filter(|meter| !meter["lease"].is_null()).collect();
    assert!(leased.is_empty(), "{leased:?}");
}

fn refused_before_it_begins(bench: &Bench) {
    bench.add_meter("gone", bench.director.port, "");
    fs::remove_file(bench.director.home().join("ptd-gone")).expect("it is there");
    let output = bench
        .session("gone")
        .arg("--preflight")
        .output()
        .expect("regatta starts");
    let words = printed(&output);
    assert!(
        output.status.code() == Some(1) && words.contains("FAIL  director PTDaemon"),
        "{words}"
    );
    for line in [
        "ok    director power-dev",
        "ok    device power-dev",
        "ok    clocks",
        "ok    network",
        "ok    device: gone",
    ] {
        assert!(words.contains(line), "{line}\n{words}");
    }
    assert!(
        bench.newest("gone").is_none() && !words.contains("meter identity"),
        "{words}"
    );
}

/// Whether the official client can run on a device shows without a meter.
fn a_device_is_examined(bench: &Bench) {
    let home = bench.device.home();
    let changed = home.join("crlf");
    let mut copy = Command::new("cp");
    let _ = succeed_output(copy.arg("-r").arg(home.join("power-dev")).arg(&changed));
    let file = changed.join("ptd_client_server/lib/time_sync.py");
    let text = fs::read_to_string(&file).expect("a source file");
    fs::write(&file, text.replace('\n', "\r\n")).expect("a source file");
    for (name, mark) in [("power-dev", "ok  "), ("crlf", "FAIL"), ("missing", "FAIL")] {
        let mut doctor = bench.regatta();
        doctor.args(["device", "doctor", DEVICE, "--ntp", "127.0.0.1", "--power-dev"]);
        doctor.arg(home.join(name));
        doctor.args(["--ssh", &format!("{SAILOR}@127.0.0.1:{}", bench.device.port)]);
        doctor.arg("--identity").arg(bench.device.key());
        doctor.args(["--accept-host-key", &bench.device.fingerprint()]);
        let words = printed(&doctor.output().expect("regatta starts"));
        for line in [&format!("{mark}  power-dev: "), "ok    Python: ", "ok    clock: "] {
            assert!(words.contains(line), "{name}: {line}: {words}");
        }
        assert_eq!(words.contains("Windows line ends"), name == "crlf", "{words}");
    }
}

fn a_session_of_three_machines(bench: &Bench) {
    bench.add_meter("good", bench.director.port, "");
    let (record, words) = bench.complete_session("good");
    assert_eq!(record["verdict"], "rehearsal", "{record}");
    assert_eq!(record["official_summary"], "11 of 11 checks passed", "{record}");
    assert!(
        record["machine"]
            .as_str()
            .is_some_and(|machine| machine.starts_with(SAILOR)),
        "{record}"
    );
    let session = PathBuf::from(record["directory"].as_str().expect("a directory"));
    for (part, directory) in [("ranging", "ranging"), ("testing", "run_1")] {
        let run = record["runs"][part].as_str().expect("a run");
        let name = "mlperf_log_detail.txt";
        let delivered = fs::read(
            bench
                .lab
                .workspace()
                .join("runs")
                .join(run)
                .join("files")
                .join(name),
        );
        let in_session = fs::read(session.join(directory).join(name));
        assert!(
            delivered.expect("the run's log") == in_session.expect("the session's log"),
            "{part}"
        );
    }
    // PTDaemon was queried before it began, and live watts came over the connection.
    assert!(
        words.contains("ok    meter identity: YokogawaWT310E") && words.contains("ok    idle load: "),
        "{words}"
    );
    assert!(words.contains(" W, the mean of "), "{words}");
    let id = record["session"].as_str().expect("an id");
    for machine in [&bench.director, &bench.device] {
        let left = fs::read_dir(machine.home().join("regatta-power")).expect("the sessions' directory");
        let left: Vec<_> = left
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(id))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
    bench.expect_no_process(id);
}
