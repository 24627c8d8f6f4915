//! `regatta meter`: the power meters of the lab, and who uses them.

use regatta_power::{ptd, server_conf as conf};
use regatta_text::escape;
use serde_json::{Value, json};

use super::{Context, context::tell, submission::inputs::rounds};
use crate::{
    exit::{self, CommandResult, Failure},
    power::server_conf,
    store::{MeterRow, MeterSettings, Store},
    tables,
};

/// Commands about meters.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Adds a meter that is connected to this machine
    Add(Box<AddArgs>),
    /// Lists the meters and the sessions that use them
    List,
    /// Removes a meter that no session uses
    Remove {
        /// The meter's name
        name: String,
    },
}

/// Flags of `meter add`.
#[derive(Debug, clap::Args)]
pub(super) struct AddArgs {
    /// A name for it: letters, digits, - and _
    name: String,
    /// The copy of mlcommons/power-dev on this machine
    #[arg(long, value_name = "DIR")]
    power_dev: String,
    /// PTDaemon's executable on this machine
    #[arg(long, value_name = "FILE")]
    ptd: String,
    /// PTDaemon's number of the meter: 49 for a WT310 or WT310E
    #[arg(long, value_name = "N")]
    device_type: i64,
    /// Where the meter is connected: /dev/usbtmc0, COM1, an address or a serial number
    #[arg(long, value_name = "PORT")]
    device_port: String,
    /// PTDaemon's flag of the interface; none for serial, and for USB on Linux
    #[arg(long, value_name = "FLAG", default_value = "", allow_hyphen_values = true)]
    interface: String,
    /// The channels of a meter with several: their count (48), or the first and the count
    #[arg(long, value_name = "A[,B]", value_delimiter = ',')]
    channel: Vec<i64>,
    /// The GPIB board
    #[arg(long, value_name = "N")]
    gpib_board: Option<i64>,
    /// The NTP server that the official programs compare clocks with
    #[arg(long, value_name = "HOST")]
    ntp: String,
    /// The official server's TCP port
    #[arg(long, value_name = "PORT", default_value_t = conf::DEFAULT_PORT)]
    port: u16,
    /// PTDaemon's TCP port
    #[arg(long, value_name = "PORT", default_value_t = ptd::DEFAULT_PORT)]
    ptd_port: u16,
    /// The Python interpreter of the official programs
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: String,
    /// Replaces the meter of this name
    #[arg(long)]
    replace: bool,
}

pub(super) fn run(command: &Command, context: &Context) -> CommandResult {
    let (_, store) = context.open_store()?;
    match command {
        Command::Add(args) => add(args, &store, context),
        Command::List => {
            let rows = store.meters()?;
            context.print(&json!({ "meters": documents(&rows) }), || tables::meters(&rows))?;
            Ok(exit::OK)
        }
        Command::Remove { name } => remove(name, &store, context),
    }
}

fn add(args: &AddArgs, store: &Store, context: &Context) -> CommandResult {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if args.name.is_empty() || args.name.len() > 40 || !args.name.bytes().all(is_name) {
        return Err(
            Failure::misuse(format!("`{}` is no name for a meter", escape(&args.name)))
                .hint("up to 40 letters, digits, - and _, such as lab-wt310"),
        );
    }
    let settings = MeterSettings {
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
    if store
        .meter(&args.name)?
        .is_some_and(|row| row.lease.is_some_and(|lease| !lease.is_stale()))
    {
        return Err(Failure::misuse(format!("a session uses the meter {}", args.name)));
    }
    if !store.keep_meter(&args.name, &settings, args.replace)? {
        return Err(Failure::misuse(format!("there is a meter {} already", args.name))
            .hint("--replace replaces it; `regatta meter list` shows all"));
    }
    let rows: Vec<_> = store.meter(&args.name)?.into_iter().collect();
    context.print(&json!({ "meters": documents(&rows) }), || tables::meters(&rows))?;
    Ok(exit::OK)
}

/// Refuses settings with which the official server does not start; tells of others that the checker refuses.
fn expect_usable(settings: &MeterSettings, context: &Context) -> Result<(), Failure> {
    let text = server_conf(settings).render().map_err(Failure::usage)?;
    let rounds = rounds(context)?;
    let round = rounds.named(None).map_err(Failure::usage)?;
    let (read, findings) = conf::lint(&text, round.power.as_ref());
    for finding in &findings {
        if read.is_none() {
            return Err(Failure::misuse(&finding.text).hint(&finding.hint));
        }
        tell(&format!("{}; hint: {}", finding.text, finding.hint));
    }
    Ok(())
}

fn remove(name: &str, store: &Store, context: &Context) -> CommandResult {
    let row = store.meter(name)?.ok_or_else(|| unknown(name))?;
    if let Some(lease) = row.lease.filter(|lease| !lease.is_stale()) {
        return Err(
            Failure::misuse(format!("session {} uses the meter {name}", lease.session))
                .hint("wait for its end"),
        );
    }
    store.drop_meter(name)?;
    context.print(&json!({ "removed": name }), || {
        format!("{name} is no meter any more")
    })?;
    Ok(exit::OK)
}

/// The failure of a command that names a meter which does not exist.
pub(super) fn unknown(name: &str) -> Failure {
    Failure::misuse(format!("unknown meter `{}`", escape(name)))
        .hint("`regatta meter list` shows those that there are; `regatta meter add` adds one")
}

fn documents(rows: &[MeterRow]) -> Vec<Value> {
    let document = |row: &MeterRow| {
        let lease = row.lease.as_ref().map(|lease| {
            json!({
                "session": lease.session, "since": lease.since, "process": lease.pid(), "stale": lease.is_stale(),
            })
        });
        json!({ "name": row.name, "settings": row.settings, "added": row.added, "lease": lease })
    };
    rows.iter().map(document).collect()
}
