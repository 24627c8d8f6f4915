//! The shared input of submission commands: the known rounds and the submission tree.

use std::{fs, path::Path};

use super::super::Context;
use crate::{exit::Failure, runs::Rounds};

/// Reads the rounds that a user may name.
pub(in crate::cli) fn rounds(context: &Context) -> Result<Rounds, Failure> {
    let workspace = context.open_if_there()?;
    Rounds::read(workspace.as_ref()).map_err(Failure::usage)
}

/// Rejects a missing tree, which the library would treat as an empty one.
pub(super) fn expect_tree(tree: &Path) -> Result<(), Failure> {
    fs::read_dir(tree).map(drop).map_err(|error| {
        let sentence = format!("the submission tree {} cannot be listed", tree.display());
        Failure::from(anyhow::Error::new(error).context(sentence))
            .hint("name the directory that holds closed/, open/ or network/ with --input")
    })
}
