//! The power sessions of `submission stage --power`: ids of sessions in the workspace, or directories.

use std::path::{Path, PathBuf};

use regatta_text::escape;

use super::super::Context;
use crate::{exit::Failure, workspace::Workspace};

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
        return Ok(PathBuf::from(word));
    }
    let session = match workspace {
        Some(_) => context.open_store()?.1.power_session(word)?,
        None => None,
    };
    match (session, workspace) {
        (Some(row), Some(workspace)) => match row.reason {
            None => Ok(workspace.power_session(&row.id).join("session")),
            Some(reason) => {
                let first = reason.lines().next().unwrap_or_default();
                Err(
                    Failure::misuse(format!("power session {} has failed: {}", row.id, escape(first)))
                        .hint("`regatta power list` shows those that are complete"),
                )
            }
        },
        _ => Err(
            Failure::misuse(format!("`{}` is no power session and no directory", escape(word)))
                .hint("`regatta power list` shows the sessions"),
        ),
    }
}
