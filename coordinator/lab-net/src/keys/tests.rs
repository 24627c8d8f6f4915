//! Tests of the lab's keys: private on disk, never replaced, and certificates that openssl accepts.

use std::process::Command;

use regatta_test_requirements::program;
use ring::signature::{ED25519, UnparsedPublicKey};

use super::*;

#[test]
fn keys_are_made_once_and_for_their_owner_only() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("keys");
    let keys = Keys::create(&place).unwrap();
    let mode = |name: &str| fs::metadata(place.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode(CA_KEY), mode(COORDINATOR_KEY), mode(".")),
        (0o600, 0o600, 0o700)
    );
    assert!(
        matches!(Keys::create(&place), Err(KeysError::Io { .. })),
        "never replaced"
    );
    let again = Keys::load(&place).unwrap();
    assert_eq!(again.coordinator_public_key(), keys.coordinator_public_key());
    assert_eq!(again.authority().fingerprint(), keys.authority().fingerprint());

    fs::set_permissions(place.join(CA_KEY), fs::Permissions::from_mode(0o640)).unwrap();
    assert!(matches!(
        Keys::load(&place),
        Err(KeysError::Exposed { mode: 0o640, .. })
    ));
}

#[test]
fn a_commands_signature_fits_its_device_run_number_and_bytes_only() {
    let dir = tempfile::tempdir().unwrap();
    let keys = Keys::create(dir.path()).unwrap();
    let device = DeviceId::of_public_key(&[7; 32]);
    let run = RunId::now();
    let signed = keys.sign_command(&device, run, 5, b"command".to_vec());
    let key = UnparsedPublicKey::new(&ED25519, keys.coordinator_public_key());
    let fits = |device: &DeviceId, run, number, command: &[u8]| {
        key.verify(
            &SignedCommand::statement(device, run, number, command),
            &signed.signature,
        )
        .is_ok()
    };
    assert!(fits(&device, run, 5, b"command"));
    assert!(!fits(&DeviceId::of_public_key(&[8; 32]), run, 5, b"command"));
    assert!(!fits(&device, RunId::now(), 5, b"command"));
    assert!(!fits(&device, run, 6, b"command"));
    assert!(!fits(&device, run, 5, b"Command"));
}

#[test]
fn openssl_reads_what_the_authority_issues() {
    if program("openssl", "openssl").is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let keys = Keys::create(&dir.path().join("keys")).unwrap();
    let place = |name: &str| dir.path().join(name);
    let public_key = [9; 32];
    let id = DeviceId::of_public_key(&public_key);
    let issued = keys.authority().device(&id, public_key).unwrap();
    let server = keys
        .authority()
        .server(&["lab.local".to_owned(), "10.0.0.5".to_owned()])
        .unwrap();
    let revoked = keys
        .authority()
        .revocations(std::slice::from_ref(&issued.serial), 3)
        .unwrap();
    for (name, text) in [
        ("device.pem", &issued.certificate),
        ("server.key", &server.key),
        ("server.pem", &server.certificate),
        ("crl.pem", &revoked),
    ] {
        fs::write(place(name), text).unwrap();
    }
    let ca = place("keys").join(CA_CERTIFICATE);
    let openssl = |words: &[&str], file: &str| {
        let output = Command::new("openssl")
            .args(words)
            .arg(place(file))
            .output()
            .unwrap();
        let text =
            [output.stdout, output.stderr].map(|printed| String::from_utf8_lossy(&printed).into_owned());
        (output.status.code() == Some(0), text.concat())
    };
    let ca = ca.to_str().unwrap();
    let crl = place("crl.pem");
    let crl = crl.to_str().unwrap();
    for (words, file, good, printed) in [
        (
            &["verify", "-CAfile", ca, "-purpose", "sslclient"][..],
            "device.pem",
            true,
            "OK",
        ),
        (
            &["verify", "-CAfile", ca, "-purpose", "sslserver"],
            "device.pem",
            false,
            "purpose",
        ),
        (
            &[
                "verify",
                "-CAfile",
                ca,
                "-purpose",
                "sslserver",
                "-verify_hostname",
                "lab.local",
            ],
            "server.pem",
            true,
            "OK",
        ),
        (
            &[
                "verify",
                "-CAfile",
                ca,
                "-purpose",
                "sslserver",
                "-verify_ip",
                "10.0.0.5",
            ],
            "server.pem",
            true,
            "OK",
        ),
        (
            &["verify", "-CAfile", ca, "-verify_hostname", "regatta-broker"],
            "server.pem",
            true,
            "OK",
        ),
        (
            &["verify", "-CAfile", ca, "-purpose", "sslclient"],
            "server.pem",
            false,
            "purpose",
        ),
        (
            &["verify", "-crl_check", "-CAfile", ca, "-CRLfile", crl],
            "device.pem",
            false,
            "revoked",
        ),
        (
            &["verify", "-crl_check", "-CAfile", ca, "-CRLfile", crl],
            "server.pem",
            true,
            "OK",
        ),
        (&["pkey", "-noout", "-in"], "server.key", true, ""),
        (
            &["x509", "-noout", "-subject", "-in"],
            "device.pem",
            true,
            id.as_str(),
        ),
    ] {
        let (ok, text) = openssl(words, file);
        assert!(
            ok == good && text.contains(printed),
            "openssl {words:?} {file}: {text}"
        );
    }
}
