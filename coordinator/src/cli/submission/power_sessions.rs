//! The power sessions of `submission stage --power`: ids of sessions in the workspace, or directories.

use std::path::{Path, PathBuf};

use regatta_text::escape;
use regatta_types::documents::PowerVerdict;

use super::super::Context;
use crate::exit::Failure;
use regatta_lab_power::read_session_record;
use regatta_lab_store::workspace::Workspace;

/// Returns the directory of each session.
pub(super) fn directories(
    words: &[String],
    workspace: Option<&Workspace>,
    context: &Context,
) -> Result<Vec<PathBuf>, Failure> {
    words
        .iter()
        .map(|word| directory(word, workspace, context))
        .collect()
}

fn directory(word: &str, workspace: Option<&Workspace>, context: &Context) -> Result<PathBuf, Failure> {
    if Path::new(word).is_dir() {
        let directory = PathBuf::from(word);
        return match workspace.and_then(|workspace| id_of(&directory, workspace)) {
            // A session of the workspace is judged by its row, also where a path names it.
            Some(id) => self::directory(&id, workspace, context).map(|_| directory),
            None => expect_stageable_copy(&directory).map(|()| directory),
        };
    }
    let session = match workspace {
        Some(_) => context.open_store()?.1.power_sessions().get(word)?,
        None => None,
    };
    match (session, workspace) {
        (Some(row), Some(workspace)) => {
            expect_stageable(&row.id, row.verdict, row.reason())?;
            Ok(workspace.power_session(&row.id).join("session"))
        }
        _ => Err(Failure::misuse(format!(
            "`{}` is neither a power session nor a directory",
            escape(word)
        ))
        .hint("`regatta power list` shows the sessions")),
    }
}

/// Checks the record beside a directory, if there is one: a copied session is judged as in the workspace that made it.
fn expect_stageable_copy(directory: &Path) -> Result<(), Failure> {
    let place = directory.canonicalize()?;
    match place.parent().map(read_session_record).transpose()?.flatten() {
        Some(record) => expect_stageable(&record.session, record.verdict, record.reason()),
        None => Ok(()),
    }
}

fn expect_stageable(
    session: &str,
    verdict: Option<PowerVerdict>,
    reason: Option<&str>,
) -> Result<(), Failure> {
    match refusal(verdict, reason) {
        None => Ok(()),
        Some(refusal) => Err(Failure::misuse(format!("power session {session} {refusal}"))
            .hint("`regatta power list` shows those that are complete")),
    }
}

/// Returns the reason why a session cannot be staged. Only one that both checkers accept can be, also as a rehearsal.
fn refusal(verdict: Option<PowerVerdict>, reason: Option<&str>) -> Option<String> {
    match (verdict, reason) {
        (Some(verdict), None) if verdict.is_accepted() => None,
        (Some(PowerVerdict::Informative), None) => {
            Some("is informative: Regatta's own programs made it".to_owned())
        }
        (_, Some(reason)) => {
            let first = reason.lines().next().unwrap_or_default();
            Some(format!("has failed: {}", escape(first)))
        }
        (Some(_), None) => Some("is complete, and a checker refuses it".to_owned()),
        (None, None) => Some("has not ended".to_owned()),
    }
}

/// Returns the id of the workspace's session whose files are in a directory.
fn id_of(directory: &Path, workspace: &Workspace) -> Option<String> {
    let directory = directory.canonicalize().ok()?;
    let sessions = workspace.power_session("").canonicalize().ok()?;
    let below = directory.strip_prefix(&sessions).ok()?;
    let id = below.components().next()?;
    Some(id.as_os_str().to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_a_session_that_both_checkers_accept_is_staged() {
        assert_eq!(refusal(Some(PowerVerdict::Pass), None), None);
        assert_eq!(refusal(Some(PowerVerdict::Rehearsal), None), None);
        for (verdict, reason) in [
            (Some(PowerVerdict::Fail), None),
            (Some(PowerVerdict::Informative), None),
            (None, None),
            (None, Some("it broke")),
            (Some(PowerVerdict::Pass), Some("it broke")),
        ] {
            assert!(refusal(verdict, reason).is_some(), "{verdict:?} {reason:?}");
        }
    }

    #[test]
    fn a_copy_with_a_foreign_record_is_refused_with_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let session = directory.path().join("session");
        fs::create_dir(&session).unwrap();
        assert!(
            expect_stageable_copy(&session).is_ok(),
            "the client's output without a record"
        );
        fs::write(directory.path().join("session.json"), "{\"schema\": 1}").unwrap();
        let refused = expect_stageable_copy(&session).unwrap_err().sentence();
        assert!(
            refused.contains("session.json") && refused.contains("line 1 column"),
            "{refused}"
        );
    }
}
