//! Tests with forged power sessions that the official checker accepts: `power check`, `submission stage` and the verdict of `power run` must name the
//! contradiction. The sessions are made with the official client and server in a network namespace, because these only use NTP's port 123.

#![expect(clippy::expect_used, clippy::panic, reason = "test code")]

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
};

use regatta_power::ntp;
use regatta_tests::{
    Broker, Lab, network_namespace, power_dev,
    power_sessions::{add_meter, run_session_of, sessions, write_simulated_ptd},
    printed, regatta, succeed_output,
};
use serde_json::Value;

/// The last round with submitted power results.
const ROUND: &str = "v5.1";

/// The forgeries of `power_forgery.py`, each with the expected finding.
const FORGERIES: [(&str, &str); 10] = [
    (
        "device-type",
        "power/server.json: PTDaemon read a YokogawaWT310E, which is device type 49, and the configuration has 8",
    ),
    (
        "changed",
        "samples differ from their copies in power/ptd_logs.txt",
    ),
    (
        "shifted",
        "samples differ from their copies in power/ptd_logs.txt",
    ),
    (
        "dropped",
        "samples are missing that power/ptd_logs.txt has copies of",
    ),
    (
        "zero",
        "run_1/spl.txt: 1 samples of the run's window are not above 0 W",
    ),
    (
        "negative",
        "run_1/spl.txt: 1 samples of the run's window are not above 0 W",
    ),
    (
        "nan",
        "run_1/spl.txt: 1 samples of the run's window are not above 0 W",
    ),
    ("marks", "samples of the run's window have another mark than"),
    (
        "cut-log",
        "before the end of the testing run: what PTDaemon reported then is missing",
    ),
    ("half", "samples in a window of 12 s"),
];

/// Returns the path of the script that forges sessions.
fn forger() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/power_forgery.py")
}

#[test]
fn forged_sessions_are_found_by_check_stage_and_verdict() {
    let Some(power_dev) = power_dev() else { return };
    if !network_namespace::continues_inside("forged_sessions_are_found_by_check_stage_and_verdict") {
        return;
    }
    ntp::answer_requests(SocketAddr::from(([127, 0, 0, 1], ntp::PORT))).expect("the namespace's port 123");
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    lab.start_coordinator();
    let (lab, power_dev) = (&lab, power_dev.as_path());
    let record = thread::scope(|scope| {
        let honest = scope.spawn(move || honest_session(lab, power_dev));
        let forged: Vec<_> = FORGERIES
            .iter()
            .map(|(kind, finding)| scope.spawn(move || found_by_the_verdict(lab, power_dev, kind, finding)))
            .collect();
        for session in forged {
            session.join().expect("this part of the test holds");
        }
        honest.join().expect("this part of the test holds")
    });
    let runs = [
        record["runs"]["testing"].as_str().expect("a run").to_owned(),
        accuracy_run(lab),
    ];
    let honest = PathBuf::from(record["directory"].as_str().expect("a directory"));
    expect_nothing_found(lab, power_dev, &honest, &runs);
    for (kind, finding) in FORGERIES {
        let forged = lab.workspace().join(format!("forged-{kind}"));
        let _ = succeed_output(Command::new("cp").arg("-r").arg(&honest).arg(&forged));
        let _ = succeed_output(Command::new("python3").arg(forger()).arg(kind).arg(&forged));
        found_by_check(lab, power_dev, &forged, finding);
        found_by_stage(lab, &forged, &runs, finding);
    }
}

/// Makes a session with a new meter and device of this name. The official programs and the checker run with `python`.
fn make_session(lab: &Lab, power_dev: &Path, name: &str, python: &str) -> (Output, Value) {
    let program = lab.workspace().join(format!("ptd-{name}"));
    write_simulated_ptd(&program, &regatta(), "");
    lab.add_device(name);
    let added = add_meter(&mut lab.regatta(), name, power_dev, &program)
        .args(["--python", python])
        .output()
        .expect("regatta starts");
    assert!(added.status.success(), "{}", printed(&added));
    let mut command = lab.regatta();
    run_session_of(&mut command, name, "12s").args(["--device", name, "--round", ROUND, "--format", "json"]);
    let output = command.output().expect("regatta starts");
    let document: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", printed(&output)));
    let record = document["sessions"][0].clone();
    assert_eq!(record["official_summary"], "11 of 11 checks passed", "{record}");
    (output, record)
}

fn honest_session(lab: &Lab, power_dev: &Path) -> Value {
    let (output, record) = make_session(lab, power_dev, "honest", "python3");
    assert!(output.status.success(), "{}", printed(&output));
    assert_eq!(record["verdict"], "rehearsal", "{record}");
    record
}

/// The Python that runs the official checker forges the session on disk before it is judged.
fn found_by_the_verdict(lab: &Lab, power_dev: &Path, kind: &str, finding: &str) {
    let python = lab.workspace().join(format!("python-{kind}"));
    let text = format!(
        "#!/bin/sh\ncase $1 in */compliance/check.py) python3 {} {kind} \"$2\" || exit 1 ;; esac\nexec python3 \"$@\"\n",
        forger().display()
    );
    fs::write(&python, text).expect("a program");
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).expect("a program");
    let (output, record) = make_session(lab, power_dev, kind, python.to_str().expect("UTF-8"));
    assert_eq!(output.status.code(), Some(1), "{kind}: {}", printed(&output));
    assert_eq!(record["verdict"], "fail", "{kind}: {record}");
    let findings = record["findings"].as_array().expect("a list");
    let is_found = findings
        .iter()
        .any(|found| found.as_str().is_some_and(|found| found.contains(finding)));
    assert!(is_found, "{kind}: {record}");
    let row = sessions(lab, kind).remove(0);
    assert_eq!(row["verdict"], "fail", "{row}");
    // Refer to the session by its id, by its directory, and by a copy with its record.
    let id = row["session"].as_str().expect("an id");
    let directory = record["directory"].as_str().expect("a directory");
    let copy = lab.workspace().join(format!("copy-{kind}"));
    let own = lab.workspace().join("power").join(id);
    let _ = succeed_output(Command::new("cp").arg("-r").arg(own).arg(&copy));
    let copied = copy.join("session");
    for session in [id, directory, copied.to_str().expect("UTF-8")] {
        let words = printed(&stage(lab, session, &[], "refused"));
        let refusal = format!("power session {id} is complete, and a checker refuses it");
        assert!(words.contains(&refusal), "{kind}, {session}: {words}");
    }
}

fn accuracy_run(lab: &Lab) -> String {
    let mut measure = lab.regatta();
    measure.args([
        "run",
        "--benchmark",
        "digits",
        "--scenario",
        "SingleStream",
        "--engine",
        "tract",
    ]);
    measure.args([
        "--device",
        "honest",
        "--mode",
        "AccuracyOnly",
        "--round",
        ROUND,
        "--format",
        "json",
    ]);
    let accuracy: Value = serde_json::from_slice(&succeed_output(&mut measure).stdout).expect("JSON");
    accuracy["runs"][0]["run"].as_str().expect("a run").to_owned()
}

/// Stages runs with a session. `kind` is `--rehearsal`, or the name of a submission's tree.
fn stage(lab: &Lab, session: &str, runs: &[String], kind: &str) -> Output {
    let mut stage = lab.regatta();
    stage.args(["submission", "stage", "--version", ROUND, "--power", session]);
    match kind {
        "--rehearsal" => {
            let tree = lab.workspace().join("rehearsed");
            let _ = fs::remove_dir_all(&tree);
            stage.arg(kind).arg("--output").arg(tree)
        }
        tree => stage.args(["--division", "open", "--output", tree]),
    };
    for run in runs {
        stage.args(["--run", run]);
    }
    stage.output().expect("regatta starts")
}

fn check(lab: &Lab, session: &Path, more: &[&str]) -> Output {
    let mut command = lab.regatta();
    command
        .args(["power", "check", "--version", ROUND])
        .args(more)
        .arg(session);
    command.output().expect("regatta starts")
}

/// Checks that the official program accepts a session, forged or not.
fn accepted_officially(power_dev: &Path, session: &Path) {
    let mut official = Command::new("python3");
    official
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(power_dev.join("compliance/check.py"));
    let _ = succeed_output(official.arg(session));
}

fn expect_nothing_found(lab: &Lab, power_dev: &Path, session: &Path, runs: &[String]) {
    accepted_officially(power_dev, session);
    let words = printed(&check(lab, session, &[]));
    assert!(
        words.contains("All checks passed") && !words.contains("[ ]"),
        "{words}"
    );
    let staged = stage(lab, session.to_str().expect("UTF-8"), runs, "--rehearsal");
    let words = printed(&staged);
    assert!(staged.status.success(), "{words}");
    for (_, finding) in FORGERIES {
        assert!(!words.contains(finding), "{words}");
    }
}

fn found_by_check(lab: &Lab, power_dev: &Path, forged: &Path, finding: &str) {
    accepted_officially(power_dev, forged);
    let official = check(lab, forged, &["--as-official"]);
    assert!(official.status.success(), "{}", printed(&official));
    let checked = check(lab, forged, &[]);
    let words = printed(&checked);
    assert_eq!(checked.status.code(), Some(1), "{words}");
    assert!(
        words.contains("[ ] Not checked officially")
            && words.contains(finding)
            && words.contains("Not all checks passed"),
        "{words}"
    );
}

/// Checks that a submission is refused, and that a rehearsal reports the same finding.
fn found_by_stage(lab: &Lab, forged: &Path, runs: &[String], finding: &str) {
    let forged = forged.to_str().expect("UTF-8");
    let submission = stage(lab, forged, runs, "submission");
    let words = printed(&submission);
    assert!(!submission.status.success() && words.contains(finding), "{words}");
    assert!(
        words.contains("repeat the session; see `regatta power check"),
        "{words}"
    );
    let rehearsal = stage(lab, forged, runs, "--rehearsal");
    let words = printed(&rehearsal);
    assert!(rehearsal.status.success() && words.contains(finding), "{words}");
}
