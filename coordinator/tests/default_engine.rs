//! Tests of the engine of runs that do not name one, over the real coordinator: each device uses the best engine that it reports.

#![expect(clippy::unwrap_used, reason = "test code")]

mod support;

use std::process::Stdio;

use regatta_types::documents::{DeviceFacts, EngineKind, GpuFacts};
use support::{Dice, coordinator::Coordinator, delivering::Faults, device::SimulatedDevice};

/// The engines in the agent's package for boards.
const OF_BOARDS: [EngineKind; 3] = [EngineKind::Null, EngineKind::Tensorrt, EngineKind::Sim];

const OFFLINE: [&str; 5] = ["run", "--benchmark", "digits", "--scenario", "Offline"];

/// Connects a device that reports these engines, a GPU or none, and the reason why TensorRT cannot use the GPU.
fn join(
    coordinator: &Coordinator,
    name: &str,
    engines: &[EngineKind],
    gpu: Option<Option<&str>>,
) -> SimulatedDevice {
    let orin = GpuFacts {
        name: "Orin".to_owned(),
        compute_capability: "8.7".to_owned(),
        multiprocessors: 16,
        memory_bytes: 32 << 30,
        integrated: true,
    };
    let facts = DeviceFacts {
        memory_bytes: 32 << 30,
        gpus: gpu.iter().map(|_| orin.clone()).collect(),
        tensorrt_obstacle: gpu.flatten().map(str::to_owned),
        ..DeviceFacts::default()
    };
    coordinator.join_with(name, engines, &facts)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn each_device_uses_the_best_engine_that_it_reports() {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let _board = join(&coordinator, "board", &OF_BOARDS, Some(None));
    let _pc = join(&coordinator, "pc", &EngineKind::ALL, None);
    let no_shim = "TensorRT 10.7.0 is installed, but there is no shim for it";
    let _workstation = join(&coordinator, "workstation", &EngineKind::ALL, Some(Some(no_shim)));

    let planned = coordinator.json(&[&OFFLINE[..], &["--device", "all", "--dry-run"]].concat());
    let engines: Vec<_> = planned["specs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|spec| spec["engine"]["kind"].as_str().unwrap())
        .collect();
    assert_eq!(engines, ["tensorrt", "tract", "tract"], "{planned:#}");
    for (device, engine) in [("board", "tensorrt"), ("pc", "tract"), ("workstation", "tract")] {
        assert_eq!(
            coordinator.json(&["device", "show", device])["default_engine"],
            engine
        );
        let shown = text(&coordinator.output(&["device", "show", device]).stdout);
        assert!(
            shown.contains(&format!("{engine}, for runs without --engine")),
            "{shown}"
        );
    }
    // For a named engine, the error says why it cannot run.
    let named = [
        &OFFLINE[..],
        &["--device", "workstation", "--engine", "tensorrt", "--dry-run"],
    ]
    .concat();
    let refused = coordinator.output(&named);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains(no_shim),
        "{}",
        text(&refused.stderr)
    );
    // Settings are checked against the engine that a device uses.
    let set = [&OFFLINE[..], &["--set", "gpu_batch_size=8", "--dry-run"]].concat();
    let planned = coordinator.json(&[&set[..], &["--device", "board"]].concat());
    assert_eq!(planned["specs"][0]["engine"]["settings"]["gpu_batch_size"], 8);
    let refused = text(
        &coordinator
            .output(&[&set[..], &["--device", "pc"]].concat())
            .stderr,
    );
    assert!(
        refused.contains("pc runs tract by default: the tract engine has no setting `gpu_batch_size`"),
        "{refused}"
    );
    let unknown = [&OFFLINE[..], &["--set", "gpu_batch=8", "--device", "board"]].concat();
    let refused = text(&coordinator.output(&unknown).stderr);
    assert!(
        refused.contains("no engine has a setting `gpu_batch`; hint: did you mean `gpu_batch_size`?"),
        "{refused}"
    );
}

#[test]
fn onnxruntime_needs_a_library_that_the_agent_finds_or_the_run_names() {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let engines = [EngineKind::Null, EngineKind::Onnxruntime];
    let _bare = join(&coordinator, "bare", &engines, None);
    let facts = DeviceFacts {
        onnxruntime: Some("/opt/ort/lib/libonnxruntime.so.1.23.2".to_owned()),
        ..DeviceFacts::default()
    };
    let _equipped = coordinator.join_with("equipped", &engines, &facts);
    let dry_run = |further: &[&str]| coordinator.output(&[&OFFLINE[..], &["--dry-run"], further].concat());
    let named = ["--device", "bare", "--engine", "onnxruntime"];
    let refused = dry_run(&named);
    let printed = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{printed}");
    for part in [
        "no ONNX Runtime",
        "pip install onnxruntime",
        "--set onnxruntime_library=PATH",
    ] {
        assert!(printed.contains(part), "`{part}` in {printed}");
    }
    let library = [&named[..], &["--set", "onnxruntime_library=/opt/ort"]].concat();
    let accepted = dry_run(&library);
    assert!(accepted.status.success(), "{}", text(&accepted.stderr));
    let by_default = dry_run(&["--device", "equipped", "--format", "json"]);
    let planned: serde_json::Value = serde_json::from_slice(&by_default.stdout).unwrap();
    assert_eq!(
        planned["specs"][0]["engine"]["kind"], "onnxruntime",
        "{planned:#}"
    );
}

#[test]
fn a_board_without_tensorrt_refuses_runs_and_its_health_check_uses_null_and_says_so() {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let mut board = join(&coordinator, "board", &OF_BOARDS, None);
    let refused = coordinator.output(&[&OFFLINE[..], &["--no-wait"]].concat());
    let printed = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{printed}");
    for part in [
        "no engine that computes answers can run on board",
        "tensorrt: CUDA finds no GPU on the device",
        "tract: this build of the agent does not have it",
        "regatta device show board",
    ] {
        assert!(printed.contains(part), "`{part}` in {printed}");
    }
    assert!(coordinator.json(&["device", "show", "board"])["default_engine"].is_null());

    let check = coordinator
        .regatta(&["device", "check", "board", "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    for _ in ["accuracy", "performance"] {
        let _ = board.play(Faults::default(), &mut Dice::new(7));
    }
    let checked = check.wait_with_output().unwrap();
    let document: serde_json::Value =
        serde_json::from_slice(&checked.stdout).unwrap_or_else(|_| unreachable!("{}", text(&checked.stderr)));
    // The simulated device's files contain no speed in SingleStream, so the check of the speed is undecided.
    assert_eq!(document["verdict"], "undecided", "{document:#}");
    let listed = coordinator.json(&["runs", "list"]);
    let runs = listed["runs"].as_array().unwrap().iter();
    let engines: Vec<_> = runs.map(|run| run["engine"].as_str().unwrap()).collect();
    assert_eq!(engines, ["null", "null"], "{listed:#}");
}
