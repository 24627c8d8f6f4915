//! `regatta init`: makes a workspace.

use super::{Context, context::say};
use crate::{
    exit::{self, Failure, Outcome},
    workspace::{Config, Workspace, WorkspaceError},
};

/// Flags of `init`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(context: &Context) -> Outcome {
    let listen = ([127, 0, 0, 1], 1883).into();
    let workspace =
        Workspace::create(&context.workspace, &Config::template(listen)).map_err(|error| match error {
            WorkspaceError::Exists(_) => Failure::usage(error),
            error => error.into(),
        })?;
    say(&format!(
        "made a workspace in {}\nnext: start `regatta serve` there, and `regatta-agent serve` on a device",
        workspace.root().display()
    ))?;
    Ok(exit::OK)
}
