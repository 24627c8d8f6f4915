//! The cause of a run's end: whose failure it was, from the run's final state, its reason and its outcome. It decides what counts against a
//! device's health, and which runs are worth another attempt. This file changes nothing.

use regatta_types::documents::{AccuracyResult, EndCause, RunPhase, end_reason};

use regatta_lab_store::{RunOutcome, RunRow};

/// The end of a run, as far as its cause depends on it.
#[derive(Debug, Clone, Copy)]
pub struct RunEnd<'a> {
    /// The final phase.
    pub phase: RunPhase,
    /// The reason of the device or the coordinator.
    pub reason: Option<&'a str>,
    /// Whether the device no longer had the run.
    pub is_lost: bool,
    /// The reason why its files were given up, if they were.
    pub abandoned: Option<&'a str>,
    /// Whether LoadGen gives a finished run a verdict.
    pub expects_verdict: bool,
    /// The outcome in the logs and the evidence, if the run got that far.
    pub outcome: Option<&'a RunOutcome>,
}

impl<'a> RunEnd<'a> {
    /// Returns the end of a recorded run. `None` while the run is open.
    pub fn of(run: &'a RunRow) -> Option<Self> {
        run.is_over().then(|| Self::reported(run))
    }

    /// Returns the end of a run as its device has reported it, which may not be recorded yet.
    pub fn reported(run: &'a RunRow) -> Self {
        Self {
            phase: run.state.phase,
            reason: run.state.reason.as_deref(),
            is_lost: run.lost,
            abandoned: run.abandoned.as_deref(),
            expects_verdict: run.expects_verdict(),
            outcome: run.outcome.as_ref(),
        }
    }
}

/// Reasons of failed runs by their beginning. The first match counts. Other reasons are [`EndCause::Workload`]: the run process and its
/// engine compose them.
const BEGINNINGS: [(&str, EndCause); 23] = [
    (end_reason::AGENT_STOPPED, EndCause::Infrastructure),
    (end_reason::AGENT_DOWN, EndCause::Infrastructure),
    (end_reason::DEVICE_DOWN, EndCause::Device),
    (end_reason::WENT_DOWN, EndCause::Infrastructure),
    (end_reason::GATE_CLOSED, EndCause::Precondition),
    (end_reason::NO_SPACE, EndCause::Precondition),
    (end_reason::NO_DOWNLOAD, EndCause::Device),
    (end_reason::STATE_REFUSED, EndCause::Precondition),
    (end_reason::STATE_LOST, EndCause::Device),
    (end_reason::STATE_UNWATCHED, EndCause::Device),
    (end_reason::GUARD_ENDED, EndCause::Device),
    (end_reason::NO_PROCESS, EndCause::Device),
    (end_reason::PROCESS_UNRECORDED, EndCause::Device),
    (end_reason::PROCESS_UNKNOWN, EndCause::Device),
    (end_reason::RUN_LOST, EndCause::Device),
    (end_reason::DEVICE_REMOVED, EndCause::Operator),
    (end_reason::NOT_ENROLLED, EndCause::Precondition),
    (end_reason::ENROLLMENT_UNUSABLE, EndCause::Device),
    (end_reason::NO_ASSET_DATA, EndCause::Infrastructure),
    (end_reason::ASSET_REFUSED, EndCause::Infrastructure),
    (end_reason::ASSETS_NOT_NEEDED, EndCause::Operator),
    (end_reason::ASSET_FILE, EndCause::Device),
    (end_reason::SEALING_ENDED, EndCause::Device),
];

/// Parts of reasons that decide wherever they are: errors of Linux and of CUDA that no benchmark causes.
const PARTS: [(&str, EndCause); 15] = [
    // EIO, ENXIO and ENODEV of a failing card or bus, EROFS after the kernel has remounted a damaged file system, EBADMSG and EUCLEAN of a
    // damaged one.
    ("(os error 5)", EndCause::Device),
    ("(os error 6)", EndCause::Device),
    ("(os error 19)", EndCause::Device),
    ("(os error 30)", EndCause::Device),
    ("(os error 74)", EndCause::Device),
    ("(os error 117)", EndCause::Device),
    // ENOSPC and EDQUOT.
    ("(os error 28)", EndCause::Precondition),
    ("(os error 122)", EndCause::Precondition),
    (end_reason::ASSETS_TOO_LARGE, EndCause::Precondition),
    (end_reason::NO_BENCHMARK_FILES, EndCause::Precondition),
    (end_reason::OTHER_ASSET_HASH, EndCause::Infrastructure),
    ("CUDA_ERROR_ECC_UNCORRECTABLE", EndCause::Device),
    ("CUDA_ERROR_NO_DEVICE", EndCause::Device),
    ("CUDA_ERROR_DEVICE_UNAVAILABLE", EndCause::Device),
    (end_reason::UNFLUSHED, EndCause::Device),
];

/// The signal of a memory access that the hardware or the storage below a mapped file could not serve.
const SIGBUS: u32 = 7;

/// Returns the cause of a run's end, or `None` when the run has a good result.
pub fn cause_of_end(end: &RunEnd<'_>) -> Option<EndCause> {
    if let Some(reason) = end.abandoned {
        return Some(match cause_of_request(reason) {
            // Nothing else than the device keeps its files from here.
            EndCause::Operator if is_unsealed(end) && fails_by_device(end) => EndCause::Device,
            cause => cause,
        });
    }
    match end.phase {
        RunPhase::Aborted => Some(cause_of_request(end.reason.unwrap_or_default())),
        RunPhase::Done => cause_of_result(end),
        // A run that is recorded in another phase was lost on the way.
        _ => Some(cause_of_failure(end)),
    }
}

fn is_unsealed(end: &RunEnd<'_>) -> bool {
    end.reason
        .is_some_and(|reason| reason.contains(end_reason::NOT_SEALED))
}

/// Returns whether a run failed because of its device.
pub(super) fn fails_by_device(end: &RunEnd<'_>) -> bool {
    end.phase == RunPhase::Failed && cause_of_failure(end) == EndCause::Device
}

/// Returns the cause of a run whose end was requested here: by a user, or because the run reached its limit.
fn cause_of_request(reason: &str) -> EndCause {
    let of_limits = [
        (end_reason::LIMIT_REACHED, EndCause::Workload),
        (end_reason::HOPELESS_ACCURACY, EndCause::Workload),
        (end_reason::NOT_STARTED_IN_LIMIT, EndCause::Infrastructure),
        (end_reason::LIMIT_IGNORED, EndCause::Device),
        (end_reason::NOT_SEALED_IN_LIMIT, EndCause::Device),
        (end_reason::JUDGING_ENDED, EndCause::Workload),
    ];
    let found = of_limits.iter().find(|(start, _)| reason.starts_with(start));
    found.map_or(EndCause::Operator, |(_, cause)| *cause)
}

/// Returns the cause of a failed run.
fn cause_of_failure(end: &RunEnd<'_>) -> EndCause {
    let Some(reason) = end.reason else {
        return if end.is_lost {
            EndCause::Device
        } else {
            EndCause::Workload
        };
    };
    if let Some((_, cause)) = PARTS.iter().find(|(part, _)| reason.contains(part)) {
        return *cause;
    }
    if let Some((_, cause)) = BEGINNINGS.iter().find(|(start, _)| reason.starts_with(start)) {
        return *cause;
    }
    let signal = reason.strip_prefix(end_reason::PROCESS_KILLED);
    let signal = signal.and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok());
    if signal == Some(SIGBUS) {
        EndCause::Device
    } else {
        EndCause::Workload
    }
}

/// Returns the cause for a run that reached its end on the device, if its result is not good.
fn cause_of_result(end: &RunEnd<'_>) -> Option<EndCause> {
    let Some(outcome) = end.outcome else {
        return Some(EndCause::Infrastructure);
    };
    if outcome.signed == Some(false) || !outcome.contradictions.is_empty() {
        return Some(EndCause::Device);
    }
    if !outcome.complete || outcome.signed.is_none() {
        return Some(if end.is_lost {
            EndCause::Device
        } else {
            EndCause::Infrastructure
        });
    }
    if outcome.judgement.valid == Some(false) {
        return Some(EndCause::Invalid);
    }
    let is_reached = outcome.accuracy.as_ref().is_none_or(AccuracyResult::is_reached);
    let is_passed = outcome.audit.as_ref().is_none_or(|audit| audit.passed);
    (!outcome.has_passed(end.expects_verdict) || !is_reached || !is_passed).then_some(EndCause::Workload)
}

#[cfg(test)]
mod tests;
