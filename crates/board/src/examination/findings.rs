//! Obstacles to a repeatable measurement. Each finding states what was read, why it matters and which command fixes it.

mod clocks;
mod heat;
mod system;

use super::report::{Examination, Finding};

/// Returns all findings, the most severe first.
pub(super) fn of(seen: &Examination) -> Vec<Finding> {
    let mut findings: Vec<Finding> = [
        system::blind(seen),
        system::virtual_machine(seen),
        system::container(seen),
        system::desktop(seen),
        clocks::cpu_clocks(seen),
        clocks::gpu_clock(seen),
        heat::heat(seen),
        heat::slowed_down(seen),
        heat::over_current(seen),
        system::load(seen),
        system::swap_in_use(seen),
        heat::current_limit(seen),
        clocks::power_mode(seen),
        clocks::no_fast_mode(seen),
        system::zram(seen),
        system::clock_sync(seen),
        system::low_memory(seen),
        system::missing_software(seen),
        system::unknown_module(seen),
        clocks::cores_off(seen),
        system::small_pages(seen),
        clocks::memory_clock(seen),
        heat::fan_profile(seen),
        heat::no_helper(seen),
    ]
    .into_iter()
    .flatten()
    .collect();
    findings.sort_by_key(|finding| finding.severity);
    findings
}
