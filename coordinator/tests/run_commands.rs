//! Tests of commands about runs over the real coordinator: selecting, naming and ending them.

#![expect(clippy::unwrap_used, reason = "test code")]

mod support;

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _},
    process::{Command as Process, Output, Stdio},
};

use regatta_types::{RunId, documents::RunPhase};
use regatta_wire::message::Command;
use rustix::process::{Pid, Signal, kill_process};
use support::{
    Dice,
    coordinator::Coordinator,
    delivering::{Faults, SUMMARY, VALID},
    device::SimulatedDevice,
    eventually,
    mosquitto::Mosquitto,
};

/// A run for which the device must be named, and the settings.
const OFFLINE: [&str; 7] = [
    "run",
    "--benchmark",
    "digits",
    "--scenario",
    "Offline",
    "--engine",
    "null",
];

fn printed(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn with_device() -> (Coordinator, SimulatedDevice) {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let device = coordinator.join(1);
    (coordinator, device)
}

#[test]
fn runs_are_selected_and_the_last_has_a_name() {
    let coordinator = Coordinator::with_a_known_device();
    let requested: Vec<String> = (0..3)
        .map(|_| coordinator.request_run("PerformanceOnly"))
        .collect();
    let accuracy = coordinator.request_run("AccuracyOnly");
    assert_eq!(coordinator.show("last")["run"], accuracy);
    assert!(coordinator.output(&["runs", "abort", "last"]).status.success());

    let list = |flags: &[&str]| {
        let (code, text, errors) = printed(&coordinator.output(&[&["runs", "list"], flags].concat()));
        assert_eq!(code, Some(0), "{errors}");
        let column = text
            .lines()
            .skip(1)
            .map(|line| line.split(',').next().unwrap().to_owned());
        (column.collect::<Vec<_>>(), errors)
    };
    let (all, _) = list(&["--format", "csv"]);
    assert_eq!(
        all,
        [&requested[..], std::slice::from_ref(&accuracy)].concat(),
        "the newest last"
    );
    assert_eq!(
        list(&["--format", "csv", "--verdict", "aborted"]).0,
        [accuracy.as_str()]
    );
    let open = list(&[
        "--format",
        "csv",
        "--verdict",
        "OPEN",
        "-n",
        "2",
        "--scenario",
        "offline",
    ]);
    assert_eq!(open.0, requested[1..]);
    assert!(
        open.1.contains("1 older runs are not listed; `-n 0` lists all"),
        "{}",
        open.1
    );
    let (nothing, _) = list(&[
        "--format",
        "csv",
        "--since",
        "2030-01-01",
        "--benchmark",
        "digits",
    ]);
    assert!(nothing.is_empty(), "{nothing:?}");
    for (flags, words) in [
        (["--device", "boatt"], "unknown device `boatt`; known are"),
        (["--benchmark", "digitz"], "unknown benchmark `digitz`"),
        (["--since", "soon"], "such as 90m, 2h or 7d"),
    ] {
        let (code, _, errors) = printed(&coordinator.output(&[&["runs", "list"], &flags[..]].concat()));
        assert!(code == Some(2) && errors.contains(words), "{flags:?}: {errors}");
    }
}

#[test]
fn a_benchmark_of_the_endpoints_harness_is_refused_with_the_command_that_measures_it() {
    let (coordinator, _device) = with_device();
    for words in [
        "run --device simulated --scenario Offline --benchmark qwen3.6-27b",
        "benchmark prepare qwen3.6-27b",
        "prep qwen3.6-27b",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let (code, _, errors) = printed(&coordinator.output(&words));
        assert_eq!(code, Some(2), "{words:?}: {errors}");
        for part in [
            "qwen3.6-27b is measured by the client of the endpoints harness, and LoadGen does not run it",
            "`regatta endpoints run --benchmark qwen3.6-27b",
        ] {
            assert!(errors.contains(part), "{part} of {words:?}: {errors}");
        }
    }
}

#[test]
fn giving_up_a_file_that_never_arrives_lets_the_next_run_begin() {
    let (coordinator, mut device) = with_device();
    let requested = coordinator.request_run("PerformanceOnly");
    let next = coordinator.request_run("AccuracyOnly");
    let (run, _) = device.next_start();
    device.tell(run, RunPhase::Running, &[]);
    eventually("the run", 30, || {
        (coordinator.show(&requested)["phase"] == "running").then_some(())
    });
    let (code, _, errors) = printed(&coordinator.output(&["runs", "give-up", &requested, "--yes"]));
    assert!(code == Some(2) && errors.contains("runs abort"), "{errors}");

    device.tell(run, RunPhase::Draining, &["mlperf_log_detail.txt"]);
    eventually("the end", 30, || {
        (coordinator.show(&requested)["phase"] == "draining").then_some(())
    });
    let (code, _, errors) = printed(&coordinator.output(&["runs", "give-up", &requested]));
    assert!(
        code == Some(2) && errors.contains("confirm with --yes"),
        "{errors}"
    );
    let (code, text, errors) = printed(&coordinator.output(&["runs", "give-up", &requested, "--yes"]));
    assert!(code == Some(0) && text.contains("is given up"), "{text}{errors}");
    assert_eq!(device.next_start().0.to_string(), next, "the device's next run");
    let record = coordinator.record(&requested);
    let reason = record["state"]["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("given up by the user: mlperf_log_detail.txt"),
        "{reason}"
    );
    // The device still has it, and it stays given up.
    device.say_inventory(1, &[run]);
    device.tell(run, RunPhase::Draining, &["mlperf_log_detail.txt"]);
    let (code, _, errors) = printed(&coordinator.output(&["runs", "wait", &requested]));
    assert_eq!(code, Some(1), "{errors}");
    // Its device keeps the file, which a removal must not hide.
    let (code, _, errors) = printed(&coordinator.output(&["runs", "remove", &requested, "--yes"]));
    assert!(
        code == Some(2) && errors.contains("its device may still have them"),
        "{errors}"
    );
    let (_, _, errors) = printed(&coordinator.output(&["runs", "remove", &requested, "--force"]));
    assert!(errors.contains("here, not on their devices although"), "{errors}");
    let removed = coordinator.json(&["runs", "remove", &requested, "--yes", "--force"]);
    assert_eq!(removed["left_on_devices"][0], requested.as_str());
    assert!(!coordinator.path(&format!("runs/{requested}")).exists());
}

#[test]
fn a_run_abandoned_while_its_device_cannot_be_informed_is_aborted_before_the_next_begins() {
    let (mut coordinator, mut device) = with_device();
    let requested = coordinator.request_run("PerformanceOnly");
    let next = coordinator.request_run("AccuracyOnly");
    let (run, _) = device.next_start();
    device.tell(run, RunPhase::Running, &[]);
    eventually("the run", 30, || {
        (coordinator.show(&requested)["phase"] == "running").then_some(())
    });
    coordinator.kill();
    let (_, _, errors) = printed(&coordinator.output(&["runs", "give-up", &requested]));
    assert!(
        errors.contains("simulated cannot be informed now (no coordinator serves this workspace)"),
        "{errors}"
    );
    let abandoned = coordinator.json(&["runs", "give-up", &requested, "--yes"]);
    assert_eq!(abandoned["abort_pending"][0], requested.as_str());
    let remove = ["runs", "remove", &requested, "--yes", "--force"];
    let (code, _, errors) = printed(&coordinator.output(&remove));
    assert!(
        code == Some(2) && errors.contains("has ended, but is not recorded yet"),
        "{errors}"
    );
    coordinator.serve();
    device.say_hello(vec![run]);
    device.wait_for_command(run, |command| matches!(command, Command::Abort { .. }));
    assert_eq!(coordinator.show(&requested)["abort_pending"], true);
    coordinator.record(&requested);
    let (code, _, errors) = printed(&coordinator.output(&remove));
    assert!(
        code == Some(2) && errors.contains("may still execute on simulated"),
        "{errors}"
    );
    assert!(
        !coordinator.path(&format!("runs/{next}/spec.json")).exists(),
        "the next run was not sent"
    );
    device.tell(run, RunPhase::Aborted, &[]);
    assert_eq!(device.next_start().0.to_string(), next);
    assert_eq!(coordinator.show(&requested)["abort_pending"], false);
}

#[test]
fn a_drain_that_waits_says_once_that_its_device_is_offline_and_what_ends_the_wait() {
    let (mut coordinator, mut device) = with_device();
    let requested = coordinator.request_run("PerformanceOnly");
    let (run, _) = device.next_start();
    device.tell(run, RunPhase::Running, &[]);
    eventually("the run", 30, || {
        (coordinator.show(&requested)["phase"] == "running").then_some(())
    });
    coordinator.kill();
    let mut waiting = coordinator
        .regatta(&["device", "drain", "simulated", "--wait"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = BufReader::new(waiting.stderr.take().unwrap());
    let mut text = String::new();
    let mut read_until = |part: &str| {
        while !text.contains(part) {
            assert!(errors.read_line(&mut text).unwrap() > 0, "{part}: {text}");
        }
    };
    read_until("no coordinator serves this workspace");
    // A coordinator that starts has heard of no device.
    coordinator.serve();
    read_until("simulated is offline, last seen");
    read_until(&format!("runs give-up {requested}"));
    let _ = coordinator.json(&["runs", "give-up", &requested, "--yes"]);
    assert!(waiting.wait().unwrap().success());
    errors.read_to_string(&mut text).unwrap();
    for part in ["no coordinator serves", "is offline", "runs give-up"] {
        assert_eq!(text.matches(part).count(), 1, "{part}: {text}");
    }
}

#[test]
fn an_interrupted_removal_is_undone_by_the_next_command_and_by_the_daemon() {
    let (mut coordinator, mut device) = with_device();
    let runs: Vec<String> = (0..2)
        .map(|_| {
            let requested = coordinator.request_run("PerformanceOnly");
            device.play(Faults::default(), &mut Dice::new(1));
            coordinator.record(&requested);
            requested
        })
        .collect();
    let dir = coordinator.path(&format!("runs/{}", runs[0]));
    // Its rows are still there, so the removal ended between the rename and them.
    let interrupt = || std::fs::rename(&dir, dir.with_extension("removed")).unwrap();
    interrupt();
    coordinator.json(&["runs", "remove", &runs[1], "--yes"]);
    assert!(dir.join("record.json").exists());
    interrupt();
    coordinator.kill();
    coordinator.serve();
    assert!(dir.join("record.json").exists());
    assert!(coordinator.output(&["runs", "verify", &runs[0]]).status.success());
}

#[test]
fn a_run_without_a_valid_signature_is_only_removed_by_force_and_stays_on_its_device() {
    let (coordinator, mut device) = with_device();
    let requested = coordinator.request_run("PerformanceOnly");
    let (run, spec_json) = device.next_start();
    device.tell(run, RunPhase::Running, &[]);
    let mut files = BTreeMap::from([(SUMMARY.to_owned(), VALID.to_vec())]);
    device.seal(run, &spec_json, &mut files);
    files.insert("evidence.sig".to_owned(), "00".repeat(64).into_bytes());
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    device.tell(run, RunPhase::Draining, &names);
    device.deliver(run, &files, Faults::default(), &mut Dice::new(1), |_| {});
    device.tell(run, RunPhase::Done, &names);
    assert_eq!(coordinator.record(&requested)["delivery"]["complete"], true);
    let (code, _, errors) = printed(&coordinator.output(&["runs", "remove", "last", "--yes"]));
    assert!(
        code == Some(2) && errors.contains("no valid signature"),
        "{errors}"
    );
    let (code, text, errors) = printed(&coordinator.output(&["runs", "remove", "last", "--yes", "--force"]));
    assert!(
        code == Some(0)
            && text.contains("devices keep their copies of 1 run")
            && !text.contains("remove their"),
        "{text}{errors}"
    );
}

#[test]
fn a_removed_run_is_forgotten_by_its_device_too() {
    let (coordinator, mut device) = with_device();
    let requested = coordinator.request_run("PerformanceOnly");
    let (run, _) = device.play(Faults::default(), &mut Dice::new(1));
    coordinator.record(&requested);
    let (code, _, errors) = printed(&coordinator.output(&["runs", "remove", "last"]));
    assert!(code == Some(2) && errors.contains("Remove 1 run"), "{errors}");
    let dry = coordinator.json(&["runs", "prune", "--older-than", "1ms", "--dry-run"]);
    assert_eq!(dry["removed"][0], requested.as_str());
    assert!(
        coordinator.json(&["runs", "prune", "--failed"])["removed"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    let removed = coordinator.json(&["runs", "remove", "last", "--yes"]);
    assert_eq!(removed["removed"][0], requested.as_str());
    assert!(!coordinator.path(&format!("runs/{requested}")).exists());
    device.wait_for_command(run, |command| *command == Command::Forget);
    // A device that missed the command gets it again.
    device.say_inventory(1, &[run]);
    device.wait_for_command(run, |command| *command == Command::Forget);
    let left = coordinator.json(&["runs", "list"]);
    assert!(left["runs"].as_array().unwrap().is_empty(), "{left}");
}

#[test]
fn runs_go_to_every_named_device_or_to_none() {
    let (coordinator, one) = with_device();
    let two = coordinator.join(2);
    let request = |devices: &[&str], more: &[&str]| {
        let flags: Vec<&str> = devices.iter().flat_map(|device| ["--device", device]).collect();
        let run = [
            "run",
            "--benchmark",
            "digits",
            "--scenario",
            "offline",
            "--engine",
            "null",
            "--no-wait",
        ];
        [&run[..], &flags, more]
            .concat()
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let json = |words: Vec<String>| coordinator.json(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let dry = json(request(&["all"], &["--repeat", "2", "--dry-run"]));
    assert_eq!(dry["specs"].as_array().map(Vec::len), Some(4));
    let wrong = request(&[&format!("{},boat-9", one.id)], &[]);
    let (code, _, errors) = printed(&coordinator.regatta(&[]).args(&wrong).output().unwrap());
    assert!(
        code == Some(2) && errors.contains("unknown device `boat-9`"),
        "{errors}"
    );
    assert_eq!(
        coordinator.json(&["runs", "list"])["runs"]
            .as_array()
            .map(Vec::len),
        Some(0),
        "nothing was queued"
    );
    let both = format!("{},{}", one.id, two.id);
    let requested = json(request(&[&both, one.id.as_str()], &[]));
    let devices: Vec<&str> = requested["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["device"].as_str().unwrap())
        .collect();
    assert_eq!(devices, [one.id.as_str(), two.id.as_str()]);

    // The devices of a plan are replaced.
    let plan = coordinator.path("plan.toml");
    let text = "schema = 1\n[[run]]\ndevice = 'nobody'\nbenchmark = 'digits'\nscenario = ['Offline']\nengine = 'null'\n";
    std::fs::write(&plan, text).unwrap();
    let planned = coordinator.json(&[
        "run",
        plan.to_str().unwrap(),
        "--device",
        two.id.as_str(),
        "--dry-run",
    ]);
    assert_eq!(planned["specs"][0]["device"], two.id.as_str());
}

#[test]
fn labels_select_devices_and_their_runs() {
    let (coordinator, one) = with_device();
    let two = coordinator.join(2);
    let label = |words: &[&str]| printed(&coordinator.output(&[&["device", "label"], words].concat()));
    let refusal = |words: &[&str]| {
        let (code, _, errors) = printed(&coordinator.output(words));
        assert_eq!(code, Some(2), "{errors}");
        errors
    };
    let run = |more: &[&'static str]| [&OFFLINE[..], more].concat();
    let hint = refusal(&run(&["--device-label", "edge"]));
    assert!(
        hint.contains("no device has the label `edge`, or any other label"),
        "{hint}"
    );
    // The suggestion can be pasted, once NAME is a device.
    let suggested = hint
        .split('`')
        .find_map(|part| part.strip_prefix("regatta "))
        .unwrap();
    let pasted = suggested.replace("NAME", one.id.as_str());
    let program = env!("CARGO_BIN_EXE_regatta");
    let output = Process::new("sh")
        .args(["-c", &format!("{program} {pasted}")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{pasted}: {output:?}");

    let changed = coordinator.json(&["device", "label", two.id.as_str(), "+lab-2", "+edge"]);
    assert_eq!(changed["labels"], serde_json::json!(["edge", "lab-2"]));
    let changed = coordinator.json(&["device", "label", two.id.as_str(), "-edge"]);
    assert_eq!(changed["labels"], serde_json::json!(["lab-2"]));
    assert_eq!(
        coordinator.json(&["device", "show", one.id.as_str()])["labels"][0],
        "edge"
    );
    let (_, listed, _) = printed(&coordinator.output(&["device", "list"]));
    assert!(listed.contains("labels") && listed.contains("lab-2"), "{listed}");

    let specs = |more: &[&'static str]| {
        let document = coordinator.json(&run(&[more, &["--dry-run"]].concat()));
        let specs = document["specs"].as_array().unwrap().clone();
        let device = |spec: &serde_json::Value| spec["device"].as_str().unwrap().to_owned();
        specs.iter().map(device).collect::<Vec<_>>()
    };
    assert_eq!(specs(&["--device-label", "edge"]), [one.id.to_string()]);
    assert_eq!(specs(&["--device-label", "lab-2", "--device", "all"]).len(), 2);
    let errors = refusal(&run(&["--device-label", "edge,fast"]));
    assert!(
        errors.contains("no device has the label `fast`; known are edge, lab-2"),
        "{errors}"
    );
    coordinator.json(&run(&["--device-label", "lab-2", "--no-wait"]));
    let listed = |label: &str| {
        let document = coordinator.json(&["runs", "list", "--device-label", label]);
        document["runs"].as_array().unwrap().len()
    };
    assert_eq!((listed("edge"), listed("lab-2")), (0, 1));
    for (words, expected) in [
        (
            &[one.id.as_str(), "edge"][..],
            "`edge` begins with neither + nor -",
        ),
        (&[one.id.as_str(), "+Edge"], "`Edge` is not a label"),
        (&[one.id.as_str(), "+a", "-a"], "both added and removed"),
        (&[one.id.as_str(), "-fast"], "has no label `fast`; it has edge"),
        (&["nobody", "+a"], "unknown device `nobody`"),
    ] {
        let (code, _, errors) = label(words);
        assert!(
            code == Some(2) && errors.contains(expected),
            "{words:?}: {errors}"
        );
    }
}

#[test]
fn suggested_commands_name_the_workspace_and_can_be_pasted() {
    let (coordinator, _one) = with_device();
    let _two = coordinator.join(2);
    let program = env!("CARGO_BIN_EXE_regatta");
    for words in [
        &["runs", "show", "abcdef"][..],
        &["runs", "watch", "nothing"],
        &["device", "show", "simulated"],
        &[&OFFLINE[..], &["--set", "a=1"]].concat(),
    ] {
        let (code, _, errors) = printed(&coordinator.output(words));
        assert_eq!(code, Some(2), "{errors}");
        let mut quoted = errors.split('`');
        let suggested = quoted.find_map(|part| part.strip_prefix("regatta ")).unwrap();
        let output = Process::new("sh")
            .args(["-c", &format!("{program} {suggested}")])
            .current_dir("/")
            .output()
            .unwrap();
        assert!(output.status.success(), "{suggested}: {output:?}");
    }
}

#[test]
fn an_interrupted_run_goes_on_and_its_commands_can_be_pasted() {
    let (coordinator, mut device) = with_device();
    let mut waiting = coordinator
        .regatta(&[
            "run",
            "--benchmark",
            "digits",
            "--scenario",
            "Offline",
            "--engine",
            "null",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (run, _): (RunId, _) = device.next_start();
    device.tell(run, RunPhase::Running, &[]);
    let mut errors = BufReader::new(waiting.stderr.take().unwrap());
    let mut text = String::new();
    while !text.contains("running") {
        assert!(errors.read_line(&mut text).unwrap() > 0, "{text}");
    }
    kill_process(Pid::from_child(&waiting), Signal::INT).unwrap();
    assert_eq!(waiting.wait().unwrap().code(), Some(130));
    text.clear();
    errors.read_to_string(&mut text).unwrap();
    assert!(text.contains("1 run continues"), "{text}");
    let pasted = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("abort: regatta "))
        .unwrap();
    let program = env!("CARGO_BIN_EXE_regatta");
    let aborted = Process::new("sh")
        .args(["-c", &format!("{program} {pasted}")])
        .output()
        .unwrap();
    assert!(
        aborted.status.success(),
        "{}",
        String::from_utf8_lossy(&aborted.stderr)
    );
    device.wait_for_command(run, |command| matches!(command, Command::Abort { .. }));
}

#[test]
fn the_status_says_what_devices_do_and_what_needs_attention() {
    let (mut coordinator, mut device) = with_device();
    let status = |coordinator: &Coordinator| {
        let output = coordinator.output(&["status", "--format", "json"]);
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), document)
    };
    let (code, idle) = status(&coordinator);
    assert_eq!(
        (code, &idle["devices"][0]["state"]),
        (Some(0), &"idle".into()),
        "{idle}"
    );
    assert_eq!(idle["broker"]["connected"], true);
    // A wrong letter in a name would cost a visit at a board, also when it has no run.
    let removal = ["device", "remove", device.id.as_str()];
    let (code, _, errors) = printed(&coordinator.output(&removal));
    assert!(
        code == Some(2)
            && errors.contains("its key is refused for good")
            && errors.contains("without a run")
            && errors.contains("confirm with --yes"),
        "{errors}"
    );
    let (code, text, _) = printed(&coordinator.output(&[&removal[..], &["--dry-run"]].concat()));
    assert!(
        code == Some(0) && text.contains("would remove simulated ("),
        "{text}"
    );
    assert_eq!(
        coordinator.json(&["device", "list"])["devices"][0]["online"],
        true
    );
    coordinator.request_run("PerformanceOnly");
    coordinator.request_run("PerformanceOnly");
    let (run, _) = device.next_start();
    device.tell(run, RunPhase::Running, &[]);
    let busy = eventually("the run", 30, || {
        Some(status(&coordinator).1).filter(|found| found["devices"][0]["phase"] == "running")
    });
    assert_eq!(busy["devices"][0]["run"], run.to_string());
    assert_eq!(
        (&busy["devices"][0]["queued"], &busy["queued"]),
        (&1.into(), &1.into())
    );
    assert_eq!(
        coordinator.json(&["device", "list"])["devices"][0]["state"],
        "busy"
    );
    let (code, _, errors) = printed(&coordinator.output(&["device", "remove", device.id.as_str()]));
    assert!(
        code == Some(2) && errors.contains(&format!("{run} digits Offline PerformanceOnly: running")),
        "{errors}"
    );
    assert!(errors.contains("confirm with --yes"), "{errors}");
    coordinator.kill();
    let (code, stopped) = status(&coordinator);
    assert_eq!(
        (code, &stopped["coordinator"]["running"]),
        (Some(1), &false.into())
    );
    assert_eq!(stopped["devices"][0]["state"], "offline");
}

#[test]
fn a_waiting_run_says_that_the_broker_is_lost_and_its_device_with_it() {
    let Some(broker) = Mosquitto::start() else {
        return;
    };
    let mut coordinator = Coordinator::external(broker.port);
    coordinator.serve();
    let device = coordinator.join(1);
    let requested = coordinator.request_run("PerformanceOnly");
    device.next_start();
    let mut waiting = coordinator
        .regatta(&["runs", "watch", &requested])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(broker);
    let mut errors = BufReader::new(waiting.stderr.take().unwrap());
    let mut text = String::new();
    while !text.contains("the coordinator lost the broker") {
        assert!(errors.read_line(&mut text).unwrap() > 0, "{text}");
    }
    assert_eq!(
        coordinator.json(&["device", "list"])["devices"][0]["state"],
        "offline"
    );
    let status = coordinator.output(&["status"]);
    assert_eq!(status.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&status.stdout).contains("lost the broker mqtt://"),
        "{status:?}"
    );
    waiting.kill().unwrap();
    waiting.wait().unwrap();
}
