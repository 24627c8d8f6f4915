//! `regatta power show`: one session with what both checkers said, its energy and its files.

use super::super::Context;
use crate::{
    exit::{CommandResult, Failure},
    tables,
};
use regatta_lab_power::read_session_record;
use regatta_lab_store::{PowerSessionRow, Store};
use regatta_lab_views::documents;
use regatta_types::ExitCode;

/// The name of the session that began last.
const LAST: &str = "last";

/// Flags of `power show`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ShowArgs {
    /// The session's id, or `last`
    session: String,
}

pub(super) fn show(args: &ShowArgs, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let row = session(&store, &args.session)?;
    let record = read_session_record(&workspace.power_session(&row.id))?;
    context.print(
        &documents::shown_power_session(&row, record.as_ref()),
        || match &record {
            Some(record) => tables::power_session(record),
            None => tables::power_sessions(std::slice::from_ref(&row)),
        },
    )?;
    Ok(ExitCode::Success)
}

/// The session with an id, or the last one.
pub(super) fn session(store: &Store, name: &str) -> Result<PowerSessionRow, Failure> {
    let found = match name {
        LAST => store.power_sessions().all()?.into_iter().next(),
        id => store.power_sessions().get(id)?,
    };
    found.ok_or_else(|| {
        Failure::misuse(format!("unknown power session `{name}`"))
            .hint("`regatta power list` shows them; `last` names the last one")
    })
}
