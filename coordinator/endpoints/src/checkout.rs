//! The checkout of mlcommons/endpoints that the user names. It is only read: the rules require the unmodified client.

use std::{
    io,
    path::{Path, PathBuf},
    process::Command,
};

use crate::EndpointsError;

/// The client's main module.
const MAIN: &str = "src/inference_endpoint/main.py";
/// The local changes that a message names.
const MAX_NAMED: usize = 3;

/// A checkout without local changes.
#[derive(Debug, Clone)]
pub struct ClientCheckout {
    root: PathBuf,
    commit: String,
}

impl ClientCheckout {
    /// Checks that the directory is a checkout of the client without local changes. Files that its `.gitignore` names may exist.
    ///
    /// # Errors
    /// [`EndpointsError::NotCheckout`] or [`EndpointsError::Changed`].
    pub fn open(path: &Path) -> Result<Self, EndpointsError> {
        let not_checkout = |reason: String| EndpointsError::NotCheckout {
            path: path.to_owned(),
            reason,
        };
        let root = path
            .canonicalize()
            .map_err(|error| not_checkout(error.to_string()))?;
        if !root.join(MAIN).is_file() {
            return Err(not_checkout(format!("it has no {MAIN}")));
        }
        let git = |arguments: &[&str]| git(&root, arguments).map_err(|error| not_checkout(error.to_string()));
        let found = git(&["rev-parse", "--show-toplevel", "HEAD"])?;
        let (top, commit) = found.trim().split_once('\n').unwrap_or_default();
        if Path::new(top) != root {
            return Err(not_checkout("it is not the root of a git repository".to_owned()));
        }
        let changes = git(&["status", "--porcelain", "--untracked-files=all"])?;
        let changed: Vec<&str> = changes.lines().filter_map(|line| line.get(3..)).collect();
        if !changed.is_empty() {
            let mut named = changed[..changed.len().min(MAX_NAMED)].join(", ");
            if changed.len() > MAX_NAMED {
                named = format!("{named} and {} more", changed.len() - MAX_NAMED);
            }
            return Err(EndpointsError::Changed {
                path: root,
                changes: named,
            });
        }
        Ok(Self {
            commit: commit.to_owned(),
            root,
        })
    }

    /// Returns the checkout's root directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the commit in hexadecimal.
    #[must_use]
    pub fn commit(&self) -> &str {
        &self.commit
    }
}

/// Why git does not know a checkout.
#[derive(Debug, thiserror::Error)]
enum GitError {
    #[error("cannot start git: {0}")]
    NotStarted(io::Error),
    /// With what it printed.
    #[error("{0}")]
    Failed(String),
}

fn git(root: &Path, arguments: &[&str]) -> Result<String, GitError> {
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output();
    let output = output.map_err(GitError::NotStarted)?;
    if !output.status.success() {
        let printed = String::from_utf8_lossy(&output.stderr);
        return Err(GitError::Failed(printed.trim().to_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
