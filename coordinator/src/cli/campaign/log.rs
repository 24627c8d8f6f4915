//! `regatta campaign log`: the users' requests to a campaign.

use serde_json::json;

use super::{Context, campaign, control::NameArgs};
use crate::{exit::CommandResult, tables};
use regatta_types::ExitCode;

/// Prints the requests of users, oldest first.
pub(super) fn run(args: &NameArgs, context: &Context) -> CommandResult {
    let (_, store) = context.open_store()?;
    let row = campaign(&store, Some(&args.name))?;
    let log = store.campaign_log().of_campaign(&row.name)?;
    let document = json!({ "campaign": row.name, "log": log });
    context.print(&document, || tables::campaign_log(&row.name, &log))?;
    Ok(ExitCode::Success)
}
