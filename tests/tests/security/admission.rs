//! Tests of admission: only devices with a certificate of the lab, and no removed device.

use rcgen::ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
use regatta_tests::{
    Broker, DEVICE, Lab,
    certificates::{self, Authority},
    eventually, printed,
    raw_client::{NOT_AUTHORIZED, RawClient, SUCCESS},
    succeed_output,
};
use serde_json::Value;

use crate::{FUTURE, PAST, authority, client_id, is_let_in, lab, own_device, request_run, wait_until_done};

fn a_run_arrives_whole_and_verifies(broker: Broker) {
    let Some(mut lab) = Lab::secure(broker) else {
        return;
    };
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    let run = request_run(&lab, "1s");
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
    assert_eq!(verified.status.code(), Some(0), "{}", printed(&verified));
    let examined = lab
        .regatta()
        .args(["device", "doctor", DEVICE, "--format", "json"])
        .output();
    let examined = examined.expect("regatta starts");
    assert!(
        matches!(examined.status.code(), Some(0 | 1)),
        "{}",
        printed(&examined)
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
fn run_is_delivered_completely_and_verifies_via_the_embedded_broker() {
    a_run_arrives_whole_and_verifies(Broker::Embedded);
}

#[test]
fn run_is_delivered_completely_and_verifies_via_mosquitto() {
    a_run_arrives_whole_and_verifies(Broker::Mosquitto);
}

fn only_good_certificates_are_let_in(broker: Broker) {
    let Some(lab) = lab(broker) else { return };
    let ours = authority(&lab);
    let theirs = Authority::self_made(&ours);
    let (own, id) = certificates::of_device(&lab.state());
    assert!(is_let_in(&lab, Some(&own), &client_id(&id)), "the device itself");
    assert!(!is_let_in(&lab, None, &client_id(&id)), "no certificate");
    for (what, (certificates, device)) in [
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
        assert!(
            !is_let_in(&lab, Some(&certificates), &client_id(&device)),
            "{what}"
        );
        assert!(
            !is_let_in(&lab, Some(&certificates), &client_id(&id)),
            "{what}, as our device"
        );
    }
    if broker == Broker::Embedded {
        // The log says why a device is not admitted.
        let log = lab.coordinator.as_ref().expect("it runs").output();
        assert!(
            log.contains("the TLS handshake with the broker failed: invalid peer certificate"),
            "{log}"
        );
    }
    // A certificate of the lab's authority over a key that never enrolled: at best it receives its own messages.
    let (certificates, device) = ours.issue(None, ClientAuth, FUTURE);
    let mut unknown = RawClient::reach(lab.port, &ours.certificate, Some(&certificates)).expect("TLS");
    let code = unknown.connect(&client_id(&device), None).expect("CONNACK");
    match broker {
        Broker::Embedded => assert_eq!(code, NOT_AUTHORIZED),
        Broker::Mosquitto => {
            let topic = format!("regatta/v1/{device}/hello");
            assert_eq!(unknown.publish(&topic, b"anything").expect("PUBACK"), SUCCESS);
            eventually("the coordinator to refuse it", 20, || {
                let log = lab.coordinator.as_ref().expect("it runs").output();
                log.contains("device that is not enrolled")
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
fn a_removed_device_is_cut_off_at_once_and_does_not_come_back() {
    let Some(mut lab) = lab(Broker::Embedded) else {
        return;
    };
    let (mut device, id) = own_device(&lab);
    let topic = format!("regatta/v1/{id}/telemetry");
    assert_eq!(device.publish(&topic, b"x").expect("PUBACK"), SUCCESS);
    let _ = succeed_output(lab.regatta().args(["device", "remove", DEVICE, "--yes"]));
    assert!(device.is_cut_off(), "the live connection ends");
    let (certificates, _) = certificates::of_device(&lab.state());
    assert!(
        !is_let_in(&lab, Some(&certificates), &client_id(&id)),
        "and no other begins"
    );
    // Nor by enrolling once more with the same key.
    let enrolled = lab
        .agent("enroll")
        .arg(lab.token("boat-2"))
        .output()
        .expect("the agent starts");
    assert_eq!(enrolled.status.code(), Some(3), "{}", printed(&enrolled));
    assert!(
        printed(&enrolled).contains("was removed"),
        "{}",
        printed(&enrolled)
    );
    // The real agent continues to try, and says why it is refused.
    lab.start_device();
    eventually("the agent to say that it is refused", 20, || {
        lab.device
            .as_ref()
            .expect("it runs")
            .output()
            .contains("refuses this device: it was removed from the lab")
    });
    comes_back_with_a_new_identity(&mut lab, &id);
}

/// The way back of a removed device: a new key. What it signed before stays where it is, and is no message of the new identity.
fn comes_back_with_a_new_identity(lab: &mut Lab, former: &str) {
    let token = lab.token("boat-3");
    let enroll = |lab: &Lab, words: &[&str]| {
        let enrolled = lab.agent("enroll").args(words).arg(&token).output();
        let enrolled = enrolled.expect("the agent starts");
        (enrolled.status.code(), printed(&enrolled))
    };
    let (code, text) = enroll(lab, &["--new-identity"]);
    assert!(
        code == Some(2) && text.contains("stop `regatta-agent serve` first"),
        "a running daemon keeps its identity: {text}"
    );
    drop(lab.device.take());
    let (code, text) = enroll(lab, &[]);
    assert!(
        code == Some(3) && text.contains("was removed from the lab") && text.contains("--new-identity"),
        "{text}"
    );
    let run = lab.state().join("runs").join(crate::RUN);
    std::fs::create_dir_all(&run).expect("a directory");
    let (code, text) = enroll(lab, &["--new-identity"]);
    let kept = lab.state().join(format!("former-{former}"));
    assert!(
        code == Some(0) && text.contains("enrolled as boat-3") && text.contains(&kept.display().to_string()),
        "{text}"
    );
    assert!(!run.exists() && kept.join("runs").join(crate::RUN).exists() && kept.join("device.key").exists());
    let (certificates, id) = certificates::of_device(&lab.state());
    assert_ne!(id, former);
    assert!(is_let_in(lab, Some(&certificates), &client_id(&id)));
}

#[test]
fn the_runs_of_a_removed_device_end_and_its_name_is_free() {
    let Some(mut lab) = lab(Broker::Embedded) else {
        return;
    };
    lab.start_device();
    lab.wait_for_device();
    let request = |duration: &str| {
        let words = [
            "--engine",
            "sim",
            "--scenario",
            "SingleStream",
            "--mode",
            "PerformanceOnly",
        ];
        lab.request_run(&[&words[..], &["--duration", duration]].concat())
    };
    let [running, queued] = ["60s", "1s"].map(request);
    lab.wait_for_phase(&running, "running");
    let refused = lab.regatta().args(["device", "remove", DEVICE]).output();
    let refused = refused.expect("regatta starts");
    assert!(
        refused.status.code() == Some(2) && printed(&refused).contains(&running),
        "without a terminal it needs --yes, and names what is given up: {}",
        printed(&refused)
    );
    let _ = succeed_output(lab.regatta().args(["device", "remove", DEVICE, "--yes"]));
    for run in [&running, &queued] {
        eventually("the record", 30, || lab.show(run)["recorded"].as_str().is_some());
        let shown = lab.show(run);
        assert!(
            matches!(shown["phase"].as_str(), Some("failed" | "aborted"))
                && shown["reason"]
                    .as_str()
                    .is_some_and(|why| why.contains("removed")),
            "{shown}"
        );
    }
    let _ = lab.token(DEVICE);
}

#[test]
fn a_removed_device_has_no_rights_in_mosquitto_at_once_and_no_connection_after_its_restart() {
    let Some(mut lab) = lab(Broker::Mosquitto) else {
        return;
    };
    let (mut device, id) = own_device(&lab);
    let topic = format!("regatta/v1/{id}/telemetry");
    assert!(device.publish(&topic, b"x").expect("PUBACK") < 0x80);
    let removed = succeed_output(lab.regatta().args(["device", "remove", DEVICE, "--yes"]));
    assert!(
        printed(&removed).contains("mosquitto has reloaded its rights"),
        "{}",
        printed(&removed)
    );
    eventually("mosquitto to forbid it", 10, || {
        // It may also end the connection.
        device
            .publish(&topic, b"x")
            .map_or(true, |code| code == NOT_AUTHORIZED)
    });
    lab.mosquitto.as_mut().expect("this lab has one").restart();
    let (certificates, _) = certificates::of_device(&lab.state());
    assert!(
        !is_let_in(&lab, Some(&certificates), &client_id(&id)),
        "its certificate is on the list"
    );
}
