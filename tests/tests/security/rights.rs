//! Tests of the topics of an admitted device: it may only publish and subscribe to its own. Only the coordinator can command,
//! whatever the broker does.

use std::time::Duration;

use rcgen::ExtendedKeyUsagePurpose::ClientAuth;
use regatta_tests::{
    Broker, certificates, eventually,
    raw_client::{NOT_AUTHORIZED, RawClient, SUCCESS},
};

use crate::{FUTURE, OTHER, RUN, authority, client_id, lab, own_device, request_run, wait_until_done};

#[test]
fn a_device_has_its_own_topics_only_in_the_embedded_broker() {
    let Some(lab) = lab(Broker::Embedded) else { return };
    let (certificates, id) = certificates::of_device(&lab.state());
    let authority = authority(&lab).certificate;
    let reach = || RawClient::reach(lab.port, &authority, Some(&certificates)).expect("TLS");
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
        let publish = |device: &mut RawClient, whose: &str| {
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
        // mosquitto answers 0x10 when nobody subscribes.
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
    // mosquitto grants any filter, and delivers nothing that the access rules forbid.
    for filter in [
        "#",
        "regatta/v1/#",
        "regatta/v1/+/cmd/+",
        &format!("regatta/v1/{OTHER}/cmd/+"),
    ] {
        let _ = device.subscribe(filter).expect("SUBACK");
    }
    let (certificates, _) = authority(&lab).issue(Some("coordinator"), ClientAuth, FUTURE);
    let mut coordinator =
        RawClient::reach(lab.port, &authority(&lab).certificate, Some(&certificates)).expect("TLS");
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
fn device_executes_only_commands_signed_by_the_coordinator() {
    let Some(mut lab) = lab(Broker::Mosquitto) else {
        return;
    };
    // A client with all rights on the broker: its operator, or a thief of the coordinator's certificate without its signing key.
    let (certificates, _) = authority(&lab).issue(Some("coordinator"), ClientAuth, FUTURE);
    let (_, id) = certificates::of_device(&lab.state());
    lab.start_device();
    lab.wait_for_device();
    let run = request_run(&lab, "1s");
    wait_until_done(&lab, &run);
    drop(lab.coordinator.take());
    let mut thief =
        RawClient::reach(lab.port, &authority(&lab).certificate, Some(&certificates)).expect("TLS");
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
