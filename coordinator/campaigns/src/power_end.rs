//! The result of a campaign's power session: good, or one cause and a reason, from the session's row, or from the end of its thread when it
//! could not begin.

use regatta_types::{
    RunId,
    documents::{EndCause, RecordedFailure},
};

use super::session_threads::ThreadEnd;
use regatta_lab_store::{self as store, Store};

#[derive(Debug, PartialEq, Eq)]
pub(super) struct PowerSessionResult {
    /// Why it is not good.
    pub(super) failure: Option<(EndCause, String)>,
    /// Its testing run.
    pub(super) run: Option<RunId>,
}

/// Returns the result of a session that has ended. `requested` is why the session was asked to end.
///
/// # Errors
/// Returns an error when the store fails.
pub(super) fn session_result(
    id: &str,
    end: ThreadEnd,
    requested: Option<(EndCause, String)>,
    store: &Store,
) -> store::Result<PowerSessionResult> {
    let Some(row) = store.power_sessions().get(id)? else {
        let failure = end.err().unwrap_or_else(coordinator_ended);
        let reason = format!("no power session could begin: {}", failure.reason);
        return Ok(PowerSessionResult {
            failure: Some(requested.unwrap_or((failure.cause, reason))),
            run: None,
        });
    };
    let failure = match row.verdict {
        Some(verdict) if verdict.is_accepted() => None,
        _ if requested.is_some() => requested,
        Some(_) => {
            let what = format!("its checkers do not accept power session {id}: `regatta power show {id}`");
            Some((EndCause::Workload, what))
        }
        None => {
            let failure = row.failure.unwrap_or_else(coordinator_ended);
            Some((failure.cause, failure.reason))
        }
    };
    Ok(PowerSessionResult {
        failure,
        run: row.testing,
    })
}

/// Returns the failure of a session that ended with its coordinator.
pub(super) fn coordinator_ended() -> RecordedFailure {
    RecordedFailure {
        cause: EndCause::Infrastructure,
        reason: "the coordinator ended during the power session".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use regatta_types::documents::PowerVerdict;

    use super::*;
    use regatta_lab_store::{NewPowerSession, PowerSessionEnd};

    fn failed(cause: EndCause, reason: &str) -> RecordedFailure {
        RecordedFailure {
            cause,
            reason: reason.to_owned(),
        }
    }

    #[test]
    fn a_session_is_good_or_has_the_cause_of_its_typed_failure() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("db")).unwrap();
        let result = |id: &str, end, requested| session_result(id, end, requested, &store).unwrap().failure;
        let gone = failed(
            EndCause::Precondition,
            "a session cannot succeed: PTDaemon: it is gone",
        );
        assert_eq!(
            result("none", Err(gone), None),
            Some((
                EndCause::Precondition,
                "no power session could begin: a session cannot succeed: PTDaemon: it is gone".to_owned()
            ))
        );
        let killed = result("none", Ok(()), None).unwrap();
        assert_eq!(killed.0, EndCause::Infrastructure);
        let aborted = (
            EndCause::Operator,
            "the campaign was aborted by the user".to_owned(),
        );
        assert_eq!(
            result("none", Ok(()), Some(aborted.clone())),
            Some(aborted.clone())
        );
        for (id, verdict, failure) in [
            ("pass", Some(PowerVerdict::Pass), None),
            ("rehearsal", Some(PowerVerdict::Rehearsal), None),
            ("fail", Some(PowerVerdict::Fail), None),
            // What a message says does not decide about the cause.
            (
                "broken",
                None,
                Some(failed(EndCause::Device, "regatta: FAIL  the meter is silent")),
            ),
        ] {
            let new = NewPowerSession {
                id,
                meter: "wt310",
                device: "d",
                benchmark: "digits",
                scenario: "Offline",
            };
            store.power_sessions().begin(new).unwrap();
            let ended = PowerSessionEnd {
                verdict,
                failure: failure.as_ref(),
                ..PowerSessionEnd::default()
            };
            store.power_sessions().end(id, &ended).unwrap();
        }
        let end = |id: &str, requested| result(id, Ok(()), requested);
        assert_eq!((end("pass", None), end("rehearsal", None)), (None, None));
        assert_eq!(end("pass", Some(aborted.clone())), None, "it was complete before");
        assert_eq!(end("fail", None).unwrap().0, EndCause::Workload);
        assert_eq!(
            end("broken", None),
            Some((EndCause::Device, "regatta: FAIL  the meter is silent".to_owned()))
        );
        assert_eq!(end("broken", Some(aborted.clone())), Some(aborted));
    }
}
