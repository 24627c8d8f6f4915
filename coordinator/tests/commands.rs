//! Tests of commands and their exit codes: 0 success, 1 a negative result, 2 wrong use, 3 failure. Errors are one sentence with a
//! hint.

#![expect(clippy::unwrap_used, reason = "test code")]

mod support;

use std::{
    fs,
    net::TcpListener,
    process::{Command, Output},
};

use regatta_types::documents::EngineKind;
use regatta_wire::{
    message::{Hello, Message as _},
    topic::Leaf,
};
use support::{Dice, coordinator::Coordinator, delivering::Faults, device::SimulatedDevice, eventually};

fn refusal(output: &Output) -> (Option<i32>, String) {
    let printed = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(!printed.contains("panicked"), "{printed}");
    (output.status.code(), printed)
}

/// Samples of another type need a scale; other samples refuse one.
#[test]
fn samples_are_prepared_as_requested_or_not_at_all() {
    let coordinator = Coordinator::embedded();
    let scratch = tempfile::tempdir().unwrap();
    let cache = scratch.path().join("digits.cache");
    // The bits of 0.0625.
    std::fs::write(&cache, "TRT-8502-EntropyCalibration2\nimage: 3d800000\n").unwrap();
    let (scratch, cache) = (scratch.path().to_str().unwrap(), cache.to_str().unwrap());
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../datasets/digits");
    let common = ["prep", "digits", "--data", data, "--output", scratch];
    let with = |flags: &[&'static str]| [&common[..], flags].concat();
    for (flags, words) in [
        (&["--dtype", "int8"][..], "int8 needs a scale"),
        (&["--scale", "1"], "no other type takes one"),
        (
            &["--dtype", "int8", "--scale", "0"],
            "a scale is a positive number, not 0",
        ),
        (&["--dtype", "fp17"], "known are fp32, fp16, int8"),
        (
            &["--dtype", "int8", "--layout", "dla_hwc5", "--scale", "1"],
            "known are linear",
        ),
        (&["--dtype", "int64"], "cannot be made int64_linear"),
        (
            &["--dtype", "int8", "--rounding", "nearest"],
            "--rounding needs a scale",
        ),
    ] {
        let (code, printed) = refusal(&coordinator.output(&with(flags)));
        assert_eq!(code, Some(2), "{flags:?}: {printed}");
        assert!(printed.contains(words), "{flags:?}: {printed}");
    }
    let cached = [
        "--dtype",
        "int8",
        "--layout",
        "chw4",
        "--calibration-cache",
        cache,
    ];
    let (code, printed) = refusal(&coordinator.output(&[&common[..], &cached].concat()));
    assert_eq!(code, Some(2), "{printed}");
    assert!(
        printed.contains("name the network's input with --tensor"),
        "{printed}"
    );
    // The benchmark's own samples are made on the way.
    let made = coordinator.json(&[&common[..], &cached, &["--tensor", "image"]].concat());
    assert_eq!((&made["samples"], &made["clipped"]), (&597.into(), &0.into()));
    let set = std::fs::read_to_string(format!("{}/samples.json", made["dir"].as_str().unwrap())).unwrap();
    let set: serde_json::Value = serde_json::from_str(&set).unwrap();
    let quantised =
        serde_json::json!({ "scale": 0.0625, "rounding": "toward-zero", "source": "digits.cache: image" });
    assert_eq!(set["quantised"], quantised);
    let coarse = coordinator.output(&with(&["--dtype", "int8", "--scale", "0.001"]));
    let printed = String::from_utf8_lossy(&coarse.stdout);
    assert!(
        printed.contains("as int8_linear in") && printed.contains("is the scale right?"),
        "{printed}"
    );
}

#[test]
fn unknown_names_list_the_known_ones() {
    let coordinator = Coordinator::with_a_known_device();
    let request_run = |changed: &str, to: &str| {
        let mut args = vec![
            "run",
            "--benchmark",
            "digits",
            "--scenario",
            "Offline",
            "--engine",
            "null",
            "--no-wait",
        ];
        match args.iter().position(|word| *word == changed) {
            Some(place) => args[place + 1] = to,
            None => args.extend([changed, to]),
        }
        refusal(&coordinator.output(&args))
    };
    for (changed, to, known) in [
        (
            "--benchmark",
            "digitz",
            "known are 3d-unet-99, 3d-unet-99.9, bert-99, bert-99.9, digits, gptj-99, gptj-99.9, llama3.1-8b-edge, resnet50, retinanet, rnnt, ssd-mobilenet, ssd-resnet34, stable-diffusion-xl, whisper, yolo-95, yolo-99",
        ),
        ("--scenario", "Onlne", "possible values: SingleStream"),
        ("--engine", "tract", "engines that can: null"),
        ("--engine", "cuda", "possible values: null, tract"),
        ("--device", "canoe", "known are simulated"),
        ("--round", "v0.1", "known are"),
        ("--mode", "Fast", "possible values: SubmissionRun, AccuracyOnly"),
        ("--loadgen", "mine", "known are native"),
        ("--duration", "3", "500ms, 3s"),
        ("--stream", "now", "possible values: after, live"),
    ] {
        let (code, printed) = request_run(changed, to);
        assert_eq!(code, Some(2), "{changed} {to}: {printed}");
        assert!(
            printed.contains(to) && printed.contains(known),
            "{changed} {to}: {printed}"
        );
        // An option's error also has its values and the nearest one, and names --help.
        let most = if printed.contains("error: invalid value") {
            6
        } else {
            2
        };
        assert!(
            printed.trim_end().lines().count() <= most,
            "one sentence and the way out: {printed}"
        );
    }
    assert_eq!(
        coordinator.json(&["runs", "list"])["runs"]
            .as_array()
            .map(Vec::len),
        Some(0),
        "nothing was queued"
    );
}

#[test]
fn an_engine_without_its_gpu_is_refused_before_anything_is_queued() {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let device = SimulatedDevice::connect(coordinator.port, 1);
    let hello = Hello {
        engines: vec![EngineKind::Null, EngineKind::Tensorrt],
        ..device.hello(Vec::new())
    };
    device.say(Leaf::Hello, hello.to_frame().unwrap(), true);
    eventually("the device", 30, || {
        coordinator.json(&["device", "list"])["devices"][0]["online"].as_bool()
    });
    let run = [
        "run",
        "--benchmark",
        "digits",
        "--scenario",
        "Offline",
        "--engine",
        "tensorrt",
        "--no-wait",
    ];
    let (code, printed) = refusal(&coordinator.output(&run));
    assert_eq!(code, Some(2), "{printed}");
    assert!(
        printed.contains("CUDA finds no GPU on the device; engines that can: null"),
        "{printed}"
    );
    assert_eq!(coordinator.json(&["runs", "list"])["runs"], serde_json::json!([]));
}

#[test]
fn a_misspelt_word_is_named_also_before_any_device_has_come() {
    let coordinator = Coordinator::embedded();
    for (benchmark, scenario, known) in [
        (
            "digitz",
            "Offline",
            "known are 3d-unet-99, 3d-unet-99.9, bert-99, bert-99.9, digits, gptj-99, gptj-99.9, llama3.1-8b-edge, resnet50, retinanet, rnnt, ssd-mobilenet, ssd-resnet34, stable-diffusion-xl, whisper, yolo-95, yolo-99",
        ),
        ("digits", "Sideways", "possible values: SingleStream"),
        ("digits", "Offline", "no device has connected"),
    ] {
        let requested = coordinator.output(&["run", "--benchmark", benchmark, "--scenario", scenario]);
        let (code, printed) = refusal(&requested);
        assert_eq!(code, Some(2), "{printed}");
        assert!(printed.contains(known), "{benchmark} {scenario}: {printed}");
    }
}

#[test]
fn only_a_model_server_generates_tokens_and_it_does_nothing_else() {
    let coordinator = Coordinator::embedded();
    for (benchmark, engine, expected) in [
        ("llama3.1-8b-edge", None, "--engine server --set server=llama-cpp"),
        (
            "llama3.1-8b-edge",
            Some("tract"),
            "only the engine `server` computes",
        ),
        ("gptj-99", None, "--engine server --set server=vllm"),
        (
            "rnnt",
            Some("server"),
            "no model server computes the responses of rnnt",
        ),
        ("gptj-99", Some("server"), "no device has connected"),
        ("whisper", Some("server"), "no device has connected"),
        ("resnet50", Some("server"), "no device has connected"),
        ("llama3.1-8b-edge", Some("server"), "no device has connected"),
    ] {
        let mut command = vec!["run", "--benchmark", benchmark, "--scenario", "Offline"];
        command.extend(engine.iter().flat_map(|engine| ["--engine", engine]));
        let (code, printed) = refusal(&coordinator.output(&command));
        assert_eq!(code, Some(2), "{printed}");
        assert!(printed.contains(expected), "{benchmark} {engine:?}: {printed}");
    }
    for (benchmark, server, expected) in [
        (
            "resnet50",
            "server=llama-cpp",
            "serves language models, which do not compute the responses of resnet50",
        ),
        (
            "llama3.1-8b-edge",
            "server=triton",
            "serves networks, which do not compute the responses of llama3.1-8b-edge",
        ),
        (
            "llama3.1-8b-edge",
            "server=mine",
            "`mine`, but must be a driver such as llama-cpp",
        ),
        (
            "gptj-99",
            "server=llama-cpp",
            "gptj-99 is decoded with 4 beams, and the driver llama-cpp has no beam search",
        ),
        (
            "whisper",
            "server=llama-cpp",
            "serves language models, which do not compute the responses of whisper",
        ),
        // Its requests name the model.
        (
            "llama3.1-8b-edge",
            "server=ollama",
            "LoadGen cannot use the server of the driver ollama",
        ),
    ] {
        let command = [
            &["run", "--benchmark", benchmark, "--scenario", "Offline"][..],
            &["--engine", "server", "--set", server],
        ];
        let (_, printed) = refusal(&coordinator.output(&command.concat()));
        assert!(printed.contains(expected), "{printed}");
    }
}

const OFFLINE: [&str; 7] = [
    "run",
    "--benchmark",
    "digits",
    "--scenario",
    "Offline",
    "--engine",
    "null",
];

/// A command that fails must not leave a request behind: a repeated command would measure twice.
#[test]
fn without_a_daemon_a_command_that_waits_queues_nothing() {
    let coordinator = Coordinator::with_a_known_device();
    let several = [&OFFLINE[..], &["--repeat", "3"]].concat();
    for words in [&OFFLINE[..], &several] {
        let (code, printed) = refusal(&coordinator.output(words));
        assert_eq!(code, Some(3), "{words:?}: {printed}");
        assert!(
            printed.contains("nothing was queued")
                && printed.contains("regatta serve")
                && printed.contains("--no-wait"),
            "{words:?}: {printed}"
        );
        assert_eq!(
            coordinator.json(&["runs", "list"])["runs"],
            serde_json::json!([]),
            "{words:?}"
        );
    }
}

#[test]
fn without_a_daemon_a_run_that_nobody_waits_for_is_queued_and_executed_later() {
    let mut coordinator = Coordinator::with_a_known_device();
    let requested = coordinator.output(&[&OFFLINE[..], &["--no-wait", "--format", "json"]].concat());
    let (code, printed) = refusal(&requested);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("regatta serve"), "{printed}");
    let requested: serde_json::Value = serde_json::from_slice(&requested.stdout).unwrap();
    let run = requested["runs"][0]["run"].as_str().unwrap().to_owned();
    // The request is stored, and executed as soon as a coordinator serves.
    coordinator.serve();
    let mut device = SimulatedDevice::connect(coordinator.port, 1);
    device.say_hello(Vec::new());
    device.play(Faults::default(), &mut Dice::new(1));
    assert_eq!(coordinator.record(&run)["delivery"]["complete"], true);
}

#[test]
fn a_port_in_use_is_one_clear_sentence() {
    let coordinator = Coordinator::embedded();
    let _taken = TcpListener::bind(("127.0.0.1", coordinator.port)).unwrap();
    let (code, printed) = refusal(&coordinator.output(&["serve"]));
    assert_eq!(code, Some(3));
    assert!(
        printed.contains(&coordinator.port.to_string()) && printed.contains("`listen`"),
        "{printed}"
    );
}

#[test]
fn each_port_of_a_lab_with_keys_names_its_key_and_its_holder_when_it_is_in_use() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for key in ["listen", "enroll_listen", "assets_listen"] {
        let directory = tempfile::tempdir().unwrap();
        let regatta = |words: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_regatta"));
            command
                .current_dir(directory.path())
                .args(words)
                .output()
                .unwrap()
        };
        let mut init = vec!["init".to_owned()];
        for option in ["listen", "enroll_listen", "assets_listen"] {
            init.push(format!("--{}", option.replace('_', "-")));
            init.push(if option == key {
                taken.clone()
            } else {
                format!("127.0.0.1:{}", support::free_port())
            });
        }
        let init: Vec<&str> = init.iter().map(String::as_str).collect();
        assert!(regatta(&init).status.success());
        let (code, printed) = refusal(&regatta(&["serve"]));
        assert_eq!(code, Some(3));
        let holder = format!("(process {}) has that port", std::process::id());
        let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            printed.contains(&taken) && printed.contains(&holder) && printed.contains(&format!("`{key}`")),
            "{printed}"
        );
    }
}

#[test]
fn a_broker_that_is_not_there_is_one_clear_sentence() {
    let coordinator = Coordinator::external(support::free_port());
    let (code, printed) = refusal(&coordinator.output(&["serve"]));
    assert_eq!(code, Some(3));
    assert!(
        printed.contains("cannot connect") && printed.contains("start that broker"),
        "{printed}"
    );
}

#[test]
fn a_workspace_is_served_once() {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let (code, printed) = refusal(&coordinator.output(&["serve"]));
    assert_eq!(code, Some(3));
    assert!(printed.contains("another daemon"), "{printed}");
}

/// A path names a place. A process that continues to write there after the workspace was moved makes a second lab.
#[test]
fn a_workspace_that_is_moved_stops_its_coordinator_and_is_not_split() {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let device = coordinator.join(1);
    let place = coordinator.root().to_owned();
    let moved = place.with_extension("moved");
    fs::rename(&place, &moved).unwrap();
    // As by somebody who does not know of the daemon that serves the former place.
    let requested = Command::new(env!("CARGO_BIN_EXE_regatta"))
        .arg("--workspace")
        .arg(&moved)
        .args(OFFLINE)
        .arg("--no-wait")
        .output()
        .unwrap();
    assert!(requested.status.success(), "{requested:?}");
    let code = coordinator.end();
    let exists = place.exists();
    if exists {
        fs::remove_dir_all(&place).unwrap();
    }
    fs::rename(&moved, &place).unwrap();
    assert!(!exists, "a second workspace was made at the former place");
    assert_eq!(code, Some(3));
    let printed = coordinator
        .printed()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        printed.contains("was moved to") && printed.contains("regatta serve --workspace"),
        "{printed}"
    );
    // Nothing is lost: the run is executed once the workspace is served where it is.
    drop(device);
    coordinator.serve();
    let mut device = coordinator.join(1);
    device.play(Faults::default(), &mut Dice::new(1));
    let run = coordinator.json(&["runs", "list"])["runs"][0]["run"].clone();
    assert_eq!(
        coordinator.record(run.as_str().unwrap())["delivery"]["complete"],
        true
    );
}

/// `--version` of a subcommand would print the program's version and succeed, although the user meant a round.
#[test]
fn only_the_program_itself_has_a_version() {
    let coordinator = Coordinator::with_a_known_device();
    for words in [
        &OFFLINE[..],
        &["device", "list"],
        &["campaign", "list"],
        &["history"],
    ] {
        for version in [&["--version", "v6.1"][..], &["--version"], &["-V"]] {
            let output = coordinator.output(&[words, version].concat());
            let (code, printed) = refusal(&output);
            assert_eq!(code, Some(2), "{words:?} {version:?}: {printed}");
            assert!(printed.contains("unexpected argument"), "{words:?}: {printed}");
        }
    }
    let of_program = coordinator.output(&["--version"]);
    let printed = String::from_utf8(of_program.stdout).unwrap();
    assert!(
        of_program.status.success() && printed.starts_with("regatta 0."),
        "{printed}"
    );
}

/// Such a token looks like any other, and fails on the board only.
#[test]
fn a_host_that_no_board_can_reach_is_named_with_the_lab_and_with_each_token() {
    for (host, is_named) in [("127.0.0.1", true), ("0.0.0.0", true), ("192.0.2.7", false)] {
        let dir = tempfile::tempdir().unwrap();
        let regatta = |args: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_regatta"));
            command
                .arg("--workspace")
                .arg(dir.path())
                .args(args)
                .output()
                .unwrap()
        };
        for words in [&["init", "--host", host][..], &["device", "add", "boat-1"]] {
            let (code, printed) = refusal(&regatta(words));
            assert_eq!(code, Some(0), "{printed}");
            let problem = format!("no other machine can reach this one as {host}");
            assert_eq!(printed.contains(&problem), is_named, "{words:?}: {printed}");
        }
    }
}

#[test]
fn missing_workspace_exits_2() {
    let dir = tempfile::tempdir().unwrap();
    let there = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_regatta"));
        command
            .arg("--workspace")
            .arg(dir.path())
            .args(args)
            .output()
            .unwrap()
    };
    let (code, printed) = refusal(&there(&["runs", "list"]));
    assert_eq!(
        (code, printed.contains("regatta init")),
        (Some(2), true),
        "{printed}"
    );
    assert!(there(&["init"]).status.success());
    assert!(there(&["runs", "list"]).status.success());
    let (code, _) = refusal(&there(&["init"]));
    assert_eq!(code, Some(2), "it is one already");
}

/// The store has the last reports of devices, and no coordinator listens.
#[test]
fn without_a_coordinator_no_device_is_called_online() {
    let coordinator = Coordinator::with_a_known_device();
    let list = coordinator.output(&["device", "list"]);
    let (code, printed) = refusal(&list);
    assert_eq!(code, Some(0));
    assert!(
        printed.contains("no coordinator serves this workspace"),
        "{printed}"
    );
    let listed = String::from_utf8(list.stdout).unwrap();
    assert!(listed.contains("offline"), "{listed}");
    let shown = coordinator.json(&["device", "show", "simulated"]);
    assert_eq!(shown["online"], false);
}

#[test]
fn waiting_answers_with_the_runs_verdict_and_an_export_is_byte_exact() {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let mut device = SimulatedDevice::connect(coordinator.port, 1);
    device.say_hello(Vec::new());
    eventually("the device", 30, || {
        coordinator.json(&["device", "list"])["devices"][0]["online"].as_bool()
    });
    let waiting = coordinator
        .regatta(&[
            "run",
            "--benchmark",
            "digits",
            "--scenario",
            "Offline",
            "--engine",
            "null",
            "--format",
            "json",
        ])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let (run, files) = device.play(Faults::default(), &mut Dice::new(5));
    let waited = waiting.wait_with_output().unwrap();
    assert_eq!(
        waited.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&waited.stderr)
    );
    let printed: serde_json::Value = serde_json::from_slice(&waited.stdout).unwrap();
    assert_eq!(printed["runs"][0]["phase"], "done");
    assert_eq!(printed["runs"][0]["complete"], true);

    let out = coordinator.path("exported");
    let out = out.to_str().unwrap();
    assert!(
        coordinator
            .output(&["runs", "export", &run.to_string(), "--output", out])
            .status
            .success()
    );
    for (name, content) in &files {
        assert_eq!(
            &std::fs::read(format!("{out}/files/{name}")).unwrap(),
            content,
            "{name}"
        );
    }
    let checked = Command::new("sha256sum")
        .args(["-c", "--quiet", "SHA256SUMS"])
        .current_dir(out)
        .status();
    assert!(checked.unwrap().success(), "sha256sum agrees");
    let (code, _) = refusal(&coordinator.output(&["runs", "export", &run.to_string(), "--output", out]));
    assert_eq!(code, Some(2), "nothing is overwritten");

    // Changed files are not exported, and no incomplete copy remains.
    let record = coordinator.path(&format!("runs/{run}/record.json"));
    let first = files.keys().next().unwrap();
    let stored = record.with_file_name("files").join(first);
    let before = std::fs::read(&stored).unwrap();
    let again = format!("{out}-again");
    let export = ["runs", "export", &run.to_string(), "--output", &again];
    std::fs::write(&stored, "something else").unwrap();
    let (code, printed) = refusal(&coordinator.output(&export));
    assert!(
        code == Some(3) && printed.contains("has changed since the device delivered it"),
        "{printed}"
    );
    assert!(
        printed.contains("the run itself is untouched; `regatta runs verify"),
        "{printed}"
    );
    std::fs::remove_file(&stored).unwrap();
    let (code, printed) = refusal(&coordinator.output(&export));
    assert!(code == Some(3) && printed.contains(first.as_str()), "{printed}");
    assert!(!std::path::Path::new(&again).exists());
    std::fs::write(&stored, before).unwrap();
    assert!(coordinator.output(&export).status.success());
}

#[test]
fn an_invalid_plan_names_the_file_and_the_request() {
    let coordinator = Coordinator::embedded();
    let plan = coordinator.path("plan.toml");
    let request = "[[run]]\nbenchmark = \"digits\"\nscenario = [\"Offline\"]\n";
    let wrong = request.replace("Offline", "Ofline");
    fs::write(&plan, format!("schema = 1\n{wrong}{request}")).unwrap();
    let output = coordinator.output(&["run", plan.to_str().unwrap()]);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert!(
        printed.contains("plan.toml: line 4: unknown scenario"),
        "{printed}"
    );
    assert!(
        printed.contains("unknown scenario `Ofline`; known are"),
        "{printed}"
    );
}

/// A workspace on a read-only disk can be listed.
#[test]
fn a_workspace_that_cannot_be_written_is_listed() {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    coordinator.kill();
    let root = coordinator.path("");
    let listed = |remove_log: bool| {
        if remove_log {
            let _ = fs::remove_file(coordinator.path("regatta.db-wal"));
            let _ = fs::remove_file(coordinator.path("regatta.db-shm"));
        }
        let list = coordinator.regatta(&["runs", "list"]);
        let mut command = std::process::Command::new("unshare");
        command
            .args(["--map-root-user", "--mount", "sh", "-ec"])
            .arg("mount --bind \"$0\" \"$0\"; mount -o remount,bind,ro \"$0\"; exec \"$@\"")
            .arg(&root)
            .arg(list.get_program())
            .args(list.get_args());
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(listed(false).contains("no runs yet"));
    // A clean end leaves no log.
    coordinator.json(&["runs", "list"]);
    assert!(listed(true).contains("no runs yet"));
}

/// Another program locks the store while the daemon must write. The daemon waits for at most 30 s, or until it must end.
#[test]
fn a_locked_store_does_not_keep_a_serving_daemon_from_ending() {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let device = SimulatedDevice::connect(coordinator.port, 1);
    let holder = rusqlite::Connection::open(coordinator.path("regatta.db")).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    device.say_hello(Vec::new());
    eventually("the word that the store is locked", 30, || {
        coordinator
            .printed()
            .contains("the store is locked by another program")
    });
    let took = coordinator.terminate();
    assert!(took.as_secs() < 10, "{took:?}");
}

/// While the store is locked, a command prints that it waits, and `serve` ends at its signal.
#[test]
fn a_locked_store_is_reported_and_does_not_keep_serve_from_ending() {
    let coordinator = Coordinator::embedded();
    coordinator.json(&["runs", "list"]);
    let holder = rusqlite::Connection::open(coordinator.path("regatta.db")).unwrap();
    holder
        .execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE")
        .unwrap();
    let log = coordinator.path("log");
    let mut serve = coordinator.regatta(&["serve"]);
    let mut child = serve.stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
    eventually("the word that the store is locked", 30, || {
        let printed = fs::read_to_string(&log).unwrap();
        printed
            .contains("the store is locked by another program")
            .then_some(())
    });
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let begun = std::time::Instant::now();
    child.wait().unwrap();
    assert!(begun.elapsed().as_secs() < 10, "it ends at once");
}

/// Fifty thousand other files are not images, and labels have two usual names.
#[test]
fn data_show_compares_images_with_their_labels_by_name() {
    let coordinator = Coordinator::embedded();
    let known = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/benchmarks/resnet50.toml");
    let benchmark = fs::read_to_string(known)
        .unwrap()
        .replace("total_samples = 50000", "total_samples = 2")
        .replace("performance_samples = 1024", "performance_samples = 2")
        .replace("source_bytes = 6706560319", "source_bytes = 6");
    let configs = coordinator.path("configs/benchmarks");
    fs::create_dir_all(&configs).unwrap();
    fs::write(configs.join("resnet50.toml"), benchmark).unwrap();
    let images = coordinator.path("scratch/data/resnet50");
    let shown = || {
        let document = coordinator.json(&["data", "show", "resnet50"]);
        let text = |index: usize, field: &str| {
            let value = &document["downloads"][index][field];
            value.as_str().unwrap_or_default().to_owned()
        };
        (
            text(0, "state"),
            text(0, "problem"),
            text(1, "state"),
            text(1, "path"),
        )
    };
    let states = |images: &str, labels: &str| {
        let found = shown();
        assert_eq!(
            (found.0.as_str(), found.2.as_str()),
            (images, labels),
            "{found:?}"
        );
        found.1
    };
    states("missing", "missing");
    fs::create_dir_all(&images).unwrap();
    states("missing", "missing");
    fs::write(images.join("a.JPEG"), "abc").unwrap();
    fs::write(images.join("notes.txt"), "abc").unwrap();
    assert!(states("incomplete", "missing").contains("neither val_map.txt nor val.txt"));
    fs::write(images.join("val.txt"), "a.JPEG 0\nb.JPEG 1\n").unwrap();
    assert!(shown().3.ends_with("val.txt"), "{:?}", shown());
    let problem = states("incomplete", "present");
    assert!(
        problem.contains("1 of 2 images") && problem.contains("b.JPEG"),
        "{problem}"
    );
    fs::write(images.join("b.JPEG"), "abcd").unwrap();
    let problem = states("incomplete", "present");
    assert!(problem.contains("have 7 bytes"), "{problem}");
    fs::write(images.join("b.JPEG"), "abc").unwrap();
    states("present", "present");
}
