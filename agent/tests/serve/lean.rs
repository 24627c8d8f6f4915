//! Tests of the daemon's memory, as SPECIFICATION.md promises it: the heap stays small, whatever the number of runs. `tools/lean`
//! measures the whole process in its release build.

use regatta_types::documents::RunPhase;
use regatta_wire::message::Command;

use crate::{agent::Agent, coordinator::Coordinator, mosquitto::Mosquitto};

/// Runs before the first measurement: by then every buffer has been used.
const FIRST: usize = 5;
/// Runs between the measurements.
const MORE: usize = 20;
/// The limit of the whole process is 12 MiB; code takes the rest.
pub(crate) const MAX_HEAP_KIB: u64 = 6 * 1024;
/// The allowed variation of the allocator. A leak of a run's logs, or of its 64 KiB chunks, is larger over 20 runs.
const MAX_GROWTH_KIB: u64 = 768;

#[test]
fn the_heap_is_small_and_does_not_grow_with_the_number_of_runs() {
    let Some(broker) = Mosquitto::start() else { return };
    let agent = Agent::start(broker.port);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    let run_plan = |runs: usize| {
        for _ in 0..runs {
            let spec = agent.spec(50);
            coordinator.start_run(&spec);
            coordinator.wait_for(spec.run, RunPhase::Done, 60);
            coordinator.wait_for_streams(spec.run, 20);
            coordinator.command(spec.run, &Command::Release);
            coordinator.command(spec.run, &Command::Forget);
        }
        agent.heap_kib()
    };
    let (Some(first), Some(last)) = (run_plan(FIRST), run_plan(MORE)) else {
        return;
    };
    assert!(
        last <= MAX_HEAP_KIB,
        "{last} KiB of heap after {} runs",
        FIRST + MORE
    );
    assert!(
        last <= first + MAX_GROWTH_KIB,
        "{MORE} runs made {first} KiB into {last} KiB"
    );
}
