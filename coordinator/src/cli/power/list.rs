//! `regatta power list`: every session of the workspace, also those that failed.

use super::super::Context;
use crate::{exit::CommandResult, tables};
use regatta_lab_views::documents;
use regatta_types::ExitCode;

pub(super) fn list(context: &Context) -> CommandResult {
    let (_, store) = context.open_store()?;
    let rows = store.power_sessions().all()?;
    context.print(&documents::power_sessions(&rows), || {
        tables::power_sessions(&rows)
    })?;
    Ok(ExitCode::Success)
}
