//! `regatta device add` and `remove`: enrollment tokens, and the removal of devices.

use jiff::{SignedDuration, Timestamp};
use regatta_text::HumanDuration;
use regatta_types::{DeviceId, documents::RunPhase};
use serde::Serialize;

use super::{Context, confirm::confirm, context::notify};
use crate::exit::Failure;
use regatta_lab_net::{
    broker::mosquitto,
    enrollment::{self, NewToken, TokenError, TokenRequest},
    keys::Keys,
};
use regatta_lab_store::{
    Store,
    workspace::{CONFIG_FILE, Config, Workspace},
};
use regatta_lab_views::{lookup, wording};

/// Flags of `device add`.
#[derive(Debug, clap::Args)]
pub(super) struct AddArgs {
    /// The device's name
    name: String,
    /// Print tokens for this many devices, named NAME-0001 and so on: a name and its token on each line
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=50_000))]
    count: Option<u16>,
    /// Let the enrolled device of this name enroll again with its key, for example because its certificate has expired
    #[arg(long, conflicts_with = "count")]
    again: bool,
    /// How long the token is valid, such as 10m or 24h
    #[arg(long, value_name = "DURATION", default_value = "24h")]
    lifetime: HumanDuration,
}

/// Flags of `device remove`.
#[derive(Debug, clap::Args)]
pub(super) struct RemoveArgs {
    /// The device's name or id
    device: String,
    /// Do not prompt
    #[arg(long)]
    yes: bool,
    /// Show what would be removed, and which runs would be given up
    #[arg(long)]
    dry_run: bool,
}

/// A token as a JSON document.
#[derive(Serialize)]
struct EnrollmentTokenDocument<'a> {
    name: &'a str,
    token: String,
    expires: &'a str,
}

/// Prints a token for a new device.
pub(super) fn add(
    args: &AddArgs,
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> Result<(), Failure> {
    let config = workspace.config();
    if !config.tls {
        return Err(
            Failure::misuse("this workspace has no keys: devices need not enroll").hint(format!(
                "`regatta init` creates a workspace with keys; `tls` in {CONFIG_FILE} shows whether a workspace has them"
            )),
        );
    }
    warn_if_unreachable(config);
    let keys = Keys::load(&workspace.keys())?;
    let authority = keys.authority().fingerprint();
    if let Some(count) = args.count {
        return add_many(args, count, authority, context, workspace, store);
    }
    let made = issue(args, &args.name, authority, workspace, store)?;
    let document = EnrollmentTokenDocument {
        name: &args.name,
        token: made.token.to_string(),
        expires: &made.expires,
    };
    context.print(&document, || {
        let note = if workspace.is_served() {
            ""
        } else {
            "\nstart `regatta serve` first: it answers the device"
        };
        format!(
            "on {}, once, until {}:\n  regatta-agent enroll {}{note}",
            args.name,
            wording::time(&made.expires),
            document.token
        )
    })?;
    Ok(())
}

/// Prints tokens for several devices, for `regatta-agent simulate` and for scripts.
fn add_many(
    args: &AddArgs,
    count: u16,
    authority: [u8; 32],
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> Result<(), Failure> {
    let mut made = Vec::with_capacity(usize::from(count));
    for number in 1..=count {
        let name = format!("{}-{number:04}", args.name);
        let token = issue(args, &name, authority, workspace, store)?;
        made.push((name, token));
    }
    let documents = made.iter().map(|(name, made)| EnrollmentTokenDocument {
        name,
        token: made.token.to_string(),
        expires: &made.expires,
    });
    let document = serde_json::json!({ "tokens": documents.collect::<Vec<_>>() });
    context.print(&document, || {
        let lines = made.iter().map(|(name, made)| format!("{name} {}", made.token));
        lines.collect::<Vec<_>>().join("\n")
    })?;
    Ok(())
}

/// Issues the token of one device.
fn issue(
    args: &AddArgs,
    name: &str,
    authority: [u8; 32],
    workspace: &Workspace,
    store: &Store,
) -> Result<NewToken, Failure> {
    let config = workspace.config();
    let returning = if args.again {
        Some(enrolled(name, store)?)
    } else {
        None
    };
    let requested = TokenRequest {
        name,
        place: (config.host.clone(), config.enroll_listen.port()),
        authority,
        lifetime: SignedDuration::from_millis(i64::try_from(args.lifetime.millis()).unwrap_or(i64::MAX)),
        returning: returning.as_ref(),
    };
    enrollment::issue(store, &requested).map_err(|error| {
        let hint = matches!(error, TokenError::Taken(_)).then(|| {
            format!(
                "`regatta device add {name} --again` creates a token for the same device with its key; `regatta device remove {name}` removes \
                 the device or revokes the token, and then another device can have the name"
            )
        });
        Failure::of_kind(error.kind(), error).optional_hint(hint)
    })
}

fn enrolled(name: &str, store: &Store) -> Result<DeviceId, Failure> {
    let members = store.members().all()?.into_iter();
    let mut found = members.filter(|member| member.removed.is_none() && member.name == name);
    found.next().map(|member| member.device).ok_or_else(|| {
        Failure::misuse(format!("no device is enrolled as {name}"))
            .hint("a new device needs no --again; `regatta device list` shows the enrolled ones")
    })
}

/// Warns about a token that no other machine can use.
fn warn_if_unreachable(config: &Config) {
    if let Some(problem) = config.host_problem() {
        notify(&format!(
            "{problem}; hint: set `host` in {CONFIG_FILE}, restart `regatta serve`, and make the token again"
        ));
    }
}

/// The result of a removal, as a JSON document.
#[derive(Serialize)]
struct RemovalDocument<'a> {
    device: &'a str,
    name: &'a str,
    removed: bool,
    broker_notified: Option<bool>,
}

/// Removes a device, or takes a token back that nobody has used.
pub(super) fn remove(
    args: &RemoveArgs,
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> Result<(), Failure> {
    let Some((device, name, public_key)) = find(&args.device, store)? else {
        return take_back(&args.device, context, store);
    };
    let consequences = consequences(&device, &name, store)?;
    if args.dry_run {
        let document = RemovalDocument {
            device: device.as_str(),
            name: &name,
            removed: false,
            broker_notified: None,
        };
        return Ok(context.print(&document, || format!("would remove {consequences}"))?);
    }
    confirm(&format!("{consequences}.\nRemove {name}?"), args.yes)?;
    store.members().remove(&device, &name, &public_key)?;
    let directory = workspace.mosquitto();
    let broker_notified = if directory.exists() && workspace.config().tls {
        mosquitto::write_access(&directory, &Keys::load(&workspace.keys())?, store)?;
        Some(mosquitto::reload(&directory))
    } else {
        None
    };
    let document = RemovalDocument {
        device: device.as_str(),
        name: &name,
        removed: true,
        broker_notified,
    };
    context.print(&document, || {
        let mut text = format!("removed {name} ({device}): its key and certificates are revoked, and its open runs have failed");
        match broker_notified {
            Some(true) => text.push_str(
                "\nmosquitto has reloaded its rights; restart it when convenient, so that it also refuses the certificate in the handshake",
            ),
            Some(false) => text.push_str(&format!(
                "\nmosquitto did not reload its rights: send it SIGHUP, or restart it with {}/mosquitto.conf",
                directory.display()
            )),
            None => {}
        }
        text
    })?;
    Ok(())
}

/// Describes a device and what its removal means, so that a wrong letter in a name is noticed.
fn consequences(device: &DeviceId, name: &str, store: &Store) -> Result<String, Failure> {
    let row = store.devices().get(device)?;
    let mut facts = vec![device.to_string()];
    if let Some(row) = &row {
        let board = row.reported_facts().ok().map(|facts| facts.model);
        facts.extend(board.filter(|model| !model.is_empty()));
        facts.push(if row.online {
            "online".to_owned()
        } else {
            format!("last seen {}", wording::ago(&row.last_seen, Timestamp::now()))
        });
    }
    let last = store.runs().all()?.into_iter().find(|run| run.device == *device);
    facts.push(last.map_or_else(
        || "without a run".to_owned(),
        |run| format!("last run {} {} {}", run.id, run.benchmark, run.scenario),
    ));
    let mut text = format!(
        "{name} ({}): its key is refused for good, and the board must enroll again with a new one",
        facts.join(", ")
    );
    let abandoned = runs_at_stake(device, store)?;
    if !abandoned.is_empty() {
        text.push_str(&format!(
            "; these runs are given up:\n  {}",
            abandoned.join(";\n  ")
        ));
    }
    Ok(text)
}

/// Describes the runs of a device that its removal gives up: those that are not over, and those whose files did not all arrive.
fn runs_at_stake(device: &DeviceId, store: &Store) -> Result<Vec<String>, Failure> {
    let rows = store
        .runs()
        .all()?
        .into_iter()
        .rev()
        .filter(|row| row.device == *device);
    let described = rows.filter_map(|row| {
        let state = match (row.is_over(), row.state.phase) {
            (false, RunPhase::Done | RunPhase::Draining) => {
                "finished on the device, not delivered".to_owned()
            }
            (false, phase) => phase.to_string(),
            (true, _) if row.has_undelivered_files() => "not all of its files arrived".to_owned(),
            (true, _) => return None,
        };
        let mode = row.audit().unwrap_or(row.mode.as_str());
        Some(format!(
            "{} {} {} {}: {state}",
            row.id, row.benchmark, row.scenario, mode
        ))
    });
    Ok(described.collect())
}

/// Takes back the token for a device that has not come.
fn take_back(name: &str, context: &Context, store: &Store) -> Result<(), Failure> {
    if store.enrollment_tokens().delete_unused(name)? == 0 {
        return Err(Failure::misuse(format!("unknown device `{name}`"))
            .hint("`regatta device list` shows all of them"));
    }
    context.print(&serde_json::json!({ "name": name, "removed": true }), || {
        format!("token for {name} revoked")
    })?;
    Ok(())
}

/// Returns the device that a user means by name or id: a member, or one that has only sent a hello.
fn find(name_or_id: &str, store: &Store) -> Result<Option<(DeviceId, String, [u8; 32])>, Failure> {
    let members = store
        .members()
        .all()?
        .into_iter()
        .filter(|member| member.removed.is_none())
        .map(|member| (member.device, member.name, member.public_key));
    let mut known: Vec<_> = members.collect();
    for device in store.devices().all()? {
        if known.iter().all(|(id, _, _)| *id != device.id) {
            known.push((device.id, device.name, device.public_key));
        }
    }
    let mut meant = known
        .iter()
        .filter(|(id, name, _)| lookup::is_id_or_beginning(id, name_or_id) || name == name_or_id);
    match (meant.next(), meant.next()) {
        (Some(device), None) => Ok(Some(device.clone())),
        (Some(_), Some(_)) => Err(Failure::misuse(format!(
            "more than one device is called `{name_or_id}`: name it by its id"
        ))),
        (None, _) => Ok(None),
    }
}
