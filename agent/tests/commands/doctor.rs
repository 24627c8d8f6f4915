//! Tests of `doctor` over the roots in `tests/board-roots/`. Its report about each board is a golden file, as text and as JSON. One more run
//! is over the machine that runs the tests.

use std::{fs, path::Path};

use regatta_test_support::fake_tensorrt::FakeTensorrt;
use tempfile::TempDir;

use crate::support::{Ended, agent, place::Place};

/// Writes a board's root to a new directory.
fn lay_down(board: &str) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/board-roots")
        .join(format!("{board}.root"));
    for line in fs::read_to_string(file).unwrap().lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (path, content) = line.split_once(" =").unwrap();
        let content = content.strip_prefix(' ').unwrap_or(content);
        let content = content
            .replace("\\n", "\n")
            .replace("\\t", "\t")
            .replace("\\0", "\0");
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    root
}

/// Compares both forms of the report about a board. The exit code follows the verdict.
fn examine(board: &str) {
    let root = lay_down(board);
    let root = root.path().to_str().unwrap();
    let text = agent(Path::new("/"), &["doctor", "--root", root]);
    let json = agent(Path::new("/"), &["doctor", "--json", "--root", root]);
    let fit = text.stdout.starts_with("fit to measure\n");
    assert_eq!(
        (text.code, json.code),
        if fit { (0, 0) } else { (1, 1) },
        "{text:?}"
    );
    let parsed: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(parsed["fit"], fit);
    for finding in parsed["findings"].as_array().unwrap() {
        assert!(
            finding["why"].as_str().is_some_and(|why| !why.is_empty()),
            "{finding}"
        );
    }
    insta::assert_snapshot!(format!("{board}_text"), text.stdout);
    insta::assert_snapshot!(format!("{board}_json"), json.stdout);
}

#[test]
fn agx_orin_on_jetpack_5_and_6() {
    examine("agx-orin-jetpack6");
    examine("agx-orin-jetpack5");
}

/// `submission stage` requires the empty fields, and no field that the draft lacks.
#[test]
fn the_draft_has_every_field_that_the_newest_checker_asks_for() {
    let root = lay_down("agx-orin-jetpack6");
    let seen = agent(
        Path::new("/"),
        &["doctor", "--json", "--root", root.path().to_str().unwrap()],
    );
    let seen: serde_json::Value = serde_json::from_str(&seen.stdout).unwrap();
    let draft = seen["system_description"].as_object().unwrap();
    let submission = regatta_catalogue::known::rounds()
        .unwrap()
        .pop()
        .unwrap()
        .submission;
    let required = submission
        .system_fields
        .iter()
        .chain(&submission.system_fields_filled);
    let missing: Vec<&String> = required.filter(|field| !draft.contains_key(*field)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn orin_nx_and_nano_on_third_party_carriers() {
    examine("orin-nx-third-party-carrier");
    examine("orin-nano-third-party-carrier");
}

#[test]
fn both_xaviers() {
    examine("agx-xavier-jetpack4");
    examine("xavier-nx-jetpack5");
}

#[test]
fn thor() {
    examine("thor-jetpack7");
}

#[test]
fn other_boards_are_not_called_jetson() {
    examine("raspberry-pi-5");
    examine("plain-pc");
    examine("nothing");
}

#[test]
fn containers_and_virtual_machines_are_not_fit_to_measure() {
    examine("virtual-arm64");
    examine("virtual-pc");
    examine("container");
}

#[test]
fn this_machine_gets_an_answer_and_a_missing_root_is_wrong_use() {
    let here = agent(Path::new("/"), &["doctor", "--format", "json"]);
    assert!(here.code == 0 || here.code == 1, "{here:?}");
    let parsed: serde_json::Value = serde_json::from_str(&here.stdout).unwrap();
    assert!(parsed["system"]["memory_bytes"].as_u64().unwrap() > 0);
    assert!(parsed["system"]["page_bytes"].as_u64().unwrap() >= 4096);
    let missing = agent(Path::new("/"), &["doctor", "--root", "/nonexistent"]);
    assert_eq!(missing.code, 2);
    assert!(
        missing
            .stderr
            .contains("--root is the root directory of a system"),
        "{}",
        missing.stderr
    );
}

#[test]
fn garbage_in_any_file_gives_a_verdict() {
    let root = lay_down("agx-orin-jetpack6");
    let mut pending = vec![root.path().to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                pending.push(entry.path());
            } else {
                fs::write(
                    entry.path(),
                    b"\xff\0-9999999999999999999999 , + p3701- \n< POWER_MODEL ID= NAME=\n\0",
                )
                .unwrap();
            }
        }
    }
    let ended = agent(
        Path::new("/"),
        &["doctor", "--json", "--root", root.path().to_str().unwrap()],
    );
    assert!(ended.code == 0 || ended.code == 1, "{ended:?}");
}

/// CUDA's driver is queried in a process of its own. Whatever that process does, `doctor` answers and reports what failed.
#[test]
fn a_faulty_driver_is_reported_and_delays_nothing() {
    let fakes = FakeTensorrt::new();
    let doctor = |faults: &str| {
        let program = env!("CARGO_BIN_EXE_regatta-agent");
        let mut command = fakes.agent(program, Path::new("/"), &["doctor", "--json"]);
        let ended = Ended::from(command.env("FAKE_CUDA_FAULTS", faults).output().unwrap());
        let seen: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        (seen["gpus"].as_array().unwrap().clone(), ended.stderr)
    };
    std::thread::scope(|scope| {
        for (faults, gpus, message) in [
            ("discrete,devices=2,sms=58", 2, ""),
            ("talk", 1, ""),
            ("leave", 1, ""),
            ("no-device", 0, ""),
            ("hang", 0, "CUDA's driver did not respond within 10 s"),
            ("crash", 0, "`regatta-agent gpus` ended with signal: 11"),
            (
                "talk,quit",
                0,
                "the output of `regatta-agent gpus` cannot be parsed",
            ),
            (
                "version=11020",
                0,
                "ended with exit status: 3: regatta-agent: the CUDA driver is for CUDA 11.2, but at least 11.4 is needed",
            ),
        ] {
            let doctor = &doctor;
            scope.spawn(move || {
                let (found, output) = doctor(faults);
                assert_eq!(found.len(), gpus, "{faults}: {output}");
                assert_eq!(output.is_empty(), message.is_empty(), "{faults}: {output}");
                assert!(output.contains(message), "{faults}: {output}");
            });
        }
    });
    let (found, _) = doctor("discrete,devices=2,unlike,sms=58");
    assert_eq!(
        serde_json::Value::Array(found),
        serde_json::json!([
            { "name": "fake GPU", "compute_capability": "8.7", "multiprocessors": 58, "memory_bytes": 1 << 30, "integrated": false },
            { "name": "another fake GPU", "compute_capability": "8.7", "multiprocessors": 58, "memory_bytes": 1 << 30, "integrated": false },
        ])
    );
}

/// Both kinds of libraries are where `device deploy` installs them or `REGATTA_PLUGINS` names them.
#[test]
fn libraries_and_engines_of_this_machine_are_listed() {
    let (place, plugins) = (Place::new(), tempfile::tempdir().unwrap());
    place.build(&["--batch", "4"], &[]);
    let plugin = plugins.path().join("libregatta_loadgen-0123456789.so");
    fs::write(&plugin, "").unwrap();
    let directories = std::env::join_paths([place.fakes.shims(), plugins.path().to_owned()]).unwrap();
    let library = plugins.path().join("libonnxruntime.so.1.23.2");
    fs::write(&library, "").unwrap();
    let environment = [
        ("REGATTA_PLUGINS", directories.to_str().unwrap()),
        ("ORT_DYLIB_PATH", plugins.path().to_str().unwrap()),
    ];
    let seen = place.agent(&["doctor", "--json"], &environment);
    let seen: serde_json::Value = serde_json::from_str(&seen.stdout).unwrap();
    let installed = &seen["installed"];
    assert_eq!(installed["shims"][0]["tensorrt"], "8.5.2", "{installed:#}");
    assert_eq!(
        installed["loadgens"][0],
        serde_json::json!({ "revision": "0123456789", "version": null, "submittable": null, "path": plugin })
    );
    let engine = &installed["engines"][0];
    assert_eq!(
        (&engine["batch"], &engine["error"]),
        (&4.into(), &serde_json::Value::Null)
    );
    assert_eq!(installed["errors"], serde_json::json!([]));
    let text = place.agent(&["doctor"], &environment).stdout;
    let key = engine["key"].as_str().unwrap();
    #[cfg(feature = "onnxruntime")]
    {
        let line = format!("\nONNX Runtime 1.23.2, {}\n", library.display());
        assert!(text.contains(&line), "{line}: {text}");
        let listed = serde_json::json!({ "version": "1.23.2", "path": library });
        assert_eq!(installed["onnxruntime"], listed);
    }
    for words in [
        "\nshim         for TensorRT 8.5.2, /".to_owned(),
        "\nLoadGen      of unknown version @ 0123456789, /".to_owned(),
        format!("\nengine       {key}: batch 4, TensorRT 8.5.2, "),
    ] {
        assert!(text.contains(&words), "{words}: {text}");
    }
}
