//! `regatta meter`: the power meters of the lab, and their leases.

use std::net::Ipv4Addr;

use regatta_power::{ptd, server_conf as conf};
use regatta_ssh::Destination;
use regatta_text::escape;
use regatta_types::{
    ExitCode,
    documents::{EndCause, MeterSettings, RecordedFailure},
};
use serde_json::{Value, json};

use super::{Context, context::notify, submission::inputs::rounds};
use crate::{
    exit::{CommandResult, Failure},
    tables,
};
use regatta_lab_power::{LeaseError, server_conf};
use regatta_lab_store::{LeaseState, MeterRow, Store};

/// Commands about meters.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Add a meter that is connected to this machine or to another director
    Add(Box<AddArgs>),
    /// List the meters and the sessions that use them
    List,
    /// Remove a meter that no session uses
    Remove {
        /// The meter's name
        name: String,
    },
    /// End the lease of a session whose process ended on another machine or in another container
    Free {
        /// The meter's name
        name: String,
    },
}

/// Flags of `meter add`.
#[derive(Debug, clap::Args)]
pub(super) struct AddArgs {
    /// The meter's name: letters, digits, - and _
    name: String,
    /// The SSH login of the director, which is the machine with the meter [default: this machine]
    #[arg(long, value_name = "USER@HOST[:PORT]", requires = "checker")]
    director: Option<Destination>,
    /// The address at which devices reach the director [default: that of its login]
    #[arg(long, value_name = "HOST")]
    address: Option<String>,
    /// The director's copy of mlcommons/power-dev; required except for `power run --informative`
    #[arg(long, value_name = "DIR")]
    power_dev: Option<String>,
    /// This machine's copy, whose checker judges the sessions; required with --director
    #[arg(long, value_name = "DIR", requires = "director")]
    checker: Option<String>,
    /// PTDaemon's executable on the director
    #[arg(long, value_name = "FILE")]
    ptd: String,
    /// PTDaemon's number of the meter: 49 for a WT310 or WT310E
    #[arg(long, value_name = "N")]
    device_type: i64,
    /// Where the meter is connected: /dev/usbtmc0, COM1, an address or a serial number
    #[arg(long, value_name = "PORT")]
    device_port: String,
    /// PTDaemon's flag for the interface; none for serial, and for USB on Linux
    #[arg(long, value_name = "FLAG", default_value = "", allow_hyphen_values = true)]
    interface: String,
    /// Channels of a multi-channel meter: their count (48), or the first and the count
    #[arg(long, value_name = "A[,B]", value_delimiter = ',')]
    channel: Vec<i64>,
    /// The GPIB board
    #[arg(long, value_name = "N")]
    gpib_board: Option<i64>,
    /// The NTP server with which the official programs compare their clocks
    #[arg(long, value_name = "HOST")]
    ntp: String,
    /// The official server's TCP port
    #[arg(long, value_name = "PORT", default_value_t = conf::DEFAULT_PORT)]
    port: u16,
    /// PTDaemon's TCP port
    #[arg(long, value_name = "PORT", default_value_t = ptd::DEFAULT_PORT)]
    ptd_port: u16,
    /// The Python interpreter of the official server
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: String,
    /// Replace the meter of this name
    #[arg(long)]
    replace: bool,
}

pub(super) fn run(command: &Command, context: &Context) -> CommandResult {
    let (_, store) = context.open_store()?;
    match command {
        Command::Add(args) => add(args, &store, context),
        Command::List => {
            let rows = store.meters().all()?;
            context.print(&json!({ "meters": documents(&rows) }), || tables::meters(&rows))?;
            Ok(ExitCode::Success)
        }
        Command::Remove { name } => remove(name, &store, context),
        Command::Free { name } => free(name, &store, context),
    }
}

fn add(args: &AddArgs, store: &Store, context: &Context) -> CommandResult {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if args.name.is_empty() || args.name.len() > 40 || !args.name.bytes().all(is_name) {
        return Err(
            Failure::misuse(format!("`{}` is not a valid meter name", escape(&args.name)))
                .hint("up to 40 letters, digits, - and _, such as lab-wt310"),
        );
    }
    let settings = MeterSettings {
        director: args.director.as_ref().map(ToString::to_string),
        address: args.address.clone(),
        checker: match &args.checker {
            // A session may be made from another directory.
            Some(copy) => Some(std::path::absolute(copy)?.display().to_string()),
            None => None,
        },
        power_dev: args.power_dev.clone(),
        ptd: args.ptd.clone(),
        python: args.python.clone(),
        device_type: args.device_type,
        interface: args.interface.clone(),
        device_port: args.device_port.clone(),
        channel: args.channel.clone(),
        gpib_board: args.gpib_board,
        port: args.port,
        ptd_port: args.ptd_port,
        ntp: args.ntp.clone(),
    };
    expect_usable(&settings, context)?;
    if let Some(row) = store.meters().get(&args.name)? {
        expect_free(&row)?;
    }
    expect_own_port(&args.name, &settings, store)?;
    if !store.meters().put(&args.name, &settings, args.replace)? {
        return Err(Failure::misuse(format!("there is a meter {} already", args.name))
            .hint("--replace replaces it; `regatta meter list` shows all"));
    }
    let rows: Vec<_> = store.meters().get(&args.name)?.into_iter().collect();
    context.print(&json!({ "meters": documents(&rows) }), || tables::meters(&rows))?;
    Ok(ExitCode::Success)
}

/// Refuses a meter that a session has, or may have.
fn expect_free(row: &MeterRow) -> Result<(), Failure> {
    match &row.lease {
        Some(lease) if lease.state() != LeaseState::Stale => {
            Err(Failure::usage(LeaseError::of(&row.name, lease)))
        }
        _ => Ok(()),
    }
}

/// Refuses a second meter at one device port: two sessions would read one meter.
fn expect_own_port(name: &str, settings: &MeterSettings, store: &Store) -> Result<(), Failure> {
    let place = |settings: &MeterSettings| {
        let port = settings.device_port.clone();
        (
            settings.director.clone(),
            port,
            settings.interface.clone(),
            settings.gpib_board,
        )
    };
    let same = |row: &MeterRow| row.name != name && place(&row.settings) == place(settings);
    match store.meters().all()?.into_iter().find(same) {
        None => Ok(()),
        Some(row) => Err(Failure::misuse(format!(
            "the meter {} is at {} already",
            row.name,
            escape(&settings.device_port)
        ))
        .hint(format!(
            "use that meter, or `regatta meter remove {}` first",
            row.name
        ))),
    }
}

/// Refuses settings with which the official server does not start; tells of others that the checker refuses.
fn expect_usable(settings: &MeterSettings, context: &Context) -> Result<(), Failure> {
    let mut conf_of_meter = server_conf(settings, false);
    // Regatta chooses the address for each session, so no finding about it can help.
    conf_of_meter.listen.0 = Ipv4Addr::UNSPECIFIED.into();
    let text = conf_of_meter.render().map_err(Failure::usage)?;
    let rounds = rounds(context)?;
    let round = rounds.named(None).map_err(Failure::usage)?;
    let (read, findings) = conf::lint(&text, round.power.as_ref());
    for finding in &findings {
        if read.is_none() {
            return Err(Failure::misuse(&finding.text).hint(&finding.hint));
        }
        notify(&format!("{}; hint: {}", finding.text, finding.hint));
    }
    Ok(())
}

fn remove(name: &str, store: &Store, context: &Context) -> CommandResult {
    let row = store.meters().get(name)?.ok_or_else(|| unknown(name))?;
    expect_free(&row)?;
    end_lease(&row, "the process of this session ended in the middle", store)?;
    if !store.meters().remove(name)? {
        return Err(Failure::misuse(format!("a session uses the meter {name}")).hint("wait for its end"));
    }
    context.print(&json!({ "removed": name }), || format!("removed meter {name}"))?;
    Ok(ExitCode::Success)
}

fn free(name: &str, store: &Store, context: &Context) -> CommandResult {
    let row = store.meters().get(name)?.ok_or_else(|| unknown(name))?;
    if let Some(lease) = row
        .lease
        .as_ref()
        .filter(|lease| lease.state() == LeaseState::Held)
    {
        let sentence = format!(
            "process {} of session {} is running on this machine",
            lease.pid(),
            lease.session
        );
        let hint = match lease.is_of_campaign() {
            true => "it belongs to a campaign: `regatta campaign abort` ends it".to_owned(),
            false => format!("interrupt it with `kill -INT {}`", lease.pid()),
        };
        return Err(Failure::misuse(sentence).hint(hint));
    }
    end_lease(&row, "its lease was ended with `regatta meter free`", store)?;
    let session = row.lease.map(|lease| lease.session);
    context.print(&json!({ "freed": name, "session": session }), || match &session {
        Some(session) => format!("{name} is free; session {session} is recorded as failed"),
        None => format!("{name} was free"),
    })?;
    Ok(ExitCode::Success)
}

/// Ends the lease of a session that is over, and the session.
fn end_lease(row: &MeterRow, reason: &str, store: &Store) -> Result<(), Failure> {
    if let Some(lease) = &row.lease {
        let failure = RecordedFailure {
            cause: EndCause::Infrastructure,
            reason: reason.to_owned(),
        };
        store.power_sessions().fail(&lease.session, &failure)?;
        store.meters().release(&row.name, &lease.session)?;
    }
    Ok(())
}

/// Returns the failure of a command that names a meter which does not exist.
pub(super) fn unknown(name: &str) -> Failure {
    Failure::misuse(format!("unknown meter `{}`", escape(name)))
        .hint("`regatta meter list` shows all meters; `regatta meter add` adds one")
}

fn documents(rows: &[MeterRow]) -> Vec<Value> {
    let document = |row: &MeterRow| {
        let lease = row.lease.as_ref().map(|lease| {
            json!({
                "session": lease.session, "since": lease.since, "process": lease.pid(),
                "state": match lease.state() {
                    LeaseState::Held => "held",
                    LeaseState::Stale => "stale",
                    LeaseState::Unknown => "unknown",
                },
            })
        });
        json!({ "name": row.name, "settings": row.settings, "added": row.added, "lease": lease })
    };
    rows.iter().map(document).collect()
}
