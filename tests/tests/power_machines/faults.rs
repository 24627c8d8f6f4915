//! What is killed, cut or interrupted in the middle of a session, and what is left afterwards.

use std::{
    fs,
    os::unix::fs::symlink,
    process::{Command, Output},
    sync::atomic::Ordering,
    thread,
    time::Duration,
};

use regatta_tests::{
    DEVICE, Process, eventually,
    power_sessions::{json, kill, processes},
    printed, succeed_output,
    wire::{CUT, OPEN, SILENT, Wire},
};

use crate::bench::{Bench, SENT_AS_FOREIGN};

pub(crate) fn a_program_that_is_killed(bench: &Bench, program: &str, reason: &str) {
    let meter = format!("killed-{}", program.replace('.', "-"));
    bench.add_meter(&meter, bench.director.port, "");
    let (mut process, id) = bench.begin(&meter);
    let victims = processes(|line| line.contains(&id) && line.contains(program) && !line.contains("import"));
    assert!(!victims.is_empty(), "no process has {program}");
    kill(&victims);
    bench.expect_failure(&meter, &mut process, &id, reason);
}

pub(crate) fn a_connection_that_ends(bench: &Bench, how: u8) {
    let meter = if how == CUT { "cut" } else { "silent" };
    let wire = Wire::to(bench.director.port);
    bench.add_meter(meter, wire.port, "");
    let (mut process, id) = bench.begin(meter);
    wire.state.store(how, Ordering::Relaxed);
    bench.expect_failure(
        meter,
        &mut process,
        &id,
        "the connection to the director was lost",
    );
}

/// Neither connection brings anything for 17 s of the ranging run, as in a network that loses a switch for a moment.
pub(crate) fn a_network_that_stalls(bench: &Bench) {
    let meter = "stalled";
    let wires = [Wire::to(bench.director.port), Wire::to(bench.device.port)];
    bench.add_meter(meter, wires[0].port, "");
    let (mut process, _) = bench.begin_through(meter, wires[1].port);
    let set = |state: u8| {
        for wire in &wires {
            wire.state.store(state, Ordering::Relaxed);
        }
    };
    set(SILENT);
    thread::sleep(Duration::from_secs(17));
    set(OPEN);
    eventually("the session to end", 120, || !process.is_running());
    let row = bench.newest(meter).expect("a session");
    assert_eq!(row["verdict"], "rehearsal", "{row}\n{}", process.output());
    let record = bench.json(&["power", "show", row["session"].as_str().expect("an id")]);
    let record = &record["record"];
    assert_eq!(record["official_summary"], "11 of 11 checks passed", "{record}");
}

/// The connection to the device brings nothing more while the session's files are fetched.
pub(crate) fn a_connection_that_ends_with_the_files(bench: &Bench) {
    let meter = "silent-files";
    let wire = Wire::to(bench.device.port);
    bench.add_meter(meter, bench.director.port, "");
    let (mut process, id) = bench.begin_through(meter, wire.port);
    eventually("the client to collect", 90, || {
        process.output().contains("collecting the session's files")
    });
    // It takes seconds, so that the wire ends in the middle.
    let name = "session/zeros";
    let large = bench
        .device
        .home()
        .join(format!("regatta-power/{id}-device/{name}"));
    let large = fs::File::create(large).expect("a file of the session");
    large.set_len(1000 << 20).expect("a large file");
    let fetched = bench.lab.workspace().join("power").join(&id).join(name);
    eventually("the large file to come", 60, || fetched.exists());
    wire.state.store(SILENT, Ordering::Relaxed);
    bench.expect_failure(meter, &mut process, &id, "could not be fetched");
}

/// Regatta itself is killed: nothing remains on either machine, and the next session reports it.
pub(crate) fn a_command_that_is_killed(bench: &Bench) {
    bench.add_meter("command", bench.director.port, "--fault crash=ranging:0");
    let (mut process, id) = bench.begin("command");
    process.kill();
    bench.expect_no_process(&id);
    let output: Output = bench.session("command").output().expect("regatta starts");
    let words = printed(&output);
    assert!(
        words.contains("ended without a result") && words.contains("files of earlier sessions"),
        "{words}"
    );
}

/// A director that prints without end takes neither memory nor the command.
pub(crate) fn a_director_that_prints_without_end(bench: &Bench) {
    bench.add_meter("endless", bench.director.port, "");
    let python = bench.director.home().join("endless-python");
    fs::write(&python, "#!/bin/sh\nexec cat /dev/zero\n").expect("a program");
    let _ = succeed_output(Command::new("chmod").arg("755").arg(&python));
    let settings = bench.json(&["meter", "list"]);
    let meters = settings["meters"].as_array().expect("a list");
    let own = meters
        .iter()
        .find(|meter| meter["name"] == "endless")
        .expect("it was added");
    let mut replace = bench.regatta();
    replace.args([
        "meter",
        "add",
        "endless",
        "--replace",
        "--device-type",
        "49",
        "--device-port",
        "endless",
    ]);
    replace.args(["--ntp", "127.0.0.1", "--ptd", "ptd"]);
    for key in ["director", "power_dev"] {
        let option = format!("--{}", key.replace('_', "-"));
        replace
            .arg(option)
            .arg(own["settings"][key].as_str().expect("a text"));
    }
    replace
        .arg("--checker")
        .arg(&bench.power_dev)
        .arg("--python")
        .arg(&python);
    let _ = succeed_output(&mut replace);
    let log = bench.lab.workspace().join("endless.log");
    let mut process = Process::start(bench.session("endless").arg("--preflight"), &log);
    let mut peak = 0;
    eventually("the checks to end", 150, || {
        let is_running = process.is_running();
        if is_running {
            peak = process.peak_kib().max(peak);
        }
        !is_running
    });
    let words = process.output();
    assert!(words.contains("FAIL  director"), "{words}");
    assert!(
        words.len() < 100_000 && peak < 500 << 10,
        "{peak} KiB: {} bytes",
        words.len()
    );
}

/// Ctrl-C ends everything, and is the recorded reason.
pub(crate) fn a_command_that_is_interrupted(bench: &Bench) {
    bench.add_meter("interrupted", bench.director.port, "");
    let (mut process, id) = bench.begin("interrupted");
    let killed = Command::new("kill")
        .args(["-INT", &process.id().to_string()])
        .status();
    assert!(killed.expect("kill starts").success());
    bench.expect_failure("interrupted", &mut process, &id, "it was interrupted");
}

pub(crate) fn a_device_that_is_lost(bench: &mut Bench) {
    bench.add_meter("lost", bench.director.port, "");
    let (mut process, id) = bench.begin_of("lost", DEVICE, bench.device.port);
    bench.lab.device = None;
    bench.expect_failure("lost", &mut process, &id, "agent was offline for 30 s");
}

/// The workspace cannot take the session's files. They stay on the device until they are fetched, and nothing is measured again.
pub(crate) fn a_session_whose_files_stay_on_the_device(bench: &Bench) {
    bench.add_meter("unfetched", bench.director.port, "");
    let (mut process, id) = bench.begin("unfetched");
    let place = bench.lab.workspace().join("power").join(&id).join("session");
    fs::write(&place, "no directory").expect("the session's directory");
    bench.expect_failure("unfetched", &mut process, &id, "could not be fetched");
    let fetch = || {
        let mut command = bench.regatta();
        command.args(["power", "fetch", &id, "--format", "json"]);
        command.arg("--identity").arg(bench.device.key());
        command.args(["--accept-host-key", &bench.device.fingerprint()]);
        command.output().expect("regatta starts")
    };
    let refused = fetch();
    assert!(!refused.status.success(), "{}", printed(&refused));
    fs::remove_file(&place).expect("the file");
    let on_device = bench
        .device
        .home()
        .join(format!("regatta-power/{id}-device/session"));
    let refused = |expected: &str| {
        let words = printed(&fetch());
        assert!(words.contains(expected), "{expected}: {words}");
    };
    let link = on_device.join("link");
    symlink("/etc/hostname", &link).expect("a link");
    refused("session/link is neither a file nor a directory");
    fs::remove_file(link).expect("the link");
    let foreign = on_device.join(SENT_AS_FOREIGN);
    fs::write(&foreign, "not for this place").expect("a file of the session");
    refused("invalid file name `../../evil`");
    assert!(!bench.lab.workspace().join("power/evil").exists());
    fs::remove_file(foreign).expect("the file");
    let fetched = fetch();
    assert!(fetched.status.success(), "{}", printed(&fetched));
    let record = json(&fetched);
    assert_eq!(record["verdict"], "rehearsal", "{record}");
    assert_eq!(record["official_summary"], "11 of 11 checks passed", "{record}");
    let row = bench.newest("unfetched").expect("a session");
    assert!(row["verdict"] == "rehearsal" && row["reason"].is_null(), "{row}");
    let again = printed(&fetch());
    assert!(again.contains("no files that wait on a device"), "{again}");
}
