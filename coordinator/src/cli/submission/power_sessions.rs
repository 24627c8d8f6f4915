//! The power sessions of `submission stage --power`: ids of sessions in the workspace, or directories.

use std::path::{Path, PathBuf};

use regatta_text::escape;

use super::super::Context;
use crate::exit::Failure;
use regatta_lab_store::{PowerSessionRow, PowerVerdict, workspace::Workspace};

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
            None => Ok(directory),
        };
    }
    let session = match workspace {
        Some(_) => context.open_store()?.1.power_session(word)?,
        None => None,
    };
    match (session, workspace) {
        (Some(row), Some(workspace)) => match refusal(&row) {
            None => Ok(workspace.power_session(&row.id).join("session")),
            Some(refusal) => Err(Failure::misuse(format!("power session {} {refusal}", row.id))
                .hint("`regatta power list` shows those that are complete")),
        },
        _ => Err(Failure::misuse(format!(
            "`{}` is neither a power session nor a directory",
            escape(word)
        ))
        .hint("`regatta power list` shows the sessions")),
    }
}

/// Returns the reason why a session cannot be staged. Only one that both checkers accept can be, also as a rehearsal.
fn refusal(row: &PowerSessionRow) -> Option<String> {
    match (row.verdict, &row.reason) {
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
    use super::*;

    #[test]
    fn only_a_session_that_both_checkers_accept_is_staged() {
        let row = |verdict: Option<PowerVerdict>, reason: Option<&str>| PowerSessionRow {
            id: "20260101-000000-0000".to_owned(),
            meter: "lab".to_owned(),
            device: "boat".to_owned(),
            benchmark: "digits".to_owned(),
            scenario: "Offline".to_owned(),
            begun: String::new(),
            ended: None,
            ranging: None,
            testing: None,
            verdict,
            reason: reason.map(str::to_owned),
            simulated: None,
            obstacles: Vec::new(),
            step: None,
            watts: None,
            observation: None,
        };
        assert_eq!(refusal(&row(Some(PowerVerdict::Pass), None)), None);
        assert_eq!(refusal(&row(Some(PowerVerdict::Rehearsal), None)), None);
        for (verdict, reason) in [
            (Some(PowerVerdict::Fail), None),
            (Some(PowerVerdict::Informative), None),
            (None, None),
            (None, Some("it broke")),
            (Some(PowerVerdict::Pass), Some("it broke")),
        ] {
            assert!(refusal(&row(verdict, reason)).is_some(), "{verdict:?} {reason:?}");
        }
    }
}
