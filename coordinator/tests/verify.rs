//! Tests of changes to a recorded run: `runs verify` fails and names the file.

#![expect(clippy::unwrap_used, reason = "test code")]

mod support;

use std::{fs, path::Path};

use support::{Dice, coordinator::Coordinator, delivering::Faults, device::SimulatedDevice, eventually};

/// A coordinator with one recorded run.
fn with_a_run() -> (Coordinator, String) {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let mut device = SimulatedDevice::connect(coordinator.port, 1);
    device.say_hello(Vec::new());
    eventually("the device", 30, || {
        coordinator.json(&["device", "list"])["devices"][0]["online"].as_bool()
    });
    let run = coordinator.request_run("PerformanceOnly");
    device.play(Faults::default(), &mut Dice::new(3));
    coordinator.record(&run);
    coordinator.kill();
    (coordinator, run)
}

/// Runs `runs verify`; returns exit code and findings: file and problem.
fn verify(coordinator: &Coordinator, what: &str) -> (Option<i32>, Vec<(String, String)>) {
    let output = coordinator.output(&["runs", "verify", what, "--format", "json"]);
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let findings = printed["runs"][0]["findings"].as_array().unwrap();
    let found = findings
        .iter()
        .map(|finding| (text(&finding["file"]), text(&finding["problem"])));
    (output.status.code(), found.collect())
}

fn verify_directory(coordinator: &Coordinator, directory: &Path) -> (Option<i32>, Vec<(String, String)>) {
    verify(coordinator, directory.to_str().unwrap())
}

/// Flips one bit in the middle of a file.
fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn verify_names_files_changed_after_delivery() {
    let (coordinator, run) = with_a_run();
    let place = coordinator.path(&format!("runs/{run}"));
    let (code, found) = verify(&coordinator, &run);
    assert_eq!((code, found.len()), (Some(0), 0), "{found:?}");
    let log = fs::read_dir(place.join("files"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .find(|name| !name.starts_with("evidence"))
        .unwrap();
    type Change = fn(&Path);
    let flip_it: Change = flip;
    let cut: Change = |path| {
        let bytes = fs::read(path).unwrap();
        fs::write(path, &bytes[..bytes.len() - 1]).unwrap();
    };
    let remove: Change = |path| fs::remove_file(path).unwrap();
    let add: Change = |path| fs::write(path, "more").unwrap();
    // A changed but readable record, with a better figure.
    let improve: Change = |path| {
        let text = fs::read_to_string(path).unwrap();
        let better = text.replacen("\"complete\": true", "\"complete\": false", 1);
        assert_ne!(text, better);
        fs::write(path, better).unwrap();
    };
    for (what, file, change, named, problem) in [
        (
            "a bit of a log",
            format!("files/{log}"),
            flip_it,
            log.as_str(),
            "changed: same length",
        ),
        (
            "a log's end",
            format!("files/{log}"),
            cut,
            &log,
            "the device logged",
        ),
        ("a log", format!("files/{log}"), remove, &log, "missing"),
        (
            "one file more",
            "files/extra.txt".to_owned(),
            add,
            "extra.txt",
            "added",
        ),
        (
            "the evidence",
            "files/evidence.json".to_owned(),
            flip_it,
            "evidence.json",
            "",
        ),
        (
            "no evidence",
            "files/evidence.json".to_owned(),
            remove,
            "evidence.json",
            "missing",
        ),
        (
            "the signature",
            "files/evidence.sig".to_owned(),
            flip_it,
            "evidence.json",
            "does not match",
        ),
        (
            "no signature",
            "files/evidence.sig".to_owned(),
            remove,
            "evidence.sig",
            "missing",
        ),
        (
            "the spec",
            "spec.json".to_owned(),
            flip_it,
            "spec.json",
            "changed",
        ),
        (
            "no record",
            "record.json".to_owned(),
            remove,
            "record.json",
            "missing",
        ),
        (
            "the record",
            "record.json".to_owned(),
            improve,
            "record.json",
            "remembers another",
        ),
    ] {
        let path = place.join(&file);
        let before = fs::read(&path).ok();
        change(&path);
        let (code, found) = verify(&coordinator, &run);
        assert_eq!(code, Some(1), "{what}: {found:?}");
        assert!(
            found
                .iter()
                .any(|(file, printed)| file == named && printed.contains(problem)),
            "{what}: {found:?}"
        );
        match before {
            Some(bytes) => fs::write(&path, bytes).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
    }
    assert_eq!(verify(&coordinator, &run).0, Some(0), "all is as it was");
    assert_eq!(
        coordinator.output(&["runs", "verify"]).status.code(),
        Some(0),
        "every run"
    );
    exported_it_is_verified_without_its_workspace(&coordinator, &run);
}

fn exported_it_is_verified_without_its_workspace(coordinator: &Coordinator, run: &str) {
    let out = coordinator.path("exported");
    let place = out.to_str().unwrap();
    assert!(
        coordinator
            .output(&["runs", "export", run, "--output", place])
            .status
            .success()
    );
    let elsewhere = tempfile::tempdir().unwrap();
    let verify_by = |words: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_regatta"));
        command.current_dir(elsewhere.path()).args(words);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let verify = || verify_by(&["runs", "verify", place]);
    let (code, printed) = verify();
    assert!(code == Some(0) && printed.contains("intact"), "{printed}");
    // The record beside the evidence must agree with the evidence.
    let record = fs::read_to_string(out.join("record.json")).unwrap();
    for (from, to, found) in [
        (
            "\"phase\": \"done\"",
            "\"phase\": \"failed\"",
            "it calls the run failed, the evidence was sealed as draining",
        ),
        (
            "\"evidence_signature_valid\": true",
            "\"evidence_signature_valid\": null",
            "it does not state that the evidence is signed",
        ),
        (
            "\"spec_sha256\": \"",
            "\"spec_sha256\": \"0",
            "it is of another spec than the evidence",
        ),
        (
            "\"device\": \"",
            "\"device\": \"00000000000000000000000000000000\", \"was\": \"",
            "on device 00000000000000000000000000000000",
        ),
        (
            "\"valid\": true",
            "\"valid\": false",
            "its verdict (INVALID) or the reasons differ from those of LoadGen's logs (VALID)",
        ),
        (
            "\"unit\": \"",
            "\"unit\": \"k",
            "its metric differs from that of LoadGen's summary",
        ),
    ] {
        let changed = record.replacen(from, to, 1);
        assert_ne!(record, changed);
        fs::write(out.join("record.json"), changed).unwrap();
        let (code, printed) = verify();
        assert!(code == Some(1) && printed.contains(found), "{printed}");
    }
    // The device signed neither its name in the record nor the manifest of the export.
    let renamed = record.replacen("\"device_name\": \"", "\"device_name\": \"another-", 1);
    assert_ne!(record, renamed);
    fs::write(out.join("record.json"), renamed).unwrap();
    let (code, printed) = verify();
    assert!(
        code == Some(1) && printed.contains("record.json: changed: its SHA-256 is not the one in SHA256SUMS"),
        "{printed}"
    );
    fs::write(out.join("record.json"), record).unwrap();
    let (code, printed) = verify();
    assert!(
        code == Some(0) && printed.contains("not signed: record.json"),
        "{printed}"
    );
    let device = printed.split("signed by device ").nth(1).unwrap();
    let device = device.split([' ', ',', ';', '\n']).next().unwrap();
    for (named, expected) in [(device, Some(0)), (&"0".repeat(32), Some(1))] {
        let (code, found) = verify_by(&["runs", "verify", place, "--device", named]);
        assert_eq!(code, expected, "{found}");
        assert_eq!(
            found.contains("it is signed by device"),
            expected == Some(1),
            "{found}"
        );
    }
    // Another key beside it does not help: the device's id is its key's fingerprint.
    let key = fs::read(out.join("device.pub")).unwrap();
    fs::write(out.join("device.pub"), format!("{}\n", "ab".repeat(32))).unwrap();
    let (code, printed) = verify();
    assert!(code == Some(1) && printed.contains("fingerprint"), "{printed}");
    fs::write(out.join("device.pub"), "no key").unwrap();
    let (code, printed) = verify();
    assert!(code == Some(1) && printed.contains("is not known"), "{printed}");
    fs::write(out.join("device.pub"), key).unwrap();
    let own = coordinator.path(&format!("runs/{run}"));
    let (code, found) = verify_directory(coordinator, &own);
    assert_eq!(
        (code, found.len()),
        (Some(0), 0),
        "a run's own directory: {found:?}"
    );
    flip(&out.join("files/evidence.json"));
    assert_eq!(verify().0, Some(1));
}
