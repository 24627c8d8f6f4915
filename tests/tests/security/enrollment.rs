//! Tests of enrollment, once per token and with the device's own key, and of the renewal of certificates.

use std::fs;

use regatta_tests::{Broker, DEVICE, Lab, Process, certificates, eventually, printed, succeed_output};
use serde_json::Value;

use crate::{client_id, files_below, is_let_in, lab};

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
        (output.status.code(), printed(&output))
    };
    let token = lab.token("first");
    eventually("the first device to enroll", 20, || {
        enroll(&token, "one").0 == Some(0)
    });
    // An answer may get lost: the same device may repeat its request.
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
        printed(&added)
    );
    for name in ["../x", "a/b", "", "a b", &"x".repeat(10_000), "-x"] {
        let added = lab
            .regatta()
            .args(["device", "add", "--", name])
            .output()
            .expect("regatta starts");
        assert_eq!(added.status.code(), Some(2), "{name}");
    }
    let short = lab.json(&["device", "add", "late", "--lifetime", "1ms"]);
    let (code, text) = enroll(short["token"].as_str().expect("a token"), "two");
    assert!(code == Some(3) && text.contains("expired"), "{code:?} {text}");
    // A token with another authority's fingerprint: the device does not trust the coordinator at that address.
    let fresh = lab.token("third");
    let mut parts: Vec<String> = fresh.split('/').map(str::to_owned).collect();
    parts[3] = "ab".repeat(32);
    let (code, text) = enroll(&parts.join("/"), "two");
    assert!(
        code == Some(3) && !lab.device_directory().join("two/enrollment.json").exists(),
        "{code:?} {text}"
    );
    let (code, text) = enroll(&fresh.replace(&fresh[fresh.len() - 8..], "00000000"), "two");
    assert!(
        code == Some(3) && text.contains("unknown token"),
        "{code:?} {text}"
    );
    assert_eq!(enroll("regatta-enroll://x", "two").0, Some(2));
    assert_eq!(enroll(&fresh, "two").0, Some(0));
    // A second token on an enrolled device is usually meant for another one: the names stay, and the token can still be used.
    let second = lab.token("fourth");
    let (code, text) = enroll(&second, "two");
    assert!(
        code == Some(2)
            && text.contains("enrolled as third already, and the token is for fourth")
            && text.contains("--config FILE")
            && text.contains("--rename"),
        "{code:?} {text}"
    );
    assert_eq!(enroll(&second, "three").0, Some(0));
    // Only the device has the key, and the coordinator does not have the secret of a token.
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
fn a_device_is_renamed_only_by_request_and_returns_only_with_its_own_key() {
    let Some(mut lab) = Lab::secure(Broker::Embedded) else {
        return;
    };
    lab.start_coordinator();
    lab.enroll_device();
    let enroll = |words: &[&str], token: &str| {
        let enrolled = lab.agent("enroll").args(words).arg(token).output();
        let enrolled = enrolled.expect("the agent starts");
        (enrolled.status.code(), printed(&enrolled))
    };
    let enrolled = enroll(&["--rename"], &lab.token("barge"));
    assert!(
        enrolled.0 == Some(0) && enrolled.1.contains("enrolled as barge"),
        "{enrolled:?}"
    );
    // Its earlier name is free again.
    let _ = lab.token(DEVICE);
    let again = |name: &str| {
        let added = lab
            .regatta()
            .args(["device", "add", name, "--again", "--format", "json"])
            .output();
        added.expect("regatta starts")
    };
    let refused = again("nobody");
    assert_eq!(refused.status.code(), Some(2), "{}", printed(&refused));
    let added: Value = serde_json::from_slice(&again("barge").stdout).expect("JSON");
    let token = added["token"].as_str().expect("a token").to_owned();
    let other = crate::enroll_another(&lab, "raft");
    let config = lab.device_directory().join("raft.toml");
    let stolen = std::process::Command::new(regatta_tests::agent())
        .arg("enroll")
        .arg("--rename")
        .arg("--config")
        .arg(&config)
        .arg(&token)
        .output()
        .expect("the agent starts");
    assert!(
        stolen.status.code() == Some(3) && printed(&stolen).contains("which is another device"),
        "{} {}",
        other.display(),
        printed(&stolen)
    );
    let returned = enroll(&[], &token);
    assert!(
        returned.0 == Some(0) && returned.1.contains("enrolled as barge"),
        "{returned:?}"
    );
}

#[test]
fn a_device_that_was_started_first_goes_on_by_itself_once_it_is_enrolled() {
    let Some(mut lab) = Lab::secure(Broker::Embedded) else {
        return;
    };
    lab.start_coordinator();
    lab.device = Some(Process::start(
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
    lab.enroll_device();
    lab.wait_for_device();
}

#[test]
fn a_certificate_is_renewed_by_itself_before_it_ends_unless_the_device_was_removed() {
    let Some(mut lab) = lab(Broker::Embedded) else {
        return;
    };
    // The end of the certificate according to the device, which differs from the coordinator's.
    let path = lab.state().join("enrollment.json");
    let soon = "2026-12-01T00:00:00Z";
    let enrollment =
        || -> Value { serde_json::from_slice(&fs::read(&path).expect("it is there")).expect("JSON") };
    let end_soon = || {
        let mut changed = enrollment();
        changed["not_after"] = soon.into();
        fs::write(&path, changed.to_string()).expect("written");
    };
    let first = enrollment()["certificate"].clone();
    end_soon();
    lab.start_device();
    eventually("the certificate to be renewed", 20, || {
        enrollment()["not_after"] != soon
    });
    assert_ne!(enrollment()["certificate"], first);
    lab.wait_for_device();
    drop(lab.device.take());
    let (certificates, id) = certificates::of_device(&lab.state());
    assert!(
        is_let_in(&lab, Some(&certificates), &client_id(&id)),
        "the new one is good"
    );
    let _ = succeed_output(lab.regatta().args(["device", "remove", DEVICE, "--yes"]));
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

/// A token on a board survives a temporary fault of the coordinator, such as a full disk.
#[test]
fn a_passing_fault_of_the_coordinator_leaves_an_images_token_good() {
    let Some(mut lab) = Lab::secure(Broker::Embedded) else {
        return;
    };
    lab.start_coordinator();
    let token = lab.token(DEVICE);
    let store = rusqlite::Connection::open(lab.workspace().join("regatta.db")).expect("the store");
    store
        .execute_batch("CREATE TRIGGER fault BEFORE INSERT ON members BEGIN SELECT RAISE(ABORT, 'full'); END")
        .expect("a fault");
    fs::create_dir_all(lab.state()).expect("a directory of the lab");
    let waiting = lab.state().join("enrollment-token");
    fs::write(&waiting, token).expect("a token");
    lab.start_unenrolled_device();
    eventually("the coordinator to be at fault", 20, || {
        lab.coordinator
            .as_ref()
            .is_some_and(|coordinator| coordinator.output().contains("an enrollment failed"))
    });
    eventually("the device to hear of it", 20, || {
        lab.device
            .as_ref()
            .is_some_and(|device| device.output().contains("cannot enroll this device now"))
    });
    assert!(waiting.exists(), "the token waits on");
    store
        .execute_batch("DROP TRIGGER fault")
        .expect("the fault has passed");
    lab.wait_for_device();
    assert!(!waiting.exists() && !lab.state().join("enrollment-token.refused").exists());
}

#[test]
fn an_expired_certificate_is_not_renewed_and_renewals_have_an_interval() {
    let Some(mut lab) = lab(Broker::Embedded) else {
        return;
    };
    let store = rusqlite::Connection::open(lab.workspace().join("regatta.db")).expect("the store");
    let certificates = || -> i64 {
        let count = store.query_row("SELECT count(*) FROM certificates", [], |row| row.get(0));
        count.expect("a count")
    };
    let path = lab.state().join("enrollment.json");
    let end_soon = || {
        let text = fs::read(&path).expect("it is there");
        let mut changed: Value = serde_json::from_slice(&text).expect("JSON");
        changed["not_after"] = "2026-12-01T00:00:00Z".into();
        fs::write(&path, changed.to_string()).expect("written");
    };
    let mut must_wait = false;
    for _ in 0..6 {
        end_soon();
        lab.start_device();
        let answers = || {
            let printed = lab.device.as_ref().expect("it runs").output();
            (
                printed.contains("is renewed"),
                printed.contains("several certificates within the hour"),
            )
        };
        eventually("the device to ask", 20, || {
            must_wait = answers().1;
            must_wait || answers().0
        });
        drop(lab.device.take());
        fs::remove_file(lab.device_log()).expect("the device's log");
        if must_wait {
            break;
        }
    }
    assert!(
        must_wait && certificates() == 5,
        "one, and four renewals: {}",
        certificates()
    );
    store
        .execute("UPDATE members SET not_after = '2020-01-01T00:00:00Z'", [])
        .expect("it has run out");
    end_soon();
    lab.start_device();
    eventually("the renewal to be refused", 20, || {
        lab.device
            .as_ref()
            .expect("it runs")
            .output()
            .contains("has expired: enroll it again")
    });
    assert_eq!(certificates(), 5);
}
