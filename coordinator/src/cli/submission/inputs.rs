//! What several submission commands read: the rounds that may be named, and the tree that is given.

use std::{fs, path::Path};

use super::super::Context;
use crate::{exit::Failure, runs::Rounds};

/// The rounds that may be named.
pub(in crate::cli) fn rounds(context: &Context) -> Result<Rounds, Failure> {
    let workspace = context.open_if_there()?;
    Rounds::read(workspace.as_ref()).map_err(Failure::usage)
}

/// Refuses a tree that is not there, which the library would take for one that lacks what it looks for.
pub(super) fn expect_tree(tree: &Path) -> Result<(), Failure> {
    fs::read_dir(tree).map(drop).map_err(|error| {
        let sentence = format!("the submission tree {} cannot be listed", tree.display());
        Failure::from(anyhow::Error::new(error).context(sentence))
            .hint("name the directory that holds closed/, open/ or network/ with --input")
    })
}
