//! `regatta device deploy`: brings the agent onto boards over SSH. Reads the command line, takes the boards one beside the other,
//! and prints the result of each; the work is done in [`regatta_deploy`].

mod board_error;
mod hidden_input;
mod hosts;
mod maintenance_hold;
mod packages;
mod prompt;
mod rollout;
mod rollout_document;
mod show;
mod upgrade;
mod waves;

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use regatta_ssh::{Access, AccessOptions, Destination, Prompt as _, Question, Session, SshConfig};
use regatta_text::HumanDuration;
use regatta_types::ExitCode;

use self::{
    board_error::BoardError,
    hosts::Host,
    show::{Board, Refusal, Row},
};
pub(super) use self::{
    packages::PackagePlaces,
    prompt::TerminalPrompt,
    show::Show,
    upgrade::{UpgradeArgs, upgrade},
};
use super::Context;
use crate::exit::{CommandResult, Failure};
use regatta_deploy::{
    DeployError, DeployOutcome, Deployment, InstallMethod, Lab, LabError, Order, ProgressReporter as _,
    ShimCache,
};
use regatta_lab_net::enrollment::check_name;
use regatta_lab_store::workspace::{Workspace, is_host};

/// Flags of `device deploy`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  regatta device deploy boat-1 user@192.168.1.20
      install, enroll and start the agent on one board
  regatta device deploy --hosts boards.txt --parallel 8
      the same on every board of a file, eight at a time")]
pub(in crate::cli) struct Args {
    /// The device's name
    #[arg(required_unless_present = "hosts", requires = "destination")]
    name: Option<String>,
    /// The login on the board: user@host or user@host:port, as for `ssh` (~/.ssh/config applies)
    #[arg(value_name = "USER@HOST", conflicts_with = "hosts")]
    destination: Option<Destination>,
    /// Deploy to many boards: a file with `NAME USER@HOST` on every line, or TOML with `[[device]]` tables
    #[arg(long, value_name = "FILE", conflicts_with = "name")]
    hosts: Option<PathBuf>,
    /// SSH port
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Enroll the board here even if it is enrolled in another lab
    #[arg(long)]
    take_over: bool,
    #[command(flatten)]
    flags: DeployFlags,
}

/// Flags of deployments and upgrades.
#[derive(Debug, clap::Args)]
struct DeployFlags {
    /// Number of boards to deploy to at the same time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    parallel: u8,
    /// Show what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// The agent's package, or a directory of packages [default: the packages in ./dist-out, in the workspace, beside this program, or in dist-out of
    /// its sources, where a missing package is built]
    #[arg(long, value_name = "PATH")]
    package: Vec<PathBuf>,
    /// Installation method: `system` (.deb, needs root) or `user` (archive, no root) [default: system if possible]
    #[arg(long = "as", value_name = "WAY", value_parser = ["system", "user"])]
    way: Option<String>,
    /// Name or address at which boards reach this machine [default: `host` in regatta.toml, else the address of the SSH connection]
    #[arg(long, value_name = "HOST")]
    coordinator: Option<String>,
    /// Private key to log in with; can be repeated
    #[arg(long, value_name = "FILE")]
    identity: Vec<PathBuf>,
    /// Jump host for the SSH connection
    #[arg(long, value_name = "USER@HOST[:PORT]")]
    jump: Option<Destination>,
    /// Read the password, for the login and for sudo, from the first line of standard input
    #[arg(long)]
    password_stdin: bool,
    /// Accept an unknown host with this key, as printed by `ssh-keygen -lf`; can be repeated
    #[arg(long, value_name = "SHA256:...")]
    accept_host_key: Vec<String>,
    /// How long to wait for a board to connect
    #[arg(long, value_name = "DURATION", default_value = "60s", alias = "wait")]
    timeout: HumanDuration,
}

/// One board that is to be deployed to.
struct Task {
    order: Order,
    access: Access,
    /// The login as it was named, for later connections.
    login: String,
}

/// The result of one board. `None` if its work was not begun.
type BoardResult = Option<Result<DeployOutcome, BoardError>>;

type BoardWork<'a> = dyn Fn(&Task) -> Result<DeployOutcome, BoardError> + Sync + 'a;

/// The results of all boards, in their order.
struct Results {
    of_boards: Vec<BoardResult>,
    /// The reason why boards were not begun, as a sentence.
    ending: Option<String>,
}

pub(in crate::cli) fn run(args: &Args, context: &Context) -> CommandResult {
    let (workspace, _) = context.open_store()?;
    let hosts = match (&args.hosts, &args.name, &args.destination) {
        (Some(file), _, _) => hosts::read(file)?,
        (None, Some(name), Some(destination)) => vec![Host::new(name.clone(), destination.clone())],
        _ => {
            return Err(Failure::misuse(
                "name a device and its login, or a file with --hosts",
            ));
        }
    };
    let tasks = tasks(hosts, args.port, args.take_over, &args.flags)?;
    let packages = PackagePlaces::find(&args.flags.package, workspace.root())?;
    let packages = match args.flags.dry_run {
        true => packages.without_building(),
        false => packages,
    };
    deploy(
        &tasks,
        &args.flags,
        &workspace,
        context,
        &packages,
        |tasks, at_once, work| {
            let boards: Vec<&Task> = tasks.iter().collect();
            let results = all(&boards, at_once, |_| true, |task| work(task));
            Ok(Results {
                of_boards: results,
                ending: None,
            })
        },
    )
}

/// Deploys to every board by `in_turn`, which gets the boards, how many may be worked on at once, and the work on one.
fn deploy(
    tasks: &[Task],
    flags: &DeployFlags,
    workspace: &Workspace,
    context: &Context,
    packages: &PackagePlaces,
    in_turn: impl FnOnce(&[Task], usize, &BoardWork<'_>) -> Result<Results, Failure>,
) -> CommandResult {
    let lab = Lab::of(workspace).map_err(lab_failure)?;
    if !workspace.is_served() {
        return Err(lab_failure(LabError::Unserved));
    }
    let show = Show::new(context.is_lively(), tasks.len() > 1);
    let prompt = TerminalPrompt::new(flags.password_stdin, &flags.accept_host_key, &show)?;
    let shims = ShimCache::new(workspace.root());
    let results = in_turn(tasks, usize::from(flags.parallel), &|task| {
        let board = show.board(&task.order.name);
        let result = one(task, (workspace, &lab), (packages, &shims), &prompt, &board);
        board.end(&result, flags.dry_run);
        result
    });
    show.clear();
    let results = results?;
    report(tasks, results, flags.dry_run, context)
}

pub(super) fn lab_failure(error: LabError) -> Failure {
    let hint = error.hint();
    Failure::from(error).optional_hint(hint)
}

/// Returns the work on each board.
fn tasks(
    hosts: Vec<Host>,
    port: Option<u16>,
    take_over: bool,
    flags: &DeployFlags,
) -> Result<Vec<Task>, Failure> {
    if let Some(host) = flags.coordinator.as_deref().filter(|host| !is_host(host)) {
        return Err(Failure::misuse(format!(
            "--coordinator is a name or address, without scheme and port, not `{host}`"
        )));
    }
    let config = SshConfig::of_user()?;
    hosts
        .into_iter()
        .map(|host| task(host, port, take_over, flags, &config))
        .collect()
}

fn task(
    host: Host,
    port: Option<u16>,
    take_over: bool,
    flags: &DeployFlags,
    config: &SshConfig,
) -> Result<Task, Failure> {
    check_name(&host.name).map_err(Failure::usage)?;
    let identities = match host.identity {
        Some(identity) => vec![identity],
        None => flags.identity.clone(),
    };
    let over = AccessOptions {
        user: None,
        port,
        identities,
        jump: host.jump.or_else(|| flags.jump.clone()),
    };
    let order = Order {
        name: host.name,
        coordinator: flags.coordinator.clone(),
        way: flags.way.as_deref().map(|way| match way {
            "user" => InstallMethod::User,
            _ => InstallMethod::System,
        }),
        take_over,
        dry_run: flags.dry_run,
        patience: Duration::from_millis(flags.timeout.millis()),
    };
    let access = config.access(&host.destination, &over).map_err(Failure::usage)?;
    let login = match over.port {
        Some(port) => Destination {
            port: Some(port),
            ..host.destination
        },
        None => host.destination,
    };
    Ok(Task {
        order,
        access,
        login: login.to_string(),
    })
}

/// Performs the tasks, some at a time, until a result ends the rollout. Returns the results in the tasks' order.
fn all<T: Sync, R: Send>(
    tasks: &[T],
    at_once: usize,
    continues_after: impl Fn(&R) -> bool + Sync,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<Option<R>> {
    let queue: Mutex<VecDeque<usize>> = Mutex::new((0..tasks.len()).collect());
    let results: Mutex<Vec<Option<R>>> = Mutex::new(tasks.iter().map(|_| None).collect());
    let worker = || {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some((number, task)) = next.and_then(|number| Some((number, tasks.get(number)?))) else {
                return;
            };
            let result = work(task);
            if !continues_after(&result) {
                queue.lock().unwrap_or_else(PoisonError::into_inner).clear();
            }
            if let Some(place) = results
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_mut(number)
            {
                *place = Some(result);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..at_once.min(tasks.len()) {
            scope.spawn(worker);
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn one(
    task: &Task,
    (workspace, lab): (&Workspace, &Lab),
    (packages, shims): (&PackagePlaces, &ShimCache),
    prompt: &TerminalPrompt<'_>,
    board: &Board<'_>,
) -> Result<DeployOutcome, BoardError> {
    board.say(&format!("connecting to {}", task.access));
    let session = Session::open(&task.access, prompt)?;
    let store = workspace.store().map_err(DeployError::from)?;
    let deployment = Deployment {
        board: &session,
        link_address: session.local_address(),
        progress: board,
        workspace,
        store: &store,
        lab,
        packages,
        shims,
        order: &task.order,
    };
    let outcome = deployment.run(&mut |again| prompt.secret(&Question::Sudo(&task.access), again))?;
    if let Some(device) = outcome.device.as_deref().and_then(|device| device.parse().ok()) {
        store
            .devices()
            .set_login(&device, &task.login)
            .map_err(DeployError::from)?;
    }
    Ok(outcome)
}

/// Prints the results of all. One board's failure is the command's own; several are in the table and the exit code.
fn report(tasks: &[Task], results: Results, dry_run: bool, context: &Context) -> CommandResult {
    let rows: Vec<Row<'_>> = tasks
        .iter()
        .zip(results.of_boards)
        .map(|(task, result)| Row {
            name: &task.order.name,
            address: task.access.to_string(),
            outcome: match result {
                Some(result) => result.map_err(|error| Refusal {
                    word: show::FAILED,
                    cause: Some(error.cause()),
                    error: sentence(&error),
                    hint: error.hint(),
                }),
                None => Err(Refusal {
                    word: show::NOT_BEGUN,
                    cause: None,
                    error: show::NOT_BEGUN.to_owned(),
                    hint: None,
                }),
            },
        })
        .collect();
    if let [
        Row {
            outcome: Err(Refusal { error, hint, .. }),
            ..
        },
    ] = rows.as_slice()
    {
        return Err(Failure::could_not(error).optional_hint(hint.as_ref()));
    }
    let failed = rows.iter().any(|row| row.outcome.is_err());
    let ending = results.ending;
    context.print(&show::document(&rows, dry_run, ending.as_deref()), || {
        let table = show::table(&rows, dry_run);
        ending
            .iter()
            .fold(table, |text, ending| format!("{text}\n{ending}"))
    })?;
    Ok(if failed {
        ExitCode::Failed
    } else {
        ExitCode::Success
    })
}

/// Returns an error with its causes behind it, as one sentence.
fn sentence(error: &BoardError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}
