//! The processor of LoadGen's issuing thread. Run process and daemon derive it from the spec in the same way. The run
//! process pins the thread to it, and the daemon does not use it.

use regatta_types::documents::{Delivery, LoadgenChoice, RunSpec};

use crate::thread_counters::allowed_cpus;

/// Returns the processor of a run's issuing thread: the one that the spec names. If it names none, a live run uses the
/// first allowed processor, so that the daemon can use others. `None` leaves the choice to the kernel, as the MLCommons
/// LoadGen always does.
pub(crate) fn of_run(spec: &RunSpec) -> Option<usize> {
    if spec.loadgen != LoadgenChoice::Native {
        return None;
    }
    match spec.engine.settings.timing_cpu {
        Some(cpu) => Some(cpu),
        None if spec.delivery == Delivery::Live => first_of_several(&allowed_cpus()),
        None => None,
    }
}

fn first_of_several(allowed: &[usize]) -> Option<usize> {
    match allowed {
        [first, _, ..] => Some(*first),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_processor_is_not_reserved_for_timing() {
        assert_eq!(first_of_several(&[2, 3]), Some(2));
        assert_eq!(first_of_several(&[2]), None);
        assert_eq!(first_of_several(&[]), None);
    }
}
