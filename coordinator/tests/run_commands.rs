//! Commands about runs, over the real coordinator: selecting, naming and ending them.

#![expect(clippy::unwrap_used, reason = "test code")]

mod support;

use std::process::Output;

use support::{coordinator::Coordinator, device::SimulatedDevice, eventually};

fn printed(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// A coordinator that knows one device and is not serving any more, so that requested runs stay queued.
fn with_a_known_device() -> Coordinator {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let device = SimulatedDevice::connect(coordinator.port, 1);
    device.say_hello(Vec::new());
    eventually("the device", 30, || {
        coordinator.json(&["device", "list"])["devices"][0]["online"].as_bool()
    });
    coordinator.kill();
    coordinator
}

#[test]
fn runs_are_selected_and_the_last_has_a_name() {
    let coordinator = with_a_known_device();
    let requested: Vec<String> = (0..3)
        .map(|_| coordinator.request_run("PerformanceOnly"))
        .collect();
    let accuracy = coordinator.request_run("AccuracyOnly");
    assert_eq!(coordinator.show("last")["run"], accuracy);
    assert!(coordinator.output(&["runs", "abort", "last"]).status.success());

    let list = |flags: &[&str]| {
        let (code, text, errors) = printed(&coordinator.output(&[&["runs", "list"], flags].concat()));
        assert_eq!(code, Some(0), "{errors}");
        let column = text
            .lines()
            .skip(1)
            .map(|line| line.split(',').next().unwrap().to_owned());
        (column.collect::<Vec<_>>(), errors)
    };
    let (all, _) = list(&["--format", "csv"]);
    assert_eq!(
        all,
        [&requested[..], std::slice::from_ref(&accuracy)].concat(),
        "the newest last"
    );
    assert_eq!(
        list(&["--format", "csv", "--verdict", "aborted"]).0,
        [accuracy.as_str()]
    );
    let open = list(&[
        "--format",
        "csv",
        "--verdict",
        "OPEN",
        "-n",
        "2",
        "--scenario",
        "offline",
    ]);
    assert_eq!(open.0, requested[1..]);
    assert!(
        open.1.contains("1 older runs are not listed; `-n 0` lists all"),
        "{}",
        open.1
    );
    let (nothing, _) = list(&[
        "--format",
        "csv",
        "--since",
        "2030-01-01",
        "--benchmark",
        "digits",
    ]);
    assert!(nothing.is_empty(), "{nothing:?}");
    for (flags, words) in [
        (["--device", "boatt"], "unknown device `boatt`; known are"),
        (["--benchmark", "digitz"], "unknown benchmark `digitz`"),
        (["--since", "soon"], "such as 90m, 2h or 7d"),
    ] {
        let (code, _, errors) = printed(&coordinator.output(&[&["runs", "list"], &flags[..]].concat()));
        assert!(code == Some(2) && errors.contains(words), "{flags:?}: {errors}");
    }
}
