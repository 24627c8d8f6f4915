//! A stranger on the lab's network can neither read, forge nor disturb: each hostile case against the real binaries, over
//! the embedded broker and over a mosquitto with the configuration that `regatta init` writes. docs/security.md lists what
//! each case gets.

#![expect(clippy::expect_used, reason = "test code")]

use std::{
    fs,
    io::Write as _,
    net::TcpStream,
    path::{Path, PathBuf},
    process::Output,
    time::{Duration, Instant},
};

use rcgen::ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
use regatta_tests::{
    Broker, DEVICE, Lab, eventually,
    papers::{self, Authority},
    stranger::{NOT_AUTHORIZED, Papers, SUCCESS, Stranger},
    succeed_output,
};
use serde_json::Value;

const RUN: &str = "01930e7a-6f00-7000-8000-000000000001";
const OTHER: &str = "fedcba9876543210fedcba9876543210";
/// A year that is over, and one that is not for a while.
const PAST: i32 = 2020;
const FUTURE: i32 = 2090;

/// A lab whose coordinator serves, and whose device is enrolled and not running.
fn lab(broker: Broker) -> Option<Lab> {
    let mut lab = Lab::secure(broker)?;
    lab.start_coordinator();
    lab.enrol_device();
    Some(lab)
}

fn authority(lab: &Lab) -> Authority {
    Authority::of_lab(&lab.workspace())
}

fn client_id(device: &str) -> String {
    format!("regatta-agent-{device}")
}

/// Whether the broker lets this certificate speak at all.
fn is_let_in(lab: &Lab, papers: Option<&Papers>, client_id: &str) -> bool {
    let authority = authority(lab).certificate;
    Stranger::reach(lab.port, &authority, papers)
        .and_then(|mut stranger| stranger.connect(client_id, None))
        .is_ok_and(|code| code == SUCCESS)
}

/// The lab's device, played by the test.
fn own_device(lab: &Lab) -> (Stranger, String) {
    let (papers, id) = papers::of_device(&lab.state());
    let mut device = Stranger::reach(lab.port, &authority(lab).certificate, Some(&papers)).expect("TLS");
    assert_eq!(device.connect(&client_id(&id), None).expect("CONNACK"), SUCCESS);
    (device, id)
}

fn ask(lab: &Lab, duration: &str) -> String {
    let mut command = lab.regatta();
    command.args([
        "run",
        "--device",
        DEVICE,
        "--benchmark",
        "digits",
        "--engine",
        "tract",
        "--no-wait",
    ]);
    command.args([
        "--scenario",
        "Offline",
        "--mode",
        "AccuracyOnly",
        "--duration",
        duration,
    ]);
    let asked = succeed_output(command.args(["--format", "json"]));
    let asked: Value = serde_json::from_slice(&asked.stdout).expect("JSON");
    asked["runs"][0]["run"].as_str().expect("a run").to_owned()
}

fn wait_until_done(lab: &Lab, run: &str) {
    eventually("the run to be done", 90, || {
        let shown = succeed_output(lab.regatta().args(["runs", "show", run, "--format", "json"]));
        let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
        shown["phase"] == "done"
    });
    let [coordinator, device] = lab.hashes(run);
    assert_eq!(coordinator, device);
    assert!(coordinator.contains_key("evidence.sig"));
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn a_run_arrives_whole_and_verifies(broker: Broker) {
    let Some(mut lab) = Lab::secure(broker) else {
        return;
    };
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    let run = ask(&lab, "1s");
    wait_until_done(&lab, &run);
    eventually("the record", 20, || {
        lab.workspace()
            .join("runs")
            .join(&run)
            .join("record.json")
            .exists()
    });
    let verified = lab
        .regatta()
        .args(["runs", "verify", &run])
        .output()
        .expect("regatta starts");
    assert_eq!(verified.status.code(), Some(0), "{}", said(&verified));
    let examined = lab
        .regatta()
        .args(["device", "doctor", DEVICE, "--format", "json"])
        .output();
    let examined = examined.expect("regatta starts");
    assert!(
        matches!(examined.status.code(), Some(0 | 1)),
        "{}",
        said(&examined)
    );
    let found: Value = serde_json::from_slice(&examined.stdout).expect("JSON");
    assert!(
        found["system"]["memory_bytes"]
            .as_u64()
            .is_some_and(|bytes| bytes > 0),
        "{found}"
    );
    for log in [&lab.coordinator, &lab.device] {
        let log = log.as_ref().expect("it runs").output();
        assert!(!log.contains("PLAIN"), "nothing is plain here: {log}");
    }
}

#[test]
fn a_run_arrives_whole_and_verifies_over_the_embedded_broker() {
    a_run_arrives_whole_and_verifies(Broker::Embedded);
}

#[test]
fn a_run_arrives_whole_and_verifies_over_mosquitto() {
    a_run_arrives_whole_and_verifies(Broker::Mosquitto);
}

fn only_good_certificates_are_let_in(broker: Broker) {
    let Some(lab) = lab(broker) else { return };
    let ours = authority(&lab);
    let theirs = Authority::self_made(&ours);
    let (own, id) = papers::of_device(&lab.state());
    assert!(is_let_in(&lab, Some(&own), &client_id(&id)), "the device itself");
    assert!(!is_let_in(&lab, None, &client_id(&id)), "no certificate");
    for (what, (papers, device)) in [
        (
            "an authority of the same name",
            theirs.issue(None, ClientAuth, FUTURE),
        ),
        (
            "an authority of the same name, for our device",
            theirs.issue(Some(&id), ClientAuth, FUTURE),
        ),
        ("expired", ours.issue(None, ClientAuth, PAST)),
        ("a server's", ours.issue(None, ServerAuth, FUTURE)),
    ] {
        assert!(!is_let_in(&lab, Some(&papers), &client_id(&device)), "{what}");
        assert!(
            !is_let_in(&lab, Some(&papers), &client_id(&id)),
            "{what}, as our device"
        );
    }
    // Signed by the lab's own authority, but over a key that never enrolled: at best it talks to itself.
    let (papers, device) = ours.issue(None, ClientAuth, FUTURE);
    let mut unknown = Stranger::reach(lab.port, &ours.certificate, Some(&papers)).expect("TLS");
    let code = unknown.connect(&client_id(&device), None).expect("CONNACK");
    match broker {
        Broker::Embedded => assert_eq!(code, NOT_AUTHORIZED),
        Broker::Mosquitto => {
            let topic = format!("regatta/v1/{device}/hello");
            assert_eq!(unknown.publish(&topic, b"anything").expect("PUBACK"), SUCCESS);
            eventually("the coordinator to refuse it", 20, || {
                let log = lab.coordinator.as_ref().expect("it runs").output();
                log.contains("device that is not let in")
            });
        }
    }
}

#[test]
fn only_good_certificates_are_let_in_by_the_embedded_broker() {
    only_good_certificates_are_let_in(Broker::Embedded);
}

#[test]
fn only_good_certificates_are_let_in_by_mosquitto() {
    only_good_certificates_are_let_in(Broker::Mosquitto);
}

#[test]
fn a_device_has_its_own_topics_only_in_the_embedded_broker() {
    let Some(lab) = lab(Broker::Embedded) else { return };
    let (papers, id) = papers::of_device(&lab.state());
    let authority = authority(&lab).certificate;
    let reach = || Stranger::reach(lab.port, &authority, Some(&papers)).expect("TLS");
    for (what, client, will) in [
        ("another device's session", client_id(OTHER), None),
        ("the coordinator's session", "coordinator".to_owned(), None),
        (
            "a will for another device",
            client_id(&id),
            Some(format!("regatta/v1/{OTHER}/hello")),
        ),
        (
            "a will as a command",
            client_id(&id),
            Some(format!("regatta/v1/{id}/cmd/{RUN}")),
        ),
    ] {
        let code = reach().connect(&client, will.as_deref()).expect("CONNACK");
        assert_eq!(code, NOT_AUTHORIZED, "{what}");
    }
    let (mut device, id) = own_device(&lab);
    for leaf in [
        "hello",
        "telemetry",
        &format!("state/{RUN}"),
        &format!("log/{RUN}/a.txt"),
    ] {
        let publish = |device: &mut Stranger, whose: &str| {
            let topic = format!("regatta/v1/{whose}/{leaf}");
            device.publish(&topic, b"anything").expect("PUBACK")
        };
        assert_eq!(publish(&mut device, OTHER), NOT_AUTHORIZED, "{leaf}");
        assert_eq!(publish(&mut device, &id), SUCCESS, "{leaf}");
    }
    for topic in [
        format!("regatta/v1/{id}/cmd/{RUN}"),
        format!("regatta/v1/{id}/ack/{RUN}"),
        "$SYS/x".to_owned(),
    ] {
        assert_eq!(
            device.publish(&topic, b"x").expect("PUBACK"),
            NOT_AUTHORIZED,
            "{topic}"
        );
    }
    for filter in [
        "#".to_owned(),
        "regatta/v1/#".to_owned(),
        "regatta/v1/+/cmd/+".to_owned(),
        "$share/g/regatta/v1/#".to_owned(),
        "$SYS/#".to_owned(),
        format!("regatta/v1/{OTHER}/cmd/+"),
        format!("regatta/v1/{id}/#"),
    ] {
        let code = device.subscribe(&filter).expect("SUBACK");
        assert!(code >= 0x80, "{filter}: {code:#x}");
    }
    assert!(
        device
            .subscribe(&format!("regatta/v1/{id}/cmd/+"))
            .expect("SUBACK")
            < 0x80
    );
}

#[test]
fn a_device_has_its_own_topics_only_in_mosquitto() {
    let Some(lab) = lab(Broker::Mosquitto) else { return };
    let (mut device, id) = own_device(&lab);
    for leaf in [
        "hello",
        "telemetry",
        &format!("state/{RUN}"),
        &format!("log/{RUN}/a.txt"),
    ] {
        let topic = format!("regatta/v1/{OTHER}/{leaf}");
        assert_eq!(
            device.publish(&topic, b"x").expect("PUBACK"),
            NOT_AUTHORIZED,
            "{topic}"
        );
        // mosquitto answers 0x10, nobody listens, where nobody does.
        let topic = format!("regatta/v1/{id}/{leaf}");
        assert!(device.publish(&topic, b"x").expect("PUBACK") < 0x80, "{topic}");
    }
    for topic in [
        format!("regatta/v1/{id}/cmd/{RUN}"),
        format!("regatta/v1/{id}/ack/{RUN}"),
    ] {
        assert_eq!(
            device.publish(&topic, b"x").expect("PUBACK"),
            NOT_AUTHORIZED,
            "{topic}"
        );
    }
    // mosquitto grants any filter, and brings nothing that the access rules forbid.
    for filter in [
        "#",
        "regatta/v1/#",
        "regatta/v1/+/cmd/+",
        &format!("regatta/v1/{OTHER}/cmd/+"),
    ] {
        let _ = device.subscribe(filter).expect("SUBACK");
    }
    let (papers, _) = authority(&lab).issue(Some("coordinator"), ClientAuth, FUTURE);
    let mut coordinator =
        Stranger::reach(lab.port, &authority(&lab).certificate, Some(&papers)).expect("TLS");
    assert_eq!(coordinator.connect("x", None).expect("CONNACK"), SUCCESS);
    for whose in [OTHER, &id] {
        let topic = format!("regatta/v1/{whose}/cmd/{RUN}");
        assert!(coordinator.publish(&topic, whose.as_bytes()).expect("PUBACK") < 0x80);
    }
    let heard = device.hear(Duration::from_secs(3));
    assert!(!heard.is_empty(), "its own command comes");
    for (topic, _) in heard {
        assert!(topic.starts_with(&format!("regatta/v1/{id}/cmd/")), "{topic}");
    }
}

#[test]
fn a_removed_device_is_cut_off_at_once_and_does_not_come_back() {
    let Some(mut lab) = lab(Broker::Embedded) else {
        return;
    };
    let (mut device, id) = own_device(&lab);
    let topic = format!("regatta/v1/{id}/telemetry");
    assert_eq!(device.publish(&topic, b"x").expect("PUBACK"), SUCCESS);
    let _ = succeed_output(lab.regatta().args(["device", "remove", DEVICE]));
    assert!(device.is_cut_off(), "the live connection ends");
    let (papers, _) = papers::of_device(&lab.state());
    assert!(
        !is_let_in(&lab, Some(&papers), &client_id(&id)),
        "and no other begins"
    );
    // Nor by enrolling once more with the same key.
    let enrolled = lab
        .agent("enroll")
        .arg(lab.token("boat-2"))
        .output()
        .expect("the agent starts");
    assert_eq!(enrolled.status.code(), Some(3), "{}", said(&enrolled));
    assert!(said(&enrolled).contains("was removed"), "{}", said(&enrolled));
    // The real agent keeps trying, and says why it may not.
    lab.start_device();
    eventually("the agent to say that it is refused", 20, || {
        lab.device
            .as_ref()
            .expect("it runs")
            .output()
            .contains("NotAuthorized")
    });
}

#[test]
fn a_removed_device_has_no_rights_in_mosquitto_at_once_and_no_connection_after_its_restart() {
    let Some(mut lab) = lab(Broker::Mosquitto) else {
        return;
    };
    let (mut device, id) = own_device(&lab);
    let topic = format!("regatta/v1/{id}/telemetry");
    assert!(device.publish(&topic, b"x").expect("PUBACK") < 0x80);
    let removed = succeed_output(lab.regatta().args(["device", "remove", DEVICE]));
    assert!(
        said(&removed).contains("mosquitto has been told"),
        "{}",
        said(&removed)
    );
    eventually("mosquitto to forbid it", 10, || {
        // It may also end the connection.
        device
            .publish(&topic, b"x")
            .map_or(true, |code| code == NOT_AUTHORIZED)
    });
    lab.mosquitto.as_mut().expect("this lab has one").restart();
    let (papers, _) = papers::of_device(&lab.state());
    assert!(
        !is_let_in(&lab, Some(&papers), &client_id(&id)),
        "its certificate is on the list"
    );
}

#[test]
fn a_token_lets_in_one_device_once_for_a_while_and_its_key_stays_where_it_is() {
    let Some(mut lab) = Lab::secure(Broker::Embedded) else {
        return;
    };
    lab.start_coordinator();
    let enroll = |token: &str, key: &str| {
        let state = lab.device_directory().join(key);
        let config = lab.device_directory().join(format!("{key}.toml"));
        let text = format!("name = \"x\"\nstate_dir = \"{}\"\n", state.display());
        fs::write(&config, text).expect("a configuration");
        let mut agent = std::process::Command::new(regatta_tests::agent());
        let output = agent
            .arg("enroll")
            .arg("--config")
            .arg(&config)
            .arg(token)
            .output()
            .expect("the agent starts");
        (output.status.code(), said(&output))
    };
    let token = lab.token("first");
    eventually("the first device to enrol", 20, || {
        enroll(&token, "one").0 == Some(0)
    });
    // An answer may get lost: the same device may ask again.
    assert_eq!(enroll(&token, "one").0, Some(0));
    let (code, text) = enroll(&token, "two");
    assert!(
        code == Some(3) && text.contains("has been used"),
        "{code:?} {text}"
    );
    let added = lab
        .regatta()
        .args(["device", "add", "first"])
        .output()
        .expect("regatta starts");
    assert_eq!(
        added.status.code(),
        Some(2),
        "one name, one device: {}",
        said(&added)
    );
    for name in ["../x", "a/b", "", "a b", &"x".repeat(10_000), "-x"] {
        let added = lab
            .regatta()
            .args(["device", "add", "--", name])
            .output()
            .expect("regatta starts");
        assert_eq!(added.status.code(), Some(2), "{name}");
    }
    let short = succeed_output(lab.regatta().args([
        "device",
        "add",
        "late",
        "--lifetime",
        "1ms",
        "--format",
        "json",
    ]));
    let short: Value = serde_json::from_slice(&short.stdout).expect("JSON");
    let (code, text) = enroll(short["token"].as_str().expect("a token"), "two");
    assert!(code == Some(3) && text.contains("expired"), "{code:?} {text}");
    // A token with another authority's fingerprint: the coordinator at that address is not believed.
    let fresh = lab.token("third");
    let mut parts: Vec<String> = fresh.split('/').map(str::to_owned).collect();
    parts[3] = "ab".repeat(32);
    let (code, text) = enroll(&parts.join("/"), "two");
    assert!(
        code == Some(3) && !lab.device_directory().join("two/enrolment.json").exists(),
        "{code:?} {text}"
    );
    let (code, text) = enroll(&fresh.replace(&fresh[fresh.len() - 8..], "00000000"), "two");
    assert!(
        code == Some(3) && text.contains("no such token"),
        "{code:?} {text}"
    );
    assert_eq!(enroll("regatta-enrol://x", "two").0, Some(2));
    assert_eq!(enroll(&fresh, "two").0, Some(0));
    // The key is on the device alone, and the secret of a token nowhere at the coordinator.
    let key = fs::read(lab.device_directory().join("one/device.key")).expect("the device's key");
    let secret = token.rsplit('/').next().expect("a secret");
    for file in files_below(&lab.workspace()) {
        let bytes = fs::read(&file).unwrap_or_default();
        let holds = |needle: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
        assert!(
            !holds(&key[16..48]) && !holds(secret.as_bytes()),
            "{}",
            file.display()
        );
    }
}

#[test]
fn a_device_that_was_started_first_goes_on_by_itself_once_it_is_enrolled() {
    let Some(mut lab) = Lab::secure(Broker::Embedded) else {
        return;
    };
    lab.start_coordinator();
    lab.device = Some(regatta_tests::Process::start(
        &mut lab.agent("serve"),
        &lab.device_directory().join("device.log"),
    ));
    eventually("the device to wait", 20, || {
        lab.device
            .as_ref()
            .expect("it runs")
            .output()
            .contains("waiting for `regatta-agent enroll`")
    });
    lab.enrol_device();
    lab.wait_for_device();
}

#[test]
fn a_certificate_is_renewed_by_itself_before_it_ends_unless_the_device_was_removed() {
    let Some(mut lab) = lab(Broker::Embedded) else {
        return;
    };
    // What the device believes of its certificate's end; the coordinator knows better.
    let path = lab.state().join("enrolment.json");
    let soon = "2026-12-01T00:00:00Z";
    let enrolment =
        || -> Value { serde_json::from_slice(&fs::read(&path).expect("it is there")).expect("JSON") };
    let end_soon = || {
        let mut changed = enrolment();
        changed["not_after"] = soon.into();
        fs::write(&path, changed.to_string()).expect("written");
    };
    let first = enrolment()["certificate"].clone();
    end_soon();
    lab.start_device();
    eventually("the certificate to be renewed", 20, || {
        enrolment()["not_after"] != soon
    });
    assert_ne!(enrolment()["certificate"], first);
    lab.wait_for_device();
    drop(lab.device.take());
    let (papers, id) = papers::of_device(&lab.state());
    assert!(
        is_let_in(&lab, Some(&papers), &client_id(&id)),
        "the new one is good"
    );
    let _ = succeed_output(lab.regatta().args(["device", "remove", DEVICE]));
    end_soon();
    lab.start_device();
    eventually("the renewal to be refused", 20, || {
        lab.device
            .as_ref()
            .expect("it runs")
            .output()
            .contains("not enrolled here")
    });
}

#[test]
fn nobody_but_the_coordinator_commands_a_device() {
    let Some(mut lab) = lab(Broker::Mosquitto) else {
        return;
    };
    // Somebody on the broker with all rights: whoever runs it, or has stolen the coordinator's certificate but not its key.
    let (papers, _) = authority(&lab).issue(Some("coordinator"), ClientAuth, FUTURE);
    let (_, id) = papers::of_device(&lab.state());
    lab.start_device();
    lab.wait_for_device();
    let run = ask(&lab, "1s");
    wait_until_done(&lab, &run);
    drop(lab.coordinator.take());
    let mut thief = Stranger::reach(lab.port, &authority(&lab).certificate, Some(&papers)).expect("TLS");
    assert_eq!(thief.connect("x", None).expect("CONNACK"), SUCCESS);
    // `Forget`, framed and unsigned.
    let forget = [b"RGTA".as_slice(), &[1, 0, 3, 1, 0, 0, 0, 2]].concat();
    let topic = format!("regatta/v1/{id}/cmd/{run}");
    assert!(thief.publish(&topic, &forget).expect("PUBACK") < 0x80);
    eventually("the device to refuse", 20, || {
        lab.device
            .as_ref()
            .expect("it runs")
            .output()
            .contains("not signed")
    });
    assert!(
        lab.state().join("runs").join(&run).exists(),
        "nothing was forgotten"
    );
}

#[test]
fn frames_and_names_of_a_hostile_device_change_nothing() {
    let Some(mut lab) = lab(Broker::Embedded) else {
        return;
    };
    let before = files_below(&lab.workspace());
    let (mut device, id) = own_device(&lab);
    let long = "x".repeat(10_000);
    let names = [
        "..",
        "../../../../tmp/x",
        "%2e%2e",
        "/etc/passwd",
        ".hidden",
        "a b",
        "a\u{1b}[2J",
        &long,
    ];
    for name in names {
        let topic = format!("regatta/v1/{id}/log/{RUN}/{name}");
        assert_ne!(
            device.publish(&topic, b"RGTA").expect("PUBACK"),
            SUCCESS,
            "{name}"
        );
        let topic = format!("regatta/v1/{id}/state/{name}");
        assert_ne!(
            device.publish(&topic, b"RGTA").expect("PUBACK"),
            SUCCESS,
            "{name}"
        );
    }
    // Frames: truncated, with every kind, with wrong lengths, with flipped bits, again and again.
    let frame = [b"RGTA".as_slice(), &[1, 0, 5, 13, 0, 0, 0], &[0; 12], b"x"].concat();
    for leaf in [
        "hello",
        "telemetry",
        &format!("state/{RUN}"),
        &format!("log/{RUN}/a"),
    ] {
        let topic = format!("regatta/v1/{id}/{leaf}");
        for cut in 0..frame.len() {
            assert_eq!(device.publish(&topic, &frame[..cut]).expect("PUBACK"), SUCCESS);
        }
        for bit in 0..frame.len() * 8 {
            let mut flipped = frame.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(device.publish(&topic, &flipped).expect("PUBACK"), SUCCESS);
        }
    }
    // A NUL in a topic and a packet beyond the limit end the connection, and that alone.
    device
        .bytes(&[0x30, 7, 0, 3, b'a', 0, b'b', 0, b'x'])
        .expect("bytes");
    assert!(device.is_cut_off(), "NUL in a topic");
    let (mut device, _) = own_device(&lab);
    device.bytes(&[0x32, 0xff, 0xff, 0xff, 0x7f]).expect("bytes");
    assert!(device.is_cut_off(), "a packet of 256 MiB");
    drop(device);
    // A hello of another device, word for word, on its own topic is no longer possible: and the real device goes on.
    lab.start_device();
    lab.wait_for_device();
    let run = ask(&lab, "500ms");
    wait_until_done(&lab, &run);
    let stray: Vec<PathBuf> = files_below(&lab.workspace())
        .into_iter()
        .filter(|file| !before.contains(file) && !file.starts_with(lab.workspace().join("runs").join(&run)))
        .filter(|file| !file.to_string_lossy().contains("regatta."))
        .collect();
    assert!(stray.is_empty(), "nothing else was written: {stray:?}");
}

#[test]
fn a_flood_and_slow_handshakes_leave_the_others_served_and_the_memory_bounded() {
    let Some(mut lab) = lab(Broker::Embedded) else {
        return;
    };
    let mut slow = stall(enrolment_port(&lab));
    let added = lab.token("mole");
    let mole = lab.device_directory().join("mole");
    let config = lab.device_directory().join("mole.toml");
    fs::write(&config, "name = \"mole\"\nstate_dir = \"mole\"\n").expect("a configuration");
    let mut agent = std::process::Command::new(regatta_tests::agent());
    let _ = succeed_output(agent.arg("enroll").arg("--config").arg(&config).arg(&added));
    lab.start_device();
    lab.wait_for_device();
    slow.extend(stall(lab.port));
    let (papers, id) = papers::of_device(&mole);
    let authority = authority(&lab).certificate;
    let port = lab.port;
    let flood = std::thread::spawn(move || flood(port, &authority, &papers, &id));
    let run = ask(&lab, "1s");
    wait_until_done(&lab, &run);
    drop(slow);
    let sent = flood.join().expect("the flood ends");
    println!("the flood sent {} MB", sent >> 20);
    let pid = lab.coordinator.as_ref().expect("it runs").id();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .expect("VmHWM");
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    println!("the coordinator's peak: {} MiB", peak >> 10);
    assert!(peak < 384 << 10, "the coordinator took {} MiB", peak >> 10);
}

/// More half-open handshakes than a waiting room has places, each with the beginning of a ClientHello.
fn stall(port: u16) -> Vec<TcpStream> {
    let begin = |_| {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).expect("a socket");
        let _ = socket.write_all(&[0x16, 3, 1, 2]);
        socket
    };
    (0..300).map(begin).collect()
}

fn enrolment_port(lab: &Lab) -> u16 {
    let config = fs::read_to_string(lab.workspace().join("regatta.toml")).expect("regatta.toml");
    let line = config
        .lines()
        .find(|line| line.starts_with("enrol_listen"))
        .expect("its line");
    let digits = line.rsplit(':').next().expect("a port").trim_end_matches('"');
    digits.parse().expect("a port")
}

/// Sends as much as it can for some seconds: chunks of runs that do not exist, and retained states of ever new runs.
fn flood(port: u16, authority: &[u8], papers: &Papers, id: &str) -> u64 {
    let mut sent = 0;
    let begun = Instant::now();
    let payload = vec![0x55; 64 * 1024];
    while begun.elapsed() < Duration::from_secs(8) {
        let Ok(mut stranger) = Stranger::reach(port, authority, Some(papers)) else {
            continue;
        };
        if stranger.connect(&client_id(id), None).is_err() {
            continue;
        }
        for number in 0_u64.. {
            let run = format!("01930e7a-6f00-7000-8000-{number:012x}");
            let log = stranger.say(&format!("regatta/v1/{id}/log/{run}/log"), &payload, false);
            let state = stranger.say(&format!("regatta/v1/{id}/state/{run}"), &payload[..8_000], true);
            if log.is_err() || state.is_err() || begun.elapsed() > Duration::from_secs(8) {
                break;
            }
            sent += 72_000;
        }
    }
    sent
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    entries
        .filter_map(Result::ok)
        .flat_map(|entry| {
            let path = entry.path();
            if path.is_dir() {
                files_below(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}
