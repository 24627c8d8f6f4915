//! The gate of a run: waits until every condition holds or the longest wait is over. It reads temperature, memory and disk once a
//! second, and reports what it waits for. It runs on the guard's thread, before the device's state is set. It does not change the
//! device.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use regatta_board::{Readiness, Root};
use regatta_fsutil::free_space::free_bytes;
use regatta_text::HumanDuration;
use regatta_types::documents::{GateProof, GateSpec, celsius, end_reason, gibibytes};

use crate::daemon::runs::run_failure::RunFailure;

/// The interval between two readings.
const PERIOD: Duration = Duration::from_secs(1);
/// The least interval between two reports of a wait. A report is a message and a write to disk.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);

/// The end of the wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum GateEnd {
    /// Every condition holds.
    Open(GateProof),
    /// The run cannot start, with the reason.
    Closed(RunFailure),
    /// The daemon stopped the guard.
    Stopped,
}

/// Waits until the gate opens. `files` is the directory of the run's files. `is_stopped` waits for a time, and returns whether the daemon
/// has stopped the guard meanwhile.
pub(super) fn wait(
    spec: &GateSpec,
    root: &Path,
    files: &Path,
    is_stopped: impl Fn(Duration) -> bool,
    report: impl Fn(String),
) -> GateEnd {
    let root = Root::new(root);
    let begin = Instant::now();
    let mut reported: Option<(Instant, String)> = None;
    loop {
        let readings = Readings::read(&root, files);
        let waited = begin.elapsed();
        let unmet = match readings.unmet(spec) {
            Ok(unmet) => unmet,
            Err(missing) => return GateEnd::Closed(format!("{}: {missing}", end_reason::GATE_CLOSED).into()),
        };
        if unmet.is_empty() {
            return GateEnd::Open(readings.proof(waited));
        }
        let unmet = unmet.join("; ");
        if waited >= spec.wait() {
            return GateEnd::Closed(
                format!(
                    "{}: {unmet}, after {} s",
                    end_reason::GATE_CLOSED,
                    waited.as_secs()
                )
                .into(),
            );
        }
        let text = format!("waits up to {} for its gate: {unmet}", describe(spec));
        let is_due = reported
            .as_ref()
            .is_none_or(|(at, last)| *last != text && at.elapsed() >= REPORT_INTERVAL);
        if is_due {
            report(text.clone());
            reported = Some((Instant::now(), text));
        }
        if is_stopped(PERIOD.min(spec.wait().saturating_sub(waited))) {
            return GateEnd::Stopped;
        }
    }
}

fn describe(spec: &GateSpec) -> String {
    let text = format!("{}s", spec.wait_s);
    text.parse::<HumanDuration>()
        .map_or(text, |wait| wait.to_string())
}

/// A condition that this device cannot check.
#[derive(Debug, thiserror::Error)]
enum NoReading {
    #[error("it has no temperature sensor; hint: remove the gate's temperature")]
    Temperature,
    #[error("its free {0} cannot be read; hint: remove it from the gate")]
    Free(&'static str),
}

/// The readings of one moment.
struct Readings {
    board: Readiness,
    disk_bytes: Option<u64>,
}

impl Readings {
    fn read(root: &Root, files: &Path) -> Self {
        Self {
            board: Readiness::read(root),
            disk_bytes: free_bytes(files).ok(),
        }
    }

    /// Returns the conditions that do not hold, each with the present value.
    ///
    /// # Errors
    /// When this device has no reading for a condition.
    fn unmet(&self, spec: &GateSpec) -> Result<Vec<String>, NoReading> {
        let mut unmet = Vec::new();
        if let Some(most) = spec.max_millicelsius {
            let Some((zone, now)) = &self.board.hottest else {
                return Err(NoReading::Temperature);
            };
            if *now > most {
                unmet.push(format!(
                    "{zone} is at {}, at most {} is allowed",
                    celsius(*now),
                    celsius(most)
                ));
            }
        }
        for (least, now, what) in [
            (spec.min_memory_bytes, self.board.memory_bytes, "memory"),
            (spec.min_disk_bytes, self.disk_bytes, "disk"),
        ] {
            let Some(least) = least else { continue };
            let Some(now) = now else {
                return Err(NoReading::Free(what));
            };
            if now < least {
                unmet.push(format!(
                    "{} of {what} are free, at least {} are needed",
                    gibibytes(now),
                    gibibytes(least)
                ));
            }
        }
        Ok(unmet)
    }

    fn proof(self, waited: Duration) -> GateProof {
        GateProof {
            waited_ms: u64::try_from(waited.as_millis()).unwrap_or(u64::MAX),
            hottest_millicelsius: self.board.hottest.map(|(_, now)| now),
            memory_bytes: self.board.memory_bytes,
            disk_bytes: self.disk_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use regatta_test_support::settable_board::{board_root, put};

    use super::*;

    const ZONE: &str = "sys/class/thermal/thermal_zone0/temp";

    fn sleep(time: Duration) -> bool {
        std::thread::sleep(time);
        false
    }

    fn below(millicelsius: i64, wait_s: u64) -> GateSpec {
        GateSpec {
            max_millicelsius: Some(millicelsius),
            min_memory_bytes: None,
            min_disk_bytes: None,
            wait_s,
        }
    }

    #[test]
    fn a_hot_board_is_waited_for_with_its_present_value() {
        let root = board_root("agx-orin-jetpack6");
        put(root.path(), ZONE, "71500\n");
        let reports = RefCell::new(Vec::new());
        let end = wait(&below(60_000, 60), root.path(), root.path(), sleep, |text| {
            reports.borrow_mut().push(text);
            put(root.path(), ZONE, "52000\n");
        });
        let GateEnd::Open(proof) = end else {
            panic!("{end:?}")
        };
        assert_eq!(proof.hottest_millicelsius, Some(52_000));
        assert!(proof.memory_bytes.is_some() && proof.disk_bytes.is_some());
        let reports = reports.into_inner();
        assert!(
            reports[0].starts_with("waits up to 1m for its gate: ")
                && reports[0].ends_with("is at 71.5 C, at most 60.0 C is allowed"),
            "{reports:?}"
        );
    }

    #[test]
    fn a_board_that_stays_hot_or_has_no_sensor_is_refused() {
        let root = board_root("agx-orin-jetpack6");
        put(root.path(), ZONE, "71500\n");
        let GateEnd::Closed(RunFailure(reason)) =
            wait(&below(60_000, 1), root.path(), root.path(), sleep, drop)
        else {
            panic!("it opened");
        };
        assert!(
            reason.starts_with(end_reason::GATE_CLOSED)
                && reason.contains("71.5 C")
                && reason.ends_with("after 1 s"),
            "{reason}"
        );
        let none = tempfile::tempdir().unwrap();
        let GateEnd::Closed(RunFailure(reason)) =
            wait(&below(60_000, 600), none.path(), none.path(), sleep, drop)
        else {
            panic!("it opened");
        };
        assert!(reason.contains("no temperature sensor"), "{reason}");
        let large = GateSpec {
            max_millicelsius: None,
            min_disk_bytes: Some(u64::MAX),
            ..below(0, 600)
        };
        assert_eq!(
            wait(&large, none.path(), none.path(), |_| true, drop),
            GateEnd::Stopped
        );
    }
}
