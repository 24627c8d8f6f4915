//! Tests of states that a device cannot set, over the real coordinator: runs that request one are refused before anything is queued.

mod support;

use regatta_types::documents::{DeviceFacts, EngineKind};
use support::{coordinator::Coordinator, device::SimulatedDevice};

/// Connects a Jetson AGX Orin that reports whether its helper is installed. Older agents do not report it.
fn join(coordinator: &Coordinator, name: &str, state_helper: Option<bool>) -> SimulatedDevice {
    let facts = DeviceFacts {
        model: "NVIDIA Jetson AGX Orin Developer Kit".to_owned(),
        module: Some("p3701-0005".to_owned()),
        state_helper,
        ..DeviceFacts::default()
    };
    coordinator.join_with(name, &EngineKind::ALL, &facts)
}

#[test]
fn a_state_is_refused_on_a_device_without_the_helper_before_anything_is_queued() {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let _devices = [("user", Some(false)), ("system", Some(true)), ("older", None)]
        .map(|(name, helper)| join(&coordinator, name, helper));
    let command = |device: &str, words: &str| {
        let usual = format!("run --benchmark digits --engine tract --device {device} {words}");
        let output = coordinator.output(&usual.split(' ').collect::<Vec<_>>());
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.code(), text)
    };
    let submission = "--submission --local-files";
    let offline = "--scenario Offline --state MaxP";
    // The default of a submission on a board is MaxP.
    for (device, words) in [
        ("user", offline.to_owned()),
        ("user", submission.to_owned()),
        ("user", format!("{submission} --dry-run")),
        ("user", format!("{submission} --state MaxP --dry-run")),
        // Boards of one model need not have the same installation.
        ("older,system,user", format!("{submission} --dry-run")),
        ("older,system,user", format!("{offline} --dry-run")),
    ] {
        let (code, printed) = command(device, &words);
        assert_eq!(code, Some(2), "{words}: {printed}");
        for part in [
            "user cannot set power mode, clocks and fan for the state MaxP",
            "`regatta device deploy user USER@HOST --as system",
            "`--state as-is`",
        ] {
            assert!(printed.contains(part), "`{part}` of {words}: {printed}");
        }
    }
    let count = |command: &str, key: &str| {
        let listed = coordinator.json(&[command, "list"]);
        listed[key].as_array().unwrap().len()
    };
    assert_eq!((count("runs", "runs"), count("campaign", "campaigns")), (0, 0));

    for (device, words) in [
        ("user", format!("{submission} --state as-is --dry-run")),
        ("user", "--scenario Offline --dry-run".to_owned()),
        ("system", format!("{submission} --dry-run")),
        ("older", format!("{submission} --dry-run")),
        ("system", format!("{offline} --dry-run")),
    ] {
        let (code, printed) = command(device, &words);
        assert_eq!(code, Some(0), "{device} {words}: {printed}");
    }
}
