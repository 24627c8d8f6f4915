//! Tests of a hostile enrolled device: its frames, names and floods change nothing and do not affect others.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use regatta_tests::{
    Broker, certificates,
    raw_client::{ClientIdentity, RawClient, SUCCESS},
};

use crate::{
    RUN, authority, client_id, enroll_another, files_below, lab, own_device, port_of, request_run, stall,
    wait_until_done,
};

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
    // Repeated frames: truncated, of every kind, with wrong lengths, with flipped bits.
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
        // Inventories are limited to one a second. Every place of a bit has its turn all the same.
        let step = if leaf == "telemetry" { 7 } else { 1 };
        for bit in (0..frame.len() * 8).step_by(step) {
            let mut flipped = frame.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(device.publish(&topic, &flipped).expect("PUBACK"), SUCCESS);
        }
    }
    // A NUL in a topic and a packet beyond the limit only end the connection.
    device
        .bytes(&[0x30, 7, 0, 3, b'a', 0, b'b', 0, b'x'])
        .expect("bytes");
    assert!(device.is_cut_off(), "NUL in a topic");
    let (mut device, _) = own_device(&lab);
    device.bytes(&[0x32, 0xff, 0xff, 0xff, 0x7f]).expect("bytes");
    assert!(device.is_cut_off(), "a packet of 256 MiB");
    drop(device);
    // A copied hello of another device on its topic is refused, and the real device continues.
    lab.start_device();
    lab.wait_for_device();
    let run = request_run(&lab, "500ms");
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
    let mut slow = stall(port_of(&lab, "enroll_listen"));
    let mole = enroll_another(&lab, "mole");
    lab.start_device();
    lab.wait_for_device();
    slow.extend(stall(lab.port));
    let (certificates, id) = certificates::of_device(&mole);
    let authority = authority(&lab).certificate;
    let port = lab.port;
    let flood = std::thread::spawn(move || flood(port, &authority, &certificates, &id));
    let run = request_run(&lab, "1s");
    wait_until_done(&lab, &run);
    drop(slow);
    let sent = flood.join().expect("the flood ends");
    println!("the flood sent {} MB", sent >> 20);
    assert!(sent >= MIN_FLOOD_BYTES, "the flood had only {sent} bytes");
    let peak = lab.coordinator.as_ref().expect("it runs").peak_kib();
    println!("the coordinator's peak: {} MiB", peak >> 10);
    assert!(peak < 384 << 10, "the coordinator took {} MiB", peak >> 10);
}

/// The bytes that a flood must have sent to be one: a few times what the broker queues for a subscriber.
const MIN_FLOOD_BYTES: u64 = 64 << 20;

/// Sends as much as it can for some seconds: chunks of runs that do not exist, and retained states of new runs.
fn flood(port: u16, authority: &[u8], certificates: &ClientIdentity, id: &str) -> u64 {
    let mut sent = 0;
    let begun = Instant::now();
    let payload = vec![0x55; 64 * 1024];
    while begun.elapsed() < Duration::from_secs(8) {
        let Ok(mut raw_client) = RawClient::reach(port, authority, Some(certificates)) else {
            continue;
        };
        if raw_client.connect(&client_id(id), None).is_err() {
            continue;
        }
        for number in 0_u64.. {
            let run = format!("01930e7a-6f00-7000-8000-{number:012x}");
            let log = raw_client.say(&format!("regatta/v1/{id}/log/{run}/log"), &payload, false);
            let state = raw_client.say(&format!("regatta/v1/{id}/state/{run}"), &payload[..8_000], true);
            if log.is_err() || state.is_err() || begun.elapsed() > Duration::from_secs(8) {
                break;
            }
            sent += 72_000;
        }
    }
    sent
}
