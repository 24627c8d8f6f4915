//! Tests of power sessions whose PTDaemon hangs: it accepts connections, and does not answer from some point on. They check the user's messages, the
//! exit code and the remains. They use the official client and server in a network namespace, because these only use NTP's port 123.

#![expect(clippy::expect_used, reason = "test code")]

use std::{fs, net::SocketAddr, path::Path, process::Output, thread};

use regatta_power::ntp;
use regatta_tests::{
    Broker, Lab, network_namespace, power_dev,
    power_sessions::{add_meter_and_device, processes, session, sessions},
    printed,
};
use serde_json::Value;

/// A PTDaemon that accepts connections and never answers.
const MUTE: &str = "\
import socket, sys, time
port = int(sys.argv[sys.argv.index('-p') + 1])
listener = socket.create_server(('127.0.0.1', port))
time.sleep(600)
";

const OUTPUT_HINT: &str = "see server-output.txt and client-output.txt in the session's directory";

#[test]
fn hung_ptdaemon_is_named_and_leaves_nothing() {
    let Some(power_dev) = power_dev() else { return };
    if !network_namespace::continues_inside("hung_ptdaemon_is_named_and_leaves_nothing") {
        return;
    }
    ntp::answer_requests(SocketAddr::from(([127, 0, 0, 1], ntp::PORT))).expect("the namespace's port 123");
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    lab.start_coordinator();
    let (lab, power_dev) = (&lab, power_dev.as_path());
    thread::scope(|scope| {
        let parts = [
            scope.spawn(move || before_the_session(lab, power_dev)),
            scope.spawn(move || at_its_start(lab, power_dev)),
            scope.spawn(move || in_testing(lab, power_dev)),
        ];
        for part in parts {
            part.join().expect("this part of the test holds");
        }
    });
    let meters = lab.json(&["meter", "list"]);
    let meters = meters["meters"].as_array().expect("a list");
    assert!(meters.iter().all(|meter| meter["lease"].is_null()), "{meters:?}");
    let name = lab.workspace().display().to_string();
    let is_left = |line: &str| line.contains(&name) && !line.contains(" serve");
    let left = processes(is_left);
    assert!(left.is_empty(), "{left:?}");
}

/// Replaces PTDaemon with a mute one from its n-th start on; the first start is 1.
fn mute_from_start(lab: &Lab, meter: &str, start: u32) {
    let program = lab.workspace().join(format!("ptd-{meter}"));
    let simulated = fs::read_to_string(&program).expect("PTDaemon's program");
    fs::write(program.with_extension("py"), MUTE).expect("a program");
    let script = format!(
        "#!/bin/sh\necho >>$0.starts\n[ $(wc -l <$0.starts) -ge {start} ] && exec python3 $0.py \"$@\"\n{}",
        simulated.trim_start_matches("#!/bin/sh\n")
    );
    fs::write(&program, script).expect("PTDaemon's program");
}

/// The checks before a session read the meter.
fn before_the_session(lab: &Lab, power_dev: &Path) {
    add_meter_and_device(lab, power_dev, "mute", "");
    mute_from_start(lab, "mute", 1);
    let output = session(lab, "mute").output().expect("regatta starts");
    let words = printed(&output);
    let expected = "FAIL  meter reading: PTDaemon has not answered Hello within 20 s (its last line: it printed nothing)\n      \
                    hint: switch the meter on, and check its cable, device type, interface and device port\n";
    let end = "regatta: a session cannot succeed: see the lines above; nothing was started\n";
    assert!(words.contains(expected) && words.ends_with(end), "{words}");
    assert_eq!(output.status.code(), Some(3), "{words}");
    assert!(sessions(lab, "mute").is_empty());
}

/// PTDaemon answers during the checks, and hangs from its next start.
fn at_its_start(lab: &Lab, power_dev: &Path) {
    add_meter_and_device(lab, power_dev, "later", "");
    mute_from_start(lab, "later", 2);
    let output = session(lab, "later").output().expect("regatta starts");
    // PTDaemon never reported that it is a simulation.
    expect_failure(
        lab,
        "later",
        &output,
        "failed",
        "the session has failed while starting the server and PTDaemon: the server has made no progress for 40 s; PTDaemon is not responding",
    );
}

/// PTDaemon works during ranging. During testing it returns one sample, and then ignores all commands.
fn in_testing(lab: &Lab, power_dev: &Path) {
    add_meter_and_device(lab, power_dev, "testing", "--fault stall=testing:1");
    let output = session(lab, "testing").output().expect("regatta starts");
    expect_failure(
        lab,
        "testing",
        &output,
        "failed (rehearsal)",
        "the session has failed while testing: the meter settles for 10 s and is read: client and server have made no progress for 40 s; PTDaemon is not responding",
    );
}

/// Checks that a session ended with this reason in the command's output, in its record and in the list.
fn expect_failure(lab: &Lab, meter: &str, output: &Output, result: &str, reason: &str) {
    let words = printed(output);
    let row = sessions(lab, meter).remove(0);
    let id = row["session"].as_str().expect("an id");
    let shown = format!("session {id}: {result}\n  {reason}\n    {OUTPUT_HINT}\n");
    assert!(words.contains(&shown), "{words}");
    assert_eq!(output.status.code(), Some(1), "{words}");
    let recorded = format!("{reason}\n  {OUTPUT_HINT}");
    assert_eq!(
        (&row["verdict"], row["reason"].as_str()),
        (&Value::Null, Some(recorded.as_str()))
    );
    let record = &lab.json(&["power", "show", id])["record"];
    assert_eq!(record["failure"]["cause"], "infrastructure", "{record}");
    let left = processes(|line| line.contains(id));
    assert!(left.is_empty(), "{left:?}");
}
