//! `regatta power fetch`: fetches the files of a session that was complete on the device when the connection failed, and judges it.
//!
//! Nothing is measured again, and a session that failed stays failed.

use std::path::Path;

use regatta_catalogue::catalogue::Catalogue;
use regatta_power::session::missing_file;
use regatta_ssh::Destination;
use regatta_types::ExitCode;

use super::{
    super::{Context, deploy::Show},
    machines::{LoginArgs, machines_failure},
    show::session,
};
use crate::{
    exit::{CommandResult, Failure},
    tables,
};
use regatta_lab_power::{Link, RailsPower, judge, read_session_record, record_late_transfer};
use regatta_lab_store::PowerSessionEnd;

/// Flags of `power fetch`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct FetchArgs {
    /// The session's id, or `last`
    session: String,
    /// The login on the device: user@host or user@host:port [default: that of the session]
    #[arg(long, value_name = "USER@HOST")]
    ssh: Option<Destination>,
    #[command(flatten)]
    logins: LoginArgs,
}

pub(super) fn fetch(args: &FetchArgs, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let row = session(&store, &args.session)?;
    let directory = workspace.power_session(&row.id);
    let record = read_session_record(&directory)?;
    let nothing = || {
        Failure::misuse(format!("session {} has no files that wait on a device", row.id))
            .hint(format!("`regatta power show {}` shows how it ended", row.id))
    };
    let record = record.ok_or_else(nothing)?;
    let place = record.unfetched.clone().ok_or_else(nothing)?;
    let catalogue = Catalogue::read(Some(&workspace.configs())).map_err(Failure::usage)?;
    let rules = &catalogue
        .round(Some(&record.round))
        .map_err(Failure::usage)?
        .power;
    let rules = rules.as_ref().ok_or_else(nothing)?;
    let login = match &args.ssh {
        Some(login) => login.clone(),
        // The record has the login in words: user@host port N.
        None => record
            .machine
            .replace(" port ", ":")
            .parse()
            .map_err(Failure::usage)?,
    };
    let show = Show::new(false, true);
    let prompt = args.logins.prompt(&show)?;
    let connected = args.logins.logins(&prompt).connect(&login);
    let (link, _) = connected.map_err(machines_failure)?;
    let files = directory.join("session");
    link.fetch(&place, &files, workspace.min_free_bytes())
        .map_err(|error| anyhow::Error::new(error).context(format!("cannot fetch {place} from {login}")))?;
    if let Some(name) = missing_file(&files) {
        return Err(Failure::could_not(format!("{place} on {login} has no {name}"))
            .hint("the session was not complete there; make another one"));
    }
    let beside = store.runs().beside_session(&row.id)?;
    if let Some(run) = beside.iter().find(|run| !record.repeated.contains(run)) {
        return Err(Failure::could_not(format!(
            "run {run} was on the device at the same time as session {}, so the meter measured both",
            row.id
        ))
        .hint("make another session while nothing else uses the device"));
    }
    let verdict = judge(&record.meter.settings, rules, &files)?;
    let testing = row
        .testing
        .map(|run| store.runs().get(run))
        .transpose()?
        .flatten();
    let rails = testing.as_ref().and_then(RailsPower::of);
    let record = record_late_transfer(record, &directory, verdict, rails.as_ref())?;
    let end = PowerSessionEnd {
        verdict: record.verdict,
        simulated: record.simulated,
        mean_watts: record.energy.map(|energy| energy.watts),
        ..PowerSessionEnd::default()
    };
    store.power_sessions().record_fetched(&row.id, &end)?;
    remove(&link, &row.id, &place);
    context.print(&record, || tables::power_session(&record))?;
    Ok(if record.passes() {
        ExitCode::Success
    } else {
        ExitCode::Negative
    })
}

/// Removes the session's directory on the device, now that its files are here. What is left is named before the next session.
fn remove(link: &Link, id: &str, place: &str) {
    let parent = Path::new(place).parent();
    if let Some(parent) = parent.filter(|parent| parent.ends_with(format!("{id}-device"))) {
        let _ = link.files().remove(&parent.display().to_string());
    }
}
