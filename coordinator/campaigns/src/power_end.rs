//! The result of a campaign's power session: good, or one cause and a reason, from the session's row, its runs and its command's output.

use std::path::Path;

use regatta_fsutil::regular_file;
use regatta_types::{RunId, documents::EndCause};

use super::cause;
use regatta_lab_power::command_output::{FAILED_CHECK, failure_lines};
use regatta_lab_store::{self as store, PowerSessionRow, Store};

/// The result of a session.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PowerSessionResult {
    /// Why it is not good.
    pub(super) failure: Option<(EndCause, String)>,
    /// Its testing run.
    pub(super) run: Option<RunId>,
}

/// Returns the result of a session whose command has ended. `log` is the command's output. `requested` is why the session was asked to end.
///
/// # Errors
/// Returns an error when the store fails.
pub(super) fn session_result(
    id: &str,
    log: &Path,
    requested: Option<(EndCause, String)>,
    store: &Store,
) -> store::Result<PowerSessionResult> {
    let Some(row) = store.power_session(id)? else {
        let (cause, reason) = failure_in_output(log);
        let reason = format!("no power session could begin: {reason}");
        return Ok(PowerSessionResult {
            failure: Some(requested.unwrap_or((cause, reason))),
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
        None => Some(cause_without_verdict(&row, store)?),
    };
    Ok(PowerSessionResult {
        failure,
        run: row.testing,
    })
}

/// Returns the cause of a session without a verdict: that of its run, if one has failed.
fn cause_without_verdict(row: &PowerSessionRow, store: &Store) -> store::Result<(EndCause, String)> {
    for (part, run) in [("ranging", row.ranging), ("testing", row.testing)] {
        let run = run.map_or(Ok(None), |run| store.run(run))?;
        let failed = run.filter(|run| run.is_over() && run.abandoned.is_none());
        if let Some((cause, reason)) = failed.as_ref().and_then(cause::failure)
            && cause != EndCause::Operator
        {
            return Ok((cause, format!("its {part} run: {reason}")));
        }
    }
    let reason = row.reason().map(str::to_owned);
    let reason = reason.unwrap_or_else(|| "the power session ended without a result".to_owned());
    Ok((EndCause::Infrastructure, reason))
}

/// Returns the failed checks in a command's output, which are preconditions. Without them, returns its failure with the hint, or its last line
/// if it was killed.
fn failure_in_output(log: &Path) -> (EndCause, String) {
    let text = match regular_file::read_text(log) {
        Ok(text) => text,
        Err(error) => {
            let reason = format!("{} cannot be read: {error}", log.display());
            return (EndCause::Infrastructure, reason);
        }
    };
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let failed: Vec<&str> = lines().filter(|line| line.starts_with(FAILED_CHECK)).collect();
    match failed.as_slice() {
        [] => {
            let failure: Vec<&str> = failure_lines(&text).collect();
            let last = || {
                lines()
                    .next_back()
                    .unwrap_or("its command printed nothing")
                    .to_owned()
            };
            let reason = if failure.is_empty() {
                last()
            } else {
                failure.join("; ")
            };
            (EndCause::Infrastructure, reason)
        }
        failed => (EndCause::Precondition, failed.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use regatta_lab_power::command_output::FAILURE;
    use regatta_lab_store::{NewPowerSession, PowerSessionEnd};
    use regatta_types::documents::{PowerVerdict, RecordedFailure};

    #[test]
    fn a_session_is_good_or_has_one_cause() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("db")).unwrap();
        let log = directory.path().join("log");
        let checks =
            format!("ok    clocks: 1 ms\n{FAILED_CHECK}  PTDaemon: it is gone\n      hint: start it");
        let failure = format!("{FAILURE}the meter does not answer\n  check its cable");
        fs::write(&log, format!("{checks}\n\nnothing was started\n{failure}\n")).unwrap();
        let end = |id: &str, requested| session_result(id, &log, requested, &store).unwrap().failure;
        assert_eq!(
            end("none", None),
            Some((
                EndCause::Precondition,
                "no power session could begin: FAIL  PTDaemon: it is gone".to_owned()
            ))
        );
        let other = directory.path().join("other");
        for (output, reason) in [
            (
                format!("starting\n{failure}\n"),
                "the meter does not answer; check its cable",
            ),
            ("ok    clocks: 1 ms\n".to_owned(), "ok    clocks: 1 ms"),
            (String::new(), "its command printed nothing"),
        ] {
            fs::write(&other, output).unwrap();
            assert_eq!(
                session_result("none", &other, None, &store).unwrap().failure,
                Some((
                    EndCause::Infrastructure,
                    format!("no power session could begin: {reason}")
                ))
            );
        }
        let aborted = (
            EndCause::Operator,
            "the campaign was aborted by the user".to_owned(),
        );
        assert_eq!(end("none", Some(aborted.clone())), Some(aborted.clone()));
        for (id, verdict, reason) in [
            ("pass", Some(PowerVerdict::Pass), None),
            ("rehearsal", Some(PowerVerdict::Rehearsal), None),
            ("fail", Some(PowerVerdict::Fail), None),
            ("broken", None, Some("the meter is silent")),
        ] {
            let new = NewPowerSession {
                id,
                meter: "wt310",
                device: "d",
                benchmark: "digits",
                scenario: "Offline",
            };
            store.power_session_begins(new).unwrap();
            let failure = reason.map(|reason| RecordedFailure {
                cause: EndCause::Infrastructure,
                reason: reason.to_owned(),
            });
            let ended = PowerSessionEnd {
                verdict,
                failure: failure.as_ref(),
                ..PowerSessionEnd::default()
            };
            store.power_session_ends(id, &ended).unwrap();
        }
        assert_eq!((end("pass", None), end("rehearsal", None)), (None, None));
        assert_eq!(end("pass", Some(aborted.clone())), None, "it was complete before");
        assert_eq!(end("fail", None).unwrap().0, EndCause::Workload);
        assert_eq!(
            end("broken", None),
            Some((EndCause::Infrastructure, "the meter is silent".to_owned()))
        );
        assert_eq!(end("broken", Some(aborted.clone())), Some(aborted));
    }
}
