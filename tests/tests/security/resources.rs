//! Tests that neither clients without identity nor a device can use up descriptors, connections, memory or processor time.

use std::{
    io,
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rcgen::{KeyPair, PKCS_ED25519, SigningKey as _};
use regatta_tests::{
    Broker, Lab, certificates,
    raw_client::{ClientIdentity, NOT_AUTHORIZED, RawClient, SUCCESS},
    succeed_output,
};
use regatta_wire::{
    enrollment::{EXPORTER_LABEL, EnrollPurpose, EnrollRequest, EnrollResponse},
    message::Message as _,
};

use crate::{RUN, authority, client_id, enroll_another, lab, port_of, request_run, stall, wait_until_done};

#[test]
fn stalled_connections_on_every_port_leave_descriptors_for_the_others() {
    let Some(mut lab) = Lab::secure(Broker::Embedded) else {
        return;
    };
    lab.coordinator_prefix = ["prlimit", "--nofile=1024"].map(str::to_owned).to_vec();
    lab.start_coordinator();
    lab.enroll_device();
    let mole = enroll_another(&lab, "mole");
    let (certificates, _) = certificates::of_device(&mole);
    let ca = authority(&lab).certificate;
    let ports = [
        lab.port,
        port_of(&lab, "enroll_listen"),
        port_of(&lab, "assets_listen"),
    ];
    let stalled: Vec<TcpStream> = ports.iter().flat_map(|port| stall(*port)).collect();
    // A device that completes its handshake and is silent afterwards.
    let silent: Vec<_> = [lab.port, port_of(&lab, "assets_listen")]
        .iter()
        .flat_map(|port| (0..150).filter_map(|_| RawClient::reach(*port, &ca, Some(&certificates)).ok()))
        .collect();
    assert!(silent.len() > 200, "{}", silent.len());
    let _ = lab.json(&["asset", "add", "--benchmark", "digits"]);
    lab.start_device();
    lab.wait_for_device();
    let run = request_run(&lab, "500ms");
    wait_until_done(&lab, &run);
    let _ = enroll_another(&lab, "late");
    let printed = lab.coordinator.as_ref().expect("it runs").output();
    assert!(!printed.contains("cannot accept"), "{printed}");
    drop((stalled, silent));
}

#[test]
fn a_removed_device_and_a_hostile_one_leave_assets_to_the_others() {
    let Some(lab) = lab(Broker::Embedded) else {
        return;
    };
    let removed = certificates::of_device(&enroll_another(&lab, "removed")).0;
    let _ = succeed_output(lab.regatta().args(["device", "remove", "removed", "--yes"]));
    let mole = certificates::of_device(&enroll_another(&lab, "mole")).0;
    let added = lab.json(&["asset", "add", "--benchmark", "digits"]);
    let model = added["assets"]
        .as_array()
        .expect("assets")
        .iter()
        .find(|a| a["kind"] == "file");
    let model = model.expect("a model")["sha256"]
        .as_str()
        .expect("a hash")
        .to_owned();
    let ca = authority(&lab).certificate;
    let port = port_of(&lab, "assets_listen");
    let is_over = Arc::new(AtomicBool::new(false));
    let crowds: Vec<JoinHandle<()>> = [removed, mole]
        .into_iter()
        .map(|certificates| {
            let (ca, model, is_over) = (ca.clone(), model.clone(), Arc::clone(&is_over));
            std::thread::spawn(move || crowd(port, &ca, &certificates, &model, &is_over))
        })
        .collect();
    // All connections are open.
    std::thread::sleep(Duration::from_secs(3));
    let own = certificates::of_device(&lab.state()).0;
    for _ in 0..5 {
        let begun = Instant::now();
        let printed = RawClient::reach(port, &ca, Some(&own))
            .and_then(|mut device| device.get(&format!("/v1/file/{model}"), ""));
        let printed = printed.expect("an answer");
        assert!(
            printed.starts_with("HTTP/1.1 200"),
            "{}",
            printed.lines().next().unwrap_or_default()
        );
        println!("served within {:?}", begun.elapsed());
    }
    is_over.store(true, Ordering::Relaxed);
    crowds
        .into_iter()
        .for_each(|crowd| crowd.join().expect("it ends"));
}

/// Keeps sixty-four connections open. Each requests without reading, and is replaced when it ends.
fn crowd(port: u16, ca: &[u8], certificates: &ClientIdentity, model: &str, is_over: &AtomicBool) {
    let address = format!("/v1/file/{model}");
    let mut connections: Vec<Option<RawClient>> = (0..64).map(|_| None).collect();
    while !is_over.load(Ordering::Relaxed) {
        for place in &mut connections {
            let requested = place.as_mut().map(|raw_client| raw_client.request(&address, ""));
            if !matches!(requested, Some(Ok(()))) {
                *place = RawClient::reach(port, ca, Some(certificates)).ok();
            }
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn a_will_and_properties_leave_nothing_in_the_brokers_memory() {
    let Some(mut lab) = lab(Broker::Embedded) else {
        return;
    };
    let mole = enroll_another(&lab, "mole");
    let (certificates, id) = certificates::of_device(&mole);
    let ca = authority(&lab).certificate;
    let reach = || RawClient::reach(lab.port, &ca, Some(&certificates)).expect("TLS");
    for leaf in [
        format!("state/{RUN}"),
        format!("log/{RUN}/a"),
        "telemetry".to_owned(),
    ] {
        let will = format!("regatta/v1/{id}/{leaf}");
        let code = reach().connect(&client_id(&id), Some(&will)).expect("CONNACK");
        assert_eq!(code, NOT_AUTHORIZED, "{leaf}");
    }
    let own_hello = format!("regatta/v1/{id}/hello");
    // The broker would store the properties with the will.
    let code = reach().connect_with_property(&client_id(&id), Some(&own_hello), &"x".repeat(60_000));
    assert_eq!(code.expect("CONNACK"), NOT_AUTHORIZED);
    let mut device = reach();
    assert_eq!(
        device
            .connect(&client_id(&id), Some(&own_hello))
            .expect("CONNACK"),
        SUCCESS
    );
    let before = lab.coordinator.as_ref().expect("it runs").peak_kib();
    let value = "x".repeat(60_000);
    for number in 0..1000 {
        let run = format!("01930e7a-6f00-7000-8000-{number:012x}");
        let topic = format!("regatta/v1/{id}/state/{run}");
        device
            .say_with_property(&topic, b"x", true, &value)
            .expect("it is taken");
    }
    // All earlier messages have been processed when this one is.
    let last = device.publish(&format!("regatta/v1/{id}/telemetry"), b"x");
    assert_eq!(last.expect("PUBACK"), SUCCESS);
    let grown = lab.coordinator.as_ref().expect("it runs").peak_kib() - before;
    println!(
        "1000 states with 60 kB of properties each: {} MiB more",
        grown >> 10
    );
    assert!(grown < 32 << 10, "{} MiB", grown >> 10);
    lab.start_device();
    lab.wait_for_device();
}

#[test]
fn clients_with_unknown_tokens_neither_write_nor_hold_up_a_run() {
    let Some(mut lab) = lab(Broker::Embedded) else {
        return;
    };
    lab.start_device();
    lab.wait_for_device();
    let port = port_of(&lab, "enroll_listen");
    let ca = authority(&lab).certificate;
    // Another process has the store's write lock, which a reader does not need.
    let store = rusqlite::Connection::open(lab.workspace().join("regatta.db")).expect("the store");
    store.busy_timeout(Duration::from_secs(10)).expect("SQLite");
    store.execute_batch("BEGIN IMMEDIATE").expect("the write lock");
    let begun = Instant::now();
    assert_eq!(
        enroll_with_unknown_token(port, &ca).expect("an answer"),
        unknown()
    );
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    store.execute_batch("ROLLBACK").expect("given back");
    // `REGATTA_UNKNOWN_CLIENTS=10000` for the long form.
    let clients = std::env::var("REGATTA_UNKNOWN_CLIENTS").ok();
    let clients = clients.and_then(|count| count.parse().ok()).unwrap_or(300_u64);
    let requested = Arc::new(AtomicU64::new(0));
    let crowd: Vec<_> = (0..4)
        .map(|_| {
            let (requested, ca) = (Arc::clone(&requested), ca.clone());
            std::thread::spawn(move || {
                while requested.fetch_add(1, Ordering::Relaxed) < clients {
                    // The port limits how often an address may connect.
                    while enroll_with_unknown_token(port, &ca).is_err() {
                        std::thread::sleep(Duration::from_millis(50));
                    }
                }
            })
        })
        .collect();
    let begun = Instant::now();
    let run = request_run(&lab, "1s");
    wait_until_done(&lab, &run);
    println!(
        "the run took {:?} beside {clients} clients with unknown tokens",
        begun.elapsed()
    );
    crowd
        .into_iter()
        .for_each(|raw_client| raw_client.join().expect("it ends"));
    println!("they took {:?}", begun.elapsed());
    let certificates: i64 = store
        .query_row("SELECT count(*) FROM certificates", [], |row| row.get(0))
        .expect("a count");
    assert_eq!(certificates, 1);
}

fn unknown() -> EnrollResponse {
    EnrollResponse::Refused(
        "unknown token: it was revoked or mistyped; make another with `regatta device add`".to_owned(),
    )
}

/// Sends a request that is correct except for its token.
fn enroll_with_unknown_token(port: u16, ca: &[u8]) -> io::Result<EnrollResponse> {
    let key = KeyPair::generate_for(&PKCS_ED25519).map_err(io::Error::other)?;
    let public_key: [u8; 32] = key.public_key_raw().try_into().map_err(io::Error::other)?;
    let purpose = EnrollPurpose::Enroll { secret: [7; 16] };
    let answer = RawClient::reach(port, ca, None)?.exchange(EXPORTER_LABEL, |connection| {
        let proof = key.sign(&EnrollRequest::statement(&purpose, &public_key, connection));
        let request = EnrollRequest {
            purpose: purpose.clone(),
            public_key,
            proof: proof.map_err(io::Error::other)?,
        };
        request.to_frame().map_err(io::Error::other)
    })?;
    EnrollResponse::from_frame(&answer).map_err(io::Error::other)
}

#[test]
fn connection_flood_from_one_address_does_not_block_others() {
    let Some(mut lab) = lab(Broker::Embedded) else {
        return;
    };
    let ports = [lab.port, port_of(&lab, "enroll_listen")];
    let is_over = Arc::new(AtomicBool::new(false));
    let opened = Arc::new(AtomicU64::new(0));
    let crowd: Vec<_> = ports
        .into_iter()
        .map(|port| {
            let (is_over, opened) = (Arc::clone(&is_over), Arc::clone(&opened));
            std::thread::spawn(move || knock(port, &is_over, &opened))
        })
        .collect();
    std::thread::sleep(Duration::from_secs(1));
    let begun = Instant::now();
    lab.start_device();
    lab.wait_for_device();
    let run = request_run(&lab, "500ms");
    wait_until_done(&lab, &run);
    let _ = enroll_another(&lab, "late");
    let seconds = begun.elapsed().as_secs_f64();
    is_over.store(true, Ordering::Relaxed);
    crowd
        .into_iter()
        .for_each(|raw_client| raw_client.join().expect("it ends"));
    println!(
        "a device connected, ran and enrolled in {seconds:.1} s beside {:.0} connections a second",
        opened.load(Ordering::Relaxed) as f64 / (seconds + 1.0)
    );
}

/// Connects from its own address again and again until the test ends.
fn knock(port: u16, is_over: &AtomicBool, opened: &AtomicU64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let to: SocketAddr = ([127, 0, 0, 1], port).into();
        let mut kept = std::collections::VecDeque::new();
        while !is_over.load(Ordering::Relaxed) {
            let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
            socket.bind(([127, 0, 0, 9], 0).into()).expect("its address");
            // A reset at the end, so that ports do not run out.
            let _ = socket.set_zero_linger();
            if let Ok(stream) = socket.connect(to).await {
                opened.fetch_add(1, Ordering::Relaxed);
                kept.push_back(stream);
            }
            if kept.len() > 400 {
                kept.pop_front();
            }
        }
    });
}

#[test]
fn a_device_keeps_its_newest_connections_and_loses_the_others_at_once() {
    let Some(lab) = lab(Broker::Embedded) else { return };
    let (certificates, id) = certificates::of_device(&lab.state());
    let ca = authority(&lab).certificate;
    let reach = || RawClient::reach(lab.port, &ca, Some(&certificates)).expect("TLS");
    let silent: Vec<RawClient> = (0..6).map(|_| reach()).collect();
    let (ended, ends) = mpsc::channel();
    for mut connection in silent {
        let ended = ended.clone();
        std::thread::spawn(move || connection.is_cut_off().then(|| ended.send(())));
    }
    // The broker decides which two end: overlapping handshakes end in any order.
    for _ in 0..2 {
        // A silent one is also ended after ten seconds.
        let end = ends.recv_timeout(Duration::from_secs(8));
        end.expect("a connection more than a device may have ends at once");
    }
    assert_eq!(reach().connect(&client_id(&id), None).expect("CONNACK"), SUCCESS);
}
