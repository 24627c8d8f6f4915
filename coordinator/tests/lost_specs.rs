//! Tests of a run whose `spec.json` is no longer in the workspace: a copy was made while a coordinator served, or somebody deleted the run's
//! directory.

mod support;

use std::{fs, time::Duration};

use regatta_types::documents::RunPhase;
use regatta_wire::message::Command;
use support::coordinator::Coordinator;

#[test]
fn lost_spec_delays_no_other_device_and_its_run_can_be_abandoned() {
    let mut coordinator = Coordinator::embedded();
    coordinator.serve();
    let [mut device, other] = [1, 2].map(|seed| coordinator.join(seed));
    let run = coordinator.request_run_of(&device);
    let (id, _) = device.next_start();
    assert_eq!(id.to_string(), run);
    // The device does not answer, so that the coordinator reads the spec again after 5 s.
    fs::remove_file(coordinator.path(&format!("runs/{run}/spec.json"))).unwrap();
    std::thread::sleep(Duration::from_secs(7));

    let of_other = coordinator.request_run_of(&other);
    assert_eq!(other.next_start().0.to_string(), of_other);
    assert!(coordinator.printed().contains(&run), "{}", coordinator.printed());

    let abandoned = coordinator.output(&["runs", "give-up", &run, "--yes", "--force"]);
    assert!(abandoned.status.success(), "{abandoned:?}");
    let record = coordinator.record(&run);
    assert_eq!(record["delivery"]["complete"], false, "{record:#}");
    assert!(
        record["not_judged"][0].as_str().unwrap().contains("spec.json"),
        "{record:#}"
    );
    device.wait_for_command(id, |command| matches!(command, Command::Abort { .. }));
    device.tell(id, RunPhase::Aborted, &[]);
    let next = coordinator.request_run_of(&device);
    assert_eq!(device.next_start().0.to_string(), next);
}
