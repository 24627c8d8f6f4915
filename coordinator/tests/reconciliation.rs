//! Tests of coordinator and device after one of them was absent or dishonest: what counts, what is requested again, what is given
//! up.

#![expect(clippy::unwrap_used, reason = "test code")]

mod support;

use std::{collections::BTreeMap, process::Stdio, time::Duration};

use regatta_types::{RunId, documents::RunPhase};
use regatta_wire::{
    message::{Command, Examined, Message as _},
    topic::Leaf,
};
use support::{Dice, coordinator::Coordinator, delivering::Faults, device::SimulatedDevice, eventually};

fn with_device(seed: u8) -> (Coordinator, SimulatedDevice) {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let device = SimulatedDevice::connect(coordinator.port, seed);
    device.say_hello(Vec::new());
    eventually("the device", 30, || {
        coordinator.json(&["device", "list"])["devices"][0]["online"].as_bool()
    });
    (coordinator, device)
}

fn run_of(id: &str) -> RunId {
    id.parse().unwrap()
}

#[test]
fn a_run_is_sent_again_until_the_device_answers() {
    let (coordinator, device) = with_device(1);
    let requested = coordinator.request_run("PerformanceOnly");
    let (run, first) = device.next_start();
    assert_eq!(run.to_string(), requested);
    // The device does not answer and connects again: the same bytes are sent again.
    device.say_hello(Vec::new());
    let (again, second) = device.next_start();
    assert_eq!((again, second), (run, first));
    assert_eq!(coordinator.show(&requested)["phase"], "queued");
}

#[test]
fn device_gets_one_run_at_a_time() {
    let (coordinator, mut device) = with_device(1);
    let first = coordinator.request_run("AccuracyOnly");
    let second = coordinator.request_run("PerformanceOnly");
    let mut dice = Dice::new(3);
    assert_eq!(device.play(Faults::default(), &mut dice).0, run_of(&first));
    assert_eq!(device.play(Faults::default(), &mut dice).0, run_of(&second));
    assert_eq!(coordinator.record(&second)["delivery"]["complete"], true);
}

#[test]
fn a_run_that_its_device_has_lost_fails_with_the_reason() {
    let (coordinator, mut device) = with_device(1);
    let requested = coordinator.request_run("PerformanceOnly");
    let (run, _) = device.next_start();
    device.tell(run, RunPhase::Running, &[]);
    eventually("the state", 30, || {
        (coordinator.show(&requested)["phase"] == "running").then_some(())
    });
    // A device with a new disk and its old key. It may also be a copy of the device, so that this has to last.
    device.say_hello(Vec::new());
    let record = eventually("the run to be given up", 30, || {
        std::thread::sleep(Duration::from_secs(1));
        device.say_inventory(1, &[]);
        coordinator.show(&requested)["recorded"].as_str()?;
        Some(coordinator.record(&requested))
    });
    assert_eq!(record["state"]["phase"], "failed");
    assert!(
        record["state"]["reason"]
            .as_str()
            .unwrap()
            .contains("no longer has this run"),
        "{record:#}"
    );
    assert_eq!(record["delivery"]["complete"], false);

    // The agent has had the run all the time: it continues, and its record is made again.
    device.say_inventory(1, &[run]);
    let (again, spec_json) = device.next_start();
    assert_eq!(again, run);
    let mut files = BTreeMap::from([("run.log".to_owned(), b"log".to_vec())]);
    device.seal(run, &spec_json, &mut files);
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    device.tell(run, RunPhase::Draining, &names);
    device.deliver(run, &files, Faults::default(), &mut Dice::new(1), |_| {});
    device.tell(run, RunPhase::Done, &names);
    eventually("the complete record", 30, || {
        let recorded = coordinator.show(&requested)["recorded"].is_string();
        (recorded && coordinator.record(&requested)["delivery"]["complete"] == true).then_some(())
    });
    device.wait_for_command(run, |command| *command == Command::Release);
}

#[test]
fn a_list_that_is_cut_short_takes_no_run_away() {
    let (coordinator, mut device) = with_device(1);
    let requested = coordinator.request_run("PerformanceOnly");
    let (run, _) = device.next_start();
    device.tell(run, RunPhase::Running, &[]);
    eventually("the state", 30, || {
        (coordinator.show(&requested)["phase"] == "running").then_some(())
    });
    // As by an agent with more runs than its hello can name.
    device.say(Leaf::Hello, device.hello(Vec::new()).to_frame().unwrap(), true);
    device.tell(run, RunPhase::Draining, &[]);
    eventually("the next state", 30, || {
        (coordinator.show(&requested)["phase"] == "draining").then_some(())
    });
}

#[test]
fn a_silent_run_is_queried_and_its_missing_files_are_requested() {
    let (coordinator, mut device) = with_device(1);
    let requested = coordinator.request_run("PerformanceOnly");
    let (run, spec_json) = device.next_start();
    device.tell(run, RunPhase::Queued, &[]);
    // Its next states are lost.
    let request_run = device.wait_for_command(run, |command| matches!(command, Command::Resend { .. }));
    assert_eq!(request_run, Command::Resend { streams: Vec::new() });
    // Its files are not here, although they were acknowledged.
    let mut files = BTreeMap::from([("run.log".to_owned(), b"log".to_vec())]);
    device.seal(run, &spec_json, &mut files);
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    device.tell(run, RunPhase::Done, &names);
    let request_run = device.wait_for_command(
        run,
        |command| matches!(command, Command::Resend { streams } if !streams.is_empty()),
    );
    let missing = names.iter().map(|name| name.parse().unwrap()).collect();
    assert_eq!(request_run, Command::Resend { streams: missing });
    device.deliver(run, &files, Faults::default(), &mut Dice::new(1), |_| {});
    assert_eq!(coordinator.record(&requested)["delivery"]["complete"], true);
}

#[test]
fn an_agent_of_another_wire_version_is_refused_with_both_named() {
    let (coordinator, device) = with_device(1);
    let newer = SimulatedDevice::connect(coordinator.port, 2);
    let mut frame = newer.hello(Vec::new()).to_frame().unwrap();
    frame[4] = 2;
    newer.say_as_is(Leaf::Hello, frame, true);
    let refused = eventually("the refusal", 30, || {
        let list = coordinator.json(&["device", "list"]);
        list["refused"].as_array()?.first().cloned()
    });
    assert_eq!(refused["device"], newer.id.as_str());
    assert_eq!(
        (&refused["wire"], &refused["coordinator_wire"]),
        (&2.into(), &vec![1, 1].into())
    );
    let printed = coordinator.output(&["device", "list"]);
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert!(
        printed.contains("its agent speaks wire version 2, this coordinator 1 to 1"),
        "{printed}"
    );
    assert!(
        coordinator
            .printed()
            .contains("frame has wire version 2; this program reads 1 to 1"),
        "{}",
        coordinator.printed()
    );
    // With an agent of the same wire version it is an ordinary device.
    newer.say_hello(Vec::new());
    eventually("the device", 30, || {
        let list = coordinator.json(&["device", "list"]);
        let understood = list["refused"].as_array()?.is_empty() && list["devices"].as_array()?.len() == 2;
        understood.then_some(())
    });
    drop(device);
}

#[test]
fn a_run_whose_stream_never_ends_stays_draining() {
    let (mut coordinator, mut device) = with_device(1);
    let requested = coordinator.request_run("PerformanceOnly");
    let (run, spec_json) = device.next_start();
    let mut files = BTreeMap::from([("mlperf_log_detail.txt".to_owned(), vec![7; 200_000])]);
    device.seal(run, &spec_json, &mut files);
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    device.tell(run, RunPhase::Draining, &names);
    // All its bytes, without an end of stream.
    let content = &files["mlperf_log_detail.txt"];
    for (number, piece) in content.chunks(65_536).enumerate() {
        device.send_chunk(run, "mlperf_log_detail.txt", number as u64 * 65_536, piece);
    }
    let detail = |coordinator: &Coordinator| {
        let streams = coordinator.show(&requested)["streams"].clone();
        let is_detail = |stream: &&serde_json::Value| stream["name"] == "mlperf_log_detail.txt";
        streams.as_array().unwrap().iter().find(is_detail).cloned()
    };
    eventually("its bytes", 30, || {
        (detail(&coordinator)?["committed"] == 200_000).then_some(())
    });
    // Neither the device's own report nor a restart completes it.
    device.tell(run, RunPhase::Done, &names);
    coordinator.kill();
    coordinator.serve();
    std::thread::sleep(Duration::from_secs(2));
    let shown = coordinator.show(&requested);
    assert_eq!(
        (&shown["phase"], &shown["recorded"]),
        (&"draining".into(), &serde_json::Value::Null)
    );
    assert_eq!(detail(&coordinator).unwrap()["complete"], false);
    assert!(coordinator.file(&requested, "mlperf_log_detail.txt").is_none());
    device.deliver(run, &files, Faults::default(), &mut Dice::new(1), |_| {});
    device.say_hello(vec![run]);
    device.tell(run, RunPhase::Done, &names);
    assert_eq!(coordinator.record(&requested)["delivery"]["complete"], true);
}

#[test]
fn evidence_signed_by_another_key_is_not_believed() {
    let (coordinator, mut device) = with_device(1);
    let forger = SimulatedDevice::connect(coordinator.port, 9);
    let requested = coordinator.request_run("PerformanceOnly");
    let (run, spec_json) = device.next_start();
    let mut files = BTreeMap::from([("run.log".to_owned(), b"log".to_vec())]);
    device.seal(run, &spec_json, &mut files);
    let honest = files["evidence.sig"].clone();
    let evidence = String::from_utf8(files["evidence.json"].clone()).unwrap();
    let forged = evidence.replace("simulated device", "a fine device...");
    files.insert("evidence.json".to_owned(), forged.into_bytes());
    files.insert("evidence.sig".to_owned(), honest);
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    device.tell(run, RunPhase::Draining, &names);
    device.deliver(run, &files, Faults::default(), &mut Dice::new(1), |_| {});
    device.tell(run, RunPhase::Done, &names);
    let record = coordinator.record(&requested);
    assert_eq!(record["evidence_signature_valid"], false, "{record:#}");
    drop(forger);
    // The device keeps the run with evidence, and may remove the next one.
    let (next, _) = {
        let _ = coordinator.request_run("PerformanceOnly");
        device.play(Faults::default(), &mut Dice::new(2))
    };
    let released = device.next_release();
    assert_eq!(released, next, "not the run with forged evidence");
}

#[test]
fn device_cannot_write_into_another_devices_run() {
    let (coordinator, mut device) = with_device(1);
    let mut unknown_device = SimulatedDevice::connect(coordinator.port, 2);
    unknown_device.say_hello(Vec::new());
    let devices = || {
        coordinator.json(&["device", "list"])["devices"]
            .as_array()
            .map(Vec::len)
    };
    eventually("two devices", 30, || (devices() == Some(2)).then_some(()));
    let requested = coordinator.request_run_of(&device);
    let (run, _) = device.next_start();
    unknown_device.tell(run, RunPhase::Failed, &["forged"]);
    unknown_device.send_chunk(run, "forged", 0, b"forged");
    // A later honest message shows that the forged ones have been processed.
    device.tell(run, RunPhase::Running, &[]);
    eventually("the honest state", 30, || {
        (coordinator.show(&requested)["phase"] == "running").then_some(())
    });
    assert_eq!(
        coordinator.show(&requested)["streams"].as_array().map(Vec::len),
        Some(0)
    );
    assert!(!coordinator.path(&format!("runs/{requested}/partial")).exists());
}

#[test]
fn a_forged_identity_and_garbage_are_refused_and_logged_once() {
    let (coordinator, device) = with_device(1);
    let mut forged = device.hello(Vec::new());
    forged.public_key = [7; 32];
    forged.name = "forged".to_owned();
    let topic = format!("regatta/v1/{}/hello", device.id);
    for _ in 0..20 {
        device.publish(&topic, forged.to_frame().unwrap(), false);
        device.publish(&topic, b"GET / HTTP/1.1\r\n".to_vec(), false);
    }
    device.say_hello(Vec::new());
    eventually("the complaints", 30, || {
        coordinator.printed().contains("count=16").then_some(())
    });
    let listed = coordinator.json(&["device", "list"]);
    assert_eq!(
        listed["devices"][0]["name"], "simulated",
        "the forged hello changed nothing"
    );
    let printed = coordinator.printed().matches("unreadable message").count();
    assert!(
        printed <= 6,
        "20 times the same complaint was logged {printed} times"
    );
}

#[test]
fn an_abort_reaches_the_device() {
    let (coordinator, mut device) = with_device(1);
    let requested = coordinator.request_run("PerformanceOnly");
    let (run, _) = device.next_start();
    device.tell(run, RunPhase::Running, &[]);
    eventually("the state", 30, || {
        (coordinator.show(&requested)["phase"] == "running").then_some(())
    });
    assert!(
        coordinator
            .output(&["runs", "abort", &requested])
            .status
            .success()
    );
    device.wait_for_command(run, |command| matches!(command, Command::Abort { .. }));
    device.tell(run, RunPhase::Aborted, &[]);
    assert_eq!(coordinator.record(&requested)["state"]["phase"], "aborted");
    let again = coordinator.output(&["runs", "abort", &requested]);
    assert_eq!(again.status.code(), Some(2), "it has ended already");
}

/// A command may be lost in the coordinator, in the broker or on the way.
#[test]
fn examination_is_requested_until_the_device_answers_and_a_refusal_is_forgotten_each_time() {
    let (coordinator, mut device) = with_device(1);
    let request = || {
        let words = ["device", "doctor", "simulated", "--timeout", "60s"];
        let mut command = coordinator.regatta(&words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let requested = request();
    let question = device.next_examination();
    assert_eq!(device.next_examination(), question, "no answer");
    device.say_hello(Vec::new());
    assert_eq!(device.next_examination(), question, "a new connection");
    let examined = Examined {
        json: r#"{"fit":true}"#.to_owned(),
        text: "FIT".to_owned(),
    };
    // Both requests are answered.
    for _ in 0..2 {
        device.say(Leaf::State(question), examined.to_frame().unwrap(), false);
    }
    let answered = requested.wait_with_output().unwrap();
    assert_eq!(answered.status.code(), Some(0), "{answered:?}");
    device.expect_no_command(question);

    let requested = request();
    let question = device.next_examination();
    for _ in 0..2 {
        device.tell(question, RunPhase::Failed, &[]);
        device.wait_for_command(question, |command| *command == Command::Forget);
    }
    let refused = requested.wait_with_output().unwrap();
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
}

#[test]
fn examination_reports_the_device_or_that_it_is_too_old() {
    let (coordinator, mut device) = with_device(1);
    let request_run = |more: &[&str]| {
        let words = [&["device", "doctor", "simulated"], more].concat();
        coordinator
            .regatta(&words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let printed = |child: std::process::Child| {
        let output = child.wait_with_output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(text).unwrap())
    };
    let requested = request_run(&[]);
    let question = device.next_examination();
    let examined = Examined {
        json: r#"{"fit":false}"#.to_owned(),
        text: "NOT FIT to measure\n  \u{1b}[31mhot\n".to_owned(),
    };
    device.say(Leaf::State(question), examined.to_frame().unwrap(), false);
    assert_eq!(
        printed(requested),
        (1, "NOT FIT to measure\n  \\u{1b}[31mhot\n".to_owned())
    );

    let requested = request_run(&["--format", "json"]);
    let question = device.next_examination();
    let examined = Examined {
        json: r#"{"fit":true}"#.to_owned(),
        text: String::new(),
    };
    device.say(Leaf::State(question), examined.to_frame().unwrap(), false);
    let (code, json) = printed(requested);
    assert_eq!(
        (
            code,
            serde_json::from_str::<serde_json::Value>(&json).unwrap()["fit"].as_bool()
        ),
        (0, Some(true))
    );

    // An agent that does not know the request refuses it as a run, and may forget it then.
    let requested = request_run(&[]);
    let question = device.next_examination();
    device.tell(question, RunPhase::Failed, &[]);
    let (code, text) = printed(requested);
    assert!(
        code == 3 && text.contains("simulated refused the examination"),
        "{code} {text}"
    );
    device.wait_for_command(question, |command| *command == Command::Forget);

    let (code, text) = printed(request_run(&["--timeout", "300ms"]));
    assert!(
        code == 3 && text.contains("did not answer in time"),
        "{code} {text}"
    );
    // An answer without a request changes nothing.
    device.say(Leaf::State(RunId::now()), examined.to_frame().unwrap(), false);
    device.say(Leaf::State(RunId::now()), b"RGTA\x01\x00\x0b".to_vec(), false);
    assert_eq!(
        coordinator.json(&["device", "list"])["devices"][0]["online"],
        true
    );
}
