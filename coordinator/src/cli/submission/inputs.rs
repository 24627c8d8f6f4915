//! The shared input of submission commands: the known rounds and the submission tree.

use std::{fs, path::Path};

use regatta_catalogue::catalogue::RoundCatalogue;

use super::super::Context;
use crate::exit::Failure;
use regatta_lab_store::workspace::Workspace;

/// Reads the rounds that a user may name.
pub(in crate::cli) fn rounds(context: &Context) -> Result<RoundCatalogue, Failure> {
    let workspace = context.open_if_there()?;
    RoundCatalogue::read(workspace.as_ref().map(Workspace::configs).as_deref()).map_err(Failure::usage)
}

/// Rejects a missing tree, which the library would treat as an empty one.
pub(super) fn expect_tree(tree: &Path) -> Result<(), Failure> {
    fs::read_dir(tree).map(drop).map_err(|error| {
        let sentence = format!("the submission tree {} cannot be listed", tree.display());
        Failure::from(anyhow::Error::new(error).context(sentence))
            .hint("name with --input the directory that contains closed/, open/ or network/")
    })
}
