//! Tests of attacks on a lab's network: nobody without access can read, forge or disturb. Each attack is on the real binaries,
//! over the embedded broker and over a mosquitto with the configuration of `regatta init`. docs/security.md lists the results.
//! This file has the shared code.

#![expect(clippy::expect_used, reason = "test code")]

mod admission;
mod enrollment;
mod hostile;
mod page_readers;
mod resources;
mod rights;
mod tls;

use std::{
    fs,
    io::Write as _,
    net::TcpStream,
    path::{Path, PathBuf},
    process::Command,
};

use regatta_tests::{
    Broker, Lab,
    certificates::{self, Authority},
    raw_client::{ClientIdentity, RawClient, SUCCESS},
    succeed_output,
};

const RUN: &str = "01930e7a-6f00-7000-8000-000000000001";
const OTHER: &str = "fedcba9876543210fedcba9876543210";
/// A year in the past, and one in the future.
const PAST: i32 = 2020;
const FUTURE: i32 = 2090;

/// A lab whose coordinator serves, and whose device is enrolled and not running.
fn lab(broker: Broker) -> Option<Lab> {
    let mut lab = Lab::secure(broker)?;
    lab.start_coordinator();
    lab.enroll_device();
    Some(lab)
}

fn authority(lab: &Lab) -> Authority {
    Authority::of_lab(&lab.workspace())
}

fn client_id(device: &str) -> String {
    format!("regatta-agent-{device}")
}

/// Returns whether the broker admits this certificate.
fn is_let_in(lab: &Lab, certificates: Option<&ClientIdentity>, client_id: &str) -> bool {
    let authority = authority(lab).certificate;
    RawClient::reach(lab.port, &authority, certificates)
        .and_then(|mut raw_client| raw_client.connect(client_id, None))
        .is_ok_and(|code| code == SUCCESS)
}

/// The test's client with the identity of the lab's device.
fn own_device(lab: &Lab) -> (RawClient, String) {
    let (certificates, id) = certificates::of_device(&lab.state());
    let mut device =
        RawClient::reach(lab.port, &authority(lab).certificate, Some(&certificates)).expect("TLS");
    assert_eq!(device.connect(&client_id(&id), None).expect("CONNACK"), SUCCESS);
    (device, id)
}

/// Requests a run of this duration and returns its id.
fn request_run(lab: &Lab, duration: &str) -> String {
    lab.request_run(&[
        "--engine",
        "tract",
        "--scenario",
        "Offline",
        "--mode",
        "AccuracyOnly",
        "--duration",
        duration,
    ])
}

fn wait_until_done(lab: &Lab, run: &str) {
    lab.wait_for_phase(run, "done");
    let [coordinator, device] = lab.hashes(run);
    assert_eq!(coordinator, device);
    assert!(coordinator.contains_key("evidence.sig"));
}

/// Enrolls another device and returns its state directory.
fn enroll_another(lab: &Lab, name: &str) -> PathBuf {
    let config = lab.device_directory().join(format!("{name}.toml"));
    fs::write(&config, format!("name = \"{name}\"\nstate_dir = \"{name}\"\n")).expect("a configuration");
    let mut agent = Command::new(regatta_tests::agent());
    let _ = succeed_output(
        agent
            .arg("enroll")
            .arg("--config")
            .arg(&config)
            .arg(lab.token(name)),
    );
    lab.device_directory().join(name)
}

/// The port of one of the coordinator's addresses, by its name in `regatta.toml`.
fn port_of(lab: &Lab, name: &str) -> u16 {
    let config = fs::read_to_string(lab.workspace().join("regatta.toml")).expect("regatta.toml");
    let line = config
        .lines()
        .find(|line| line.starts_with(name))
        .expect("its line");
    let digits = line.rsplit(':').next().expect("a port").trim_end_matches('"');
    digits.parse().expect("a port")
}

/// Opens more handshakes than the limiter admits, each with the beginning of a ClientHello.
fn stall(port: u16) -> Vec<TcpStream> {
    let begin = |_| {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).expect("a socket");
        let _ = socket.write_all(&[0x16, 3, 1, 2]);
        socket
    };
    (0..300).map(begin).collect()
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
