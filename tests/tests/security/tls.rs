//! Tests of the coordinator's three ports with OpenSSL's client: TLS 1.3 only, and no resumed session.

use std::{
    fs,
    io::Write as _,
    path::PathBuf,
    process::{Command, Stdio},
};

use regatta_tests::{Broker, Lab, printed, succeed_output};
use serde_json::Value;

use crate::{lab, port_of};

#[test]
fn tls_1_2_is_refused_and_no_session_is_resumed() {
    let Some(lab) = lab(Broker::Embedded) else { return };
    let (certificate, key) = own_papers(&lab);
    for (port, begin) in [
        (lab.port, mqtt_connect()),
        (
            port_of(&lab, "assets_listen"),
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        ),
        (port_of(&lab, "enroll_listen"), Vec::new()),
    ] {
        let session = lab.device_directory().join(format!("session-{port}"));
        let client = |words: &[&str]| {
            let mut client = Command::new("openssl");
            client
                .args(["s_client", "-connect", &format!("127.0.0.1:{port}")])
                .args(["-servername", "regatta-broker", "-quiet", "-no_ign_eof"])
                .arg("-cert")
                .arg(&certificate)
                .arg("-key")
                .arg(&key)
                .args(words);
            talk(client, &begin)
        };
        let (old, old_answers) = client(&["-tls1_2"]);
        assert!(
            !old && old_answers.contains("protocol version"),
            "{port}: {old_answers}"
        );
        let keep = ["-tls1_3", "-msg", "-sess_out", session.to_str().expect("UTF-8")];
        let (_, heard) = client(&keep);
        assert!(heard.contains("Finished"), "{port}: TLS 1.3 is spoken: {heard}");
        assert!(!heard.contains("NewSessionTicket"), "{port}: {heard}");
        assert!(!session.exists(), "{port}: nothing to resume");
    }
}

/// Runs a client with `begin` as input, and closes the input after an answer could arrive. Returns whether it succeeded, and its
/// output.
fn talk(mut client: Command, begin: &[u8]) -> (bool, String) {
    let mut client = client
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("openssl starts");
    let mut input = client.stdin.take().expect("a pipe");
    // It may have ended already.
    let _ = input.write_all(begin);
    let ended = std::thread::spawn(move || client.wait_with_output().expect("openssl ends"));
    for _ in 0..20 {
        if ended.is_finished() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    drop(input);
    let output = ended.join().expect("a thread of the test");
    (output.status.success(), printed(&output))
}

/// Returns an MQTT 5 CONNECT of an arbitrary client.
fn mqtt_connect() -> Vec<u8> {
    let body = [b"\0\x04MQTT\x05\x02\0\x3c\0".as_slice(), b"\0\x01x"].concat();
    [
        &[0x10, u8::try_from(body.len()).expect("a short packet")],
        body.as_slice(),
    ]
    .concat()
}

/// The device's certificate and key as files that OpenSSL reads.
fn own_papers(lab: &Lab) -> (PathBuf, PathBuf) {
    let enrollment = fs::read(lab.state().join("enrollment.json")).expect("an enrollment");
    let enrollment: Value = serde_json::from_slice(&enrollment).expect("JSON");
    let path = |name: &str| lab.device_directory().join(name);
    let certificate = path("device.pem");
    fs::write(
        &certificate,
        enrollment["certificate"].as_str().expect("a certificate"),
    )
    .expect("written");
    // Ed25519 in PKCS #8 without the public key, which is all that OpenSSL reads (RFC 8410).
    let stored = fs::read(lab.state().join("device.key")).expect("the device's key");
    let head = b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";
    let der = path("device.key.der");
    fs::write(&der, [head.as_slice(), &stored[16..48]].concat()).expect("written");
    let key = path("device.key.pem");
    let mut convert = Command::new("openssl");
    convert
        .args(["pkey", "-inform", "DER", "-in"])
        .arg(&der)
        .arg("-out")
        .arg(&key);
    let _ = succeed_output(&mut convert);
    (certificate, key)
}
