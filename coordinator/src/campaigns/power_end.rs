//! The end of a campaign's power session: good, or one cause and a reason, from the session's row, its runs and its command's output.

use std::path::Path;

use regatta_fsutil::regular_file;
use regatta_types::{RunId, documents::EndCause};

use super::cause;
use crate::store::{self, PowerSessionRow, Store};

/// The beginning of a preflight's line that prevents a session.
const FAILED_CHECK: &str = "FAIL";

/// The end of a session.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PowerEnd {
    /// The cause and reason of a session that is not good.
    pub(super) failure: Option<(EndCause, String)>,
    /// Its testing run.
    pub(super) run: Option<RunId>,
}

/// Returns the end of a session whose command has ended. `log` is the command's output, and `requested` the reason for an early end.
///
/// # Errors
/// Returns an error when the store fails.
pub(super) fn power_end(
    id: &str,
    log: &Path,
    requested: Option<(EndCause, String)>,
    store: &Store,
) -> store::Result<PowerEnd> {
    let Some(row) = store.power_session(id)? else {
        let (cause, words) = last_words(log);
        let reason = format!("no power session could begin: {words}");
        return Ok(PowerEnd {
            failure: Some(requested.unwrap_or((cause, reason))),
            run: None,
        });
    };
    let failure = match row.verdict.as_deref() {
        Some("pass" | "rehearsal") => None,
        _ if requested.is_some() => requested,
        Some(_) => {
            let what = format!("its checkers do not accept power session {id}: `regatta power show {id}`");
            Some((EndCause::Workload, what))
        }
        None => Some(of_incomplete(&row, store)?),
    };
    Ok(PowerEnd {
        failure,
        run: row.testing,
    })
}

/// Returns the cause of a session without a verdict: that of its run, if one has failed.
fn of_incomplete(row: &PowerSessionRow, store: &Store) -> store::Result<(EndCause, String)> {
    for (part, run) in [("ranging", row.ranging), ("testing", row.testing)] {
        let run = run.map_or(Ok(None), |run| store.run(run))?;
        let failed = run.filter(|run| run.is_over() && run.abandoned.is_none());
        if let Some((cause, reason)) = failed.as_ref().and_then(cause::failure)
            && cause != EndCause::Operator
        {
            return Ok((cause, format!("its {part} run: {reason}")));
        }
    }
    let reason = row.reason.clone();
    let reason = reason.unwrap_or_else(|| "the power session ended without a result".to_owned());
    Ok((EndCause::Infrastructure, reason))
}

/// Returns the failed checks that a command printed, which are preconditions. Otherwise its last line: it was cut off, or could not reach a
/// machine.
fn last_words(log: &Path) -> (EndCause, String) {
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
            let last = lines().next_back().unwrap_or("its command printed nothing");
            (EndCause::Infrastructure, last.to_owned())
        }
        failed => (EndCause::Precondition, failed.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::store::{NewPowerSession, PowerSessionEnd};

    #[test]
    fn a_session_is_good_or_has_one_cause() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("db")).unwrap();
        let log = directory.path().join("log");
        fs::write(
            &log,
            "ok    clocks  1 ms\nFAIL  PTDaemon  it is gone\n\nnothing was started\n",
        )
        .unwrap();
        let end = |id: &str, requested| power_end(id, &log, requested, &store).unwrap().failure;
        assert_eq!(
            end("none", None),
            Some((
                EndCause::Precondition,
                "no power session could begin: FAIL  PTDaemon  it is gone".to_owned()
            ))
        );
        let cut_off = directory.path().join("cut-off");
        fs::write(&cut_off, "ok    clocks  1 ms\n").unwrap();
        assert_eq!(
            power_end("none", &cut_off, None, &store).unwrap().failure,
            Some((
                EndCause::Infrastructure,
                "no power session could begin: ok    clocks  1 ms".to_owned()
            ))
        );
        let aborted = (
            EndCause::Operator,
            "the campaign was aborted by the user".to_owned(),
        );
        assert_eq!(end("none", Some(aborted.clone())), Some(aborted.clone()));
        for (id, verdict, reason) in [
            ("pass", Some("pass"), None),
            ("rehearsal", Some("rehearsal"), None),
            ("fail", Some("fail"), None),
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
            let ended = PowerSessionEnd {
                verdict,
                reason,
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
