//! `regatta init`: makes a workspace, with the keys of a new lab.

use std::{
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    path::{Path, PathBuf},
};

use clap::ValueEnum;

use regatta_types::{BrokerAddress, ExitCode};

use super::{
    Context,
    context::{WORKSPACE_VARIABLE, notify, say},
};
use crate::{
    daemon::server_hosts,
    exit::{CommandResult, Failure},
};
use regatta_lab_net::{broker::mosquitto, keys::Keys};
use regatta_lab_store::workspace::{
    CONFIG_FILE, Config, KEYS, NewConfig, Workspace, WorkspaceError, is_host,
};

/// Flags of `init`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  regatta init lab && regatta serve --detach
      create a lab in the directory `lab` and run its coordinator in the background")]
pub(super) struct Args {
    /// The directory of the workspace, which is created if it is missing [default: the one of --workspace, or this directory]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
    /// The MQTT broker: embedded in the coordinator, or a separate mosquitto, for which a configuration is written
    #[arg(long, value_name = "BROKER", default_value = "embedded")]
    broker: BrokerKind,
    /// The address on which the broker listens (TLS only)
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:8883")]
    listen: SocketAddr,
    /// The address on which the coordinator listens for devices that enroll
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:8884")]
    enroll_listen: SocketAddr,
    /// The address from which devices download models and data over HTTPS
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:8885")]
    assets_listen: SocketAddr,
    /// Name or address at which devices reach this machine [default: its address on the network]
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
}

/// Which broker a lab begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BrokerKind {
    /// Embedded in the coordinator
    Embedded,
    /// A separate mosquitto process
    Mosquitto,
}

pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    let root = root(args, context)?;
    if root.join(CONFIG_FILE).exists() {
        let serve = context.in_workspace(root).command("serve");
        return Err(Failure::usage(WorkspaceError::Exists(root.to_owned()))
            .hint(format!("serve it with `{serve}`, or name another directory")));
    }
    let host = args.host.clone().unwrap_or_else(|| own_address(args.listen));
    if !is_host(&host) {
        return Err(Failure::misuse(format!(
            "--host is the name or address of this machine, without scheme and port, not `{host}`"
        ))
        .hint("--listen, --enroll-listen and --assets-listen set the ports"));
    }
    let keys = Keys::create(&root.join(KEYS))
        .map_err(|error| Failure::from(error).hint("choose another directory"))?;
    let external = (args.broker == BrokerKind::Mosquitto).then(|| mosquitto_address(args.listen));
    let config = NewConfig {
        external,
        listen: args.listen,
        enroll_listen: args.enroll_listen,
        assets_listen: args.assets_listen,
        host: host.clone(),
    };
    let workspace = Workspace::create(root, &Config::template(&config))?;
    let next = context.in_workspace(root);
    let place = workspace.root().display();
    let mut text = format!(
        "made a workspace in {place}, with keys of a new lab in {place}/{KEYS}: keep them secret, and back them up\n"
    );
    if args.broker == BrokerKind::Mosquitto {
        let directory = workspace.mosquitto();
        let store = workspace.store()?;
        mosquitto::write(&directory, &keys, &store, args.listen, &server_hosts(&host))?;
        text.push_str(&format!(
            "start the broker: mosquitto -c {}/mosquitto.conf\n",
            directory.display()
        ));
    }
    let [serve, deploy, add] = [
        "serve --detach",
        "device deploy NAME user@host",
        "device add NAME",
    ]
    .map(|words| next.command(words));
    text.push_str(&format!(
        "devices reach this machine as {host} (`host` in {CONFIG_FILE})\n\
         next:\n  \
           {serve}\n  \
           {deploy}\n  \
           {add}\n\
         (`device deploy` installs and enrolls a board over SSH; `device add` prints a token for one that is set up by hand)"
    ));
    say(&text)?;
    if let Some(problem) = workspace.config().host_problem() {
        notify(&format!(
            "{problem}; hint: set `host` in {place}/{CONFIG_FILE} to its name or address on the network before the first `regatta device add`"
        ));
    }
    Ok(ExitCode::Success)
}

/// Returns the directory of the new workspace. Ignores a workspace that the search found, because that is another lab's.
fn root<'a>(args: &'a Args, context: &'a Context) -> Result<&'a Path, Failure> {
    match (args.directory.as_deref(), context.named_workspace()) {
        (Some(directory), Some(named)) if directory != named => Err(Failure::misuse(format!(
            "two directories are named: {}, and {} by --workspace or {WORKSPACE_VARIABLE}",
            directory.display(),
            named.display()
        ))
        .hint("name one; further commands use the second")),
        (Some(directory), _) => Ok(directory),
        (None, named) => Ok(named.unwrap_or(Path::new("."))),
    }
}

/// Returns the address at which the coordinator finds a mosquitto that it configures: on this machine.
fn mosquitto_address(listen: SocketAddr) -> BrokerAddress {
    let mut socket = listen;
    if socket.ip().is_unspecified() {
        socket.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    BrokerAddress::of(socket, true)
}

/// Returns this machine's address on the network: the one that it would send from. Nothing is sent to find it out.
fn own_address(listen: SocketAddr) -> String {
    if !listen.ip().is_unspecified() {
        return listen.ip().to_string();
    }
    // TEST-NET-1: an address that is nobody's.
    let outbound = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9))?;
        socket.local_addr()
    });
    outbound.map_or_else(
        |_| Ipv4Addr::LOCALHOST.to_string(),
        |address| address.ip().to_string(),
    )
}
