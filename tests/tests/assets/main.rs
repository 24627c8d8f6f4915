//! Tests of models and data that the device downloads from the coordinator over HTTPS: cut, killed, forged, refused and shared.
//! Real binaries run in a lab as a user makes it.

#![expect(clippy::expect_used, reason = "test code")]

mod between;
mod support;

use std::fs;

use between::Between;
use rcgen::ExtendedKeyUsagePurpose;
use regatta_tests::{
    DEVICE,
    certificates::{self, Authority},
    eventually,
    raw_client::RawClient,
    succeed_output,
};
use support::{
    BULK, BULK_BYTES, SmallDisk, add_bulk, assets_port, edit, end_of, kept, lab_of_a_bare_device, object,
    request_bulk_run,
};

#[test]
fn device_downloads_missing_assets_once_for_two_runs() {
    let mut lab = lab_of_a_bare_device();
    let added = lab.json(&["asset", "add", "--benchmark", "digits"]);
    let kinds: Vec<_> = added["assets"]
        .as_array()
        .expect("assets")
        .iter()
        .map(|a| a["kind"].clone())
        .collect();
    assert!(
        kinds.contains(&"file".into()) && kinds.contains(&"tree".into()),
        "{added}"
    );
    lab.start_device();
    lab.wait_for_device();
    let words = [
        "--engine",
        "tract",
        "--scenario",
        "Offline",
        "--mode",
        "AccuracyOnly",
    ];
    let first = lab.request_run(&words);
    // No server answers yet: the run's reason names what it waits for.
    eventually("the run to say so", 60, || {
        let shown = lab.show(&first);
        let reason = shown["reason"].as_str().unwrap_or_default();
        shown["phase"] == "preparing" && reason.contains("assets are here; waiting for 127.0.0.2:")
    });
    let between = Between::start(&lab, &[]);
    assert_eq!(end_of(&lab, &first).0, "done", "{}", end_of(&lab, &first).1);
    let after_one = between.down();
    assert!(
        after_one > 100_000,
        "it came from the coordinator: {after_one} bytes"
    );
    let second = lab.request_run(&words);
    assert_eq!(end_of(&lab, &second).0, "done", "{}", end_of(&lab, &second).1);
    assert_eq!(between.down(), after_one, "not a byte for the second");
    let accuracy = |run: &str| lab.show(run)["accuracy"].clone();
    assert_eq!(accuracy(&first), accuracy(&second));
    assert!(
        accuracy(&first)["value"].as_f64().expect("an accuracy") > 90.0,
        "{}",
        accuracy(&first)
    );
    assert!(kept(&lab, "part").is_empty());
    // Without labels at the coordinator there is no accuracy, and the run says so.
    let labels = lab.scratch().join("preprocessed_data/digits/val_map.txt");
    fs::remove_file(labels).expect("the labels");
    let common = [
        "--format",
        "json",
        "run",
        "--device",
        DEVICE,
        "--benchmark",
        "digits",
    ];
    let waited = lab.regatta().args(common).args(words).output();
    let waited = waited.expect("a run that is waited for");
    let output = String::from_utf8_lossy(&waited.stdout).into_owned();
    assert_eq!(waited.status.code(), Some(1), "{output}");
    let runs: serde_json::Value = serde_json::from_str(&output).expect("what became of it");
    let shown = lab.show(runs["runs"][0]["run"].as_str().expect("a run id"));
    assert_eq!(shown["phase"], "done", "{shown}");
    let why = shown["not_judged"][0].as_str().unwrap_or_default();
    assert!(shown["accuracy"].is_null(), "{shown}");
    assert!(
        why.contains("no accuracy: the labels of benchmark digits cannot be read"),
        "{shown}"
    );
    // The coordinator removes what no run needs; the device keeps its copy.
    for asset in lab.json(&["asset", "list"])["assets"].as_array().expect("assets") {
        let path = asset["path"].as_str().expect("a path");
        let _ = lab.json(&["asset", "remove", path]);
    }
    let swept = lab.json(&["asset", "gc"]);
    assert!(swept["files"].as_u64() > Some(500), "{swept}");
    assert_eq!(
        (kept(&lab, "tree").len(), kept(&lab, "file").is_empty()),
        (1, false)
    );
}

/// The job of the only run in a command's output, which must have ended well.
fn done(output: &serde_json::Value) -> String {
    let run = &output["runs"][0];
    assert_eq!(run["phase"], "done", "{output}");
    run["run"].as_str().expect("a run id").to_owned()
}

#[test]
fn jobs_fetch_files_and_search_for_settings_before_the_first_run() {
    let mut lab = lab_of_a_bare_device();
    let _ = lab.json(&["asset", "add", "--benchmark", "digits"]);
    let between = Between::start(&lab, &[]);
    lab.start_device();
    lab.wait_for_device();
    let subject = [
        "--device",
        DEVICE,
        "--benchmark",
        "digits",
        "--scenario",
        "Offline",
    ];
    let fetch = done(&lab.json(&[&["asset", "fetch"], &subject[..]].concat()));
    let shown = lab.show(&fetch);
    assert!(
        shown["markers"].to_string().contains("not a result") && shown["valid"].is_null(),
        "{shown}"
    );
    let fetched = between.down();
    assert!(fetched > 100_000, "{fetched} bytes");

    let tune = done(&lab.json(&[&["tune"], &subject[..], &["--time", "10s"]].concat()));
    let files = lab.workspace().join("runs").join(&tune).join("files");
    let system = files.join("tuned.toml");
    let text = fs::read_to_string(&system).expect("the systems file");
    assert!(text.contains("[[run]]") && text.contains("digits"), "{text}");
    let report = fs::read_to_string(files.join("tune.txt")).expect("what the search printed");
    assert!(report.contains("written: "), "{report}");

    let with = ["--system", system.to_str().expect("UTF-8"), "--duration", "1s"];
    let run = lab.request_run(
        &[
            &[
                "--engine",
                "tract",
                "--scenario",
                "Offline",
                "--mode",
                "PerformanceOnly",
            ],
            &with[..],
        ]
        .concat(),
    );
    assert_eq!(end_of(&lab, &run).0, "done", "{}", end_of(&lab, &run).1);
    assert_eq!(between.down(), fetched, "everything was there already");
}

#[test]
fn asset_download_resumes_after_link_loss_and_kill() {
    let mut lab = lab_of_a_bare_device();
    let between = Between::start(&lab, &[3 << 20, 6 << 20]);
    let sha256 = add_bulk(&lab);
    lab.start_device();
    lab.wait_for_device();
    between.hold_at(8 << 20);
    let run = request_bulk_run(&lab);
    between.wait_until_held();
    assert_eq!(lab.phase(&run), "preparing");
    if let Some(mut device) = lab.device.take() {
        device.kill();
    }
    between.hold_at(u64::MAX);
    lab.start_device();
    let (phase, reason) = end_of(&lab, &run);
    assert_eq!(phase, "done", "{reason}");
    // A handshake for each connection, TLS records, and the bytes in the sockets of the killed agent.
    let most = BULK_BYTES + BULK_BYTES / 100 + (4 << 20);
    assert!(
        between.down() < most,
        "{} bytes came down for {BULK_BYTES}",
        between.down()
    );
    let file = lab.state().join("assets/file").join(sha256);
    let (here, there) = (fs::read(file), fs::read(lab.scratch().join(BULK)));
    assert!(here.expect("the device's copy") == there.expect("the original"));
}

#[test]
fn wrong_bytes_are_not_kept_and_a_good_copy_replaces_them() {
    let mut lab = lab_of_a_bare_device();
    let _between = Between::start(&lab, &[]);
    let sha256 = add_bulk(&lab);
    let object = object(&lab, &sha256);
    let mut bytes = fs::read(&object).expect("the coordinator's copy");
    bytes[5_345_678] ^= 1;
    fs::write(&object, bytes).expect("a bad copy");
    lab.start_device();
    lab.wait_for_device();
    let (phase, reason) = end_of(&lab, &request_bulk_run(&lab));
    assert_eq!(phase, "failed");
    assert!(
        reason.contains("`bulk.bin` from the coordinator has another SHA-256"),
        "{reason}"
    );
    assert!(kept(&lab, "file").is_empty());
    // Missing altogether.
    fs::remove_file(&object).expect("the coordinator's copy");
    let (phase, reason) = end_of(&lab, &request_bulk_run(&lab));
    assert_eq!(phase, "failed");
    assert!(
        reason.contains("the coordinator has no such asset (404)"),
        "{reason}"
    );
    let _ = lab.json(&["asset", "add", BULK]);
    let (phase, reason) = end_of(&lab, &request_bulk_run(&lab));
    assert_eq!(phase, "done", "{reason}");
    assert_eq!(kept(&lab, "file").len(), 1);
}

#[test]
fn a_run_whose_assets_do_not_fit_says_so_and_one_that_is_aborted_stops() {
    let mut lab = lab_of_a_bare_device();
    let between = Between::start(&lab, &[]);
    add_bulk(&lab);
    let config = lab.device_directory().join("agent.toml");
    edit(
        &config,
        &[("min_free_mib = 1\n", "min_free_mib = 1\nassets_max_mib = 10\n")],
    );
    lab.start_device();
    lab.wait_for_device();
    let (phase, reason) = end_of(&lab, &request_bulk_run(&lab));
    assert_eq!(phase, "failed");
    assert!(
        reason.contains("12 MiB of assets are missing and 10 MiB are free for them"),
        "{reason}"
    );
    assert_eq!(between.down(), 0, "nobody was asked");

    lab.device = None;
    edit(&config, &[("assets_max_mib = 10\n", "")]);
    lab.start_device();
    between.hold_at(2 << 20);
    let run = request_bulk_run(&lab);
    between.wait_until_held();
    let _ = succeed_output(lab.regatta().args(["runs", "abort", &run]));
    assert_eq!(end_of(&lab, &run).0, "aborted");
    // Bytes that have arrived remain for the next run that needs them.
    assert_eq!((kept(&lab, "part").len(), kept(&lab, "file").len()), (1, 0));
}

#[test]
fn assets_are_served_only_to_enrolled_devices() {
    let mut lab = lab_of_a_bare_device();
    let between = Between::start(&lab, &[]);
    let sha256 = add_bulk(&lab);
    let port = assets_port(&lab);
    let authority = Authority::of_lab(&lab.workspace());
    let get =
        |certificates: Option<&regatta_tests::raw_client::ClientIdentity>, address: &str, header: &str| {
            RawClient::reach(port, &authority.certificate, certificates)?.get(address, header)
        };
    let file = format!("/v1/file/{sha256}");
    assert!(get(None, &file, "").is_err(), "no certificate");
    let client = ExtendedKeyUsagePurpose::ClientAuth;
    let forged = Authority::self_made(&authority)
        .issue(None, client.clone(), 2100)
        .0;
    assert!(get(Some(&forged), &file, "").is_err(), "another authority");
    let never_enrolled = authority.issue(None, client, 2100).0;
    let printed = get(Some(&never_enrolled), &file, "").expect("an answer");
    assert!(printed.starts_with("HTTP/1.1 403"), "{printed}");
    let (device, _) = certificates::of_device(&lab.state());
    for (address, header, status) in [
        (file.as_str(), "Range: bytes=12582908-\r\n", "206"),
        (&file, "Range: bytes=12582912-\r\n", "416"),
        (&file, "Range: bytes=0-5,7-9\r\n", "400"),
        ("/v1/file/../../keys/ca.key", "", "404"),
        ("/", "", "404"),
        (&format!("/v1/tree/{sha256}"), "", "404"),
        (&format!("/v1/file/{}", "0".repeat(64)), "", "404"),
    ] {
        let printed = get(Some(&device), address, header).expect("an answer");
        assert!(
            printed.starts_with(&format!("HTTP/1.1 {status}")),
            "{address} {header}: {printed}"
        );
    }
    // Removed during its download.
    lab.start_device();
    lab.wait_for_device();
    between.hold_at(1 << 20);
    let run = request_bulk_run(&lab);
    between.wait_until_held();
    let _ = succeed_output(lab.regatta().args(["device", "remove", DEVICE, "--yes"]));
    eventually("the coordinator to see it", 20, || {
        lab.coordinator.as_ref().is_some_and(|coordinator| {
            coordinator
                .output()
                .contains("the device was removed from the lab")
        })
    });
    between.hold_at(u64::MAX);
    let job = lab.state().join("runs").join(&run).join("job.json");
    eventually("the device to hear of it", 60, || {
        fs::read_to_string(&job).is_ok_and(|job| job.contains("this device is not enrolled here (403)"))
    });
    assert!(between.down() < BULK_BYTES);
    let printed = get(Some(&device), &file, "").expect("an answer");
    assert!(printed.starts_with("HTTP/1.1 403"), "{printed}");
}

#[test]
fn a_disk_that_somebody_fills_meanwhile_fails_the_run_and_not_those_after_it() {
    let mut lab = lab_of_a_bare_device();
    let Some(disk) = SmallDisk::mount(lab.state().join("assets"), 16) else {
        return;
    };
    let between = Between::start(&lab, &[]);
    add_bulk(&lab);
    lab.start_device();
    lab.wait_for_device();
    between.hold_at(2 << 20);
    let run = request_bulk_run(&lab);
    between.wait_until_held();
    let filler = disk.0.join("somebody");
    // As much as fits.
    let _ = fs::write(&filler, vec![0; 16 << 20]);
    between.hold_at(u64::MAX);
    let (phase, reason) = end_of(&lab, &run);
    assert_eq!(phase, "failed");
    assert!(reason.contains("No space left on device"), "{reason}");
    assert!(kept(&lab, "part").is_empty(), "half an asset is in nobody's way");
    fs::remove_file(filler).expect("a file of the test");
    let (phase, reason) = end_of(&lab, &request_bulk_run(&lab));
    assert_eq!(phase, "done", "{reason}");
    drop(lab);
}
