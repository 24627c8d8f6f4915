//! `regatta endpoints`: benchmarks that MLCommons' endpoints harness runs against a model server. The work is `coordinator/endpoints`'; here are
//! flags, progress, reports and exit codes.

mod collect;
mod device_address;
mod device_server;
mod run;
mod stage;

use std::path::{Path, PathBuf};

use regatta_endpoints::{ClientCheckout, ClientEnvironment, EndpointsError};
use regatta_types::ExitCode;
use serde_json::json;

use super::Context;
use crate::exit::{CommandResult, Failure};

/// What can be done with the endpoints harness.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Install the packages of the harness's client, from your checkout of mlcommons/endpoints
    Setup(SetupArgs),
    /// Measure a model server with the unmodified client and the round's configuration
    // `--version` is the round, as in other commands.
    #[command(disable_version_flag = true)]
    Run(Box<run::Args>),
    /// Complete a run whose command ended before its device had delivered its part
    Collect(collect::CollectArgs),
    /// Create a submission tree from a run
    Stage(stage::Args),
}

/// Flags of `endpoints setup`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  git clone https://github.com/mlcommons/endpoints && regatta endpoints setup --client endpoints")]
pub(super) struct SetupArgs {
    #[command(flatten)]
    client: ClientArgs,
    /// Python 3.12 or newer [default: the first of python3.12, python3.13, ... in PATH]
    #[arg(long, value_name = "PROGRAM")]
    python: Option<PathBuf>,
}

/// Where the client is.
#[derive(Debug, clap::Args)]
struct ClientArgs {
    /// Your checkout of mlcommons/endpoints, without local changes
    #[arg(long, value_name = "DIR")]
    client: PathBuf,
    /// The directory for the client's packages [default: endpoints-python in the workspace]
    #[arg(long, value_name = "DIR")]
    environment: Option<PathBuf>,
}

impl ClientArgs {
    fn checkout(&self) -> Result<ClientCheckout, Failure> {
        ClientCheckout::open(&self.client).map_err(failure)
    }

    fn environment_directory(&self, context: &Context) -> Result<PathBuf, Failure> {
        let directory = match &self.environment {
            Some(directory) => directory.clone(),
            None => context.open()?.root().join("endpoints-python"),
        };
        // The client runs in another directory.
        Ok(std::path::absolute(directory)?)
    }
}

pub(super) fn run(command: &Command, context: &Context) -> CommandResult {
    match command {
        Command::Setup(args) => setup(args, context),
        Command::Run(args) => run::run(args, context),
        Command::Collect(args) => collect::run(args, context),
        Command::Stage(args) => stage::run(args, context),
    }
}

fn setup(args: &SetupArgs, context: &Context) -> CommandResult {
    let checkout = args.client.checkout()?;
    let directory = args.client.environment_directory(context)?;
    let python = args.python.as_deref();
    ClientEnvironment::set_up(&directory, &checkout, python, &mut |step| {
        super::context::tell(step)
    })
    .map_err(failure)?;
    let document = json!({ "environment": directory, "client_commit": checkout.commit() });
    context.print(&document, || set_up_text(&checkout, &directory))?;
    Ok(ExitCode::Success)
}

fn set_up_text(checkout: &ClientCheckout, directory: &Path) -> String {
    format!(
        "The client of {} at {} can run; its packages are in {}.",
        checkout.root().display(),
        checkout.commit(),
        directory.display()
    )
}

/// Returns the failure of a command, with what to do.
fn failure(error: EndpointsError) -> Failure {
    let hint = match &error {
        EndpointsError::NotPrescribed { .. } => Some("`regatta round show` lists the benchmarks of a round"),
        EndpointsError::NotCheckout { .. } => {
            Some("git clone https://github.com/mlcommons/endpoints, and name that directory with --client")
        }
        EndpointsError::Changed { .. } => Some(
            "the rules require the unmodified client: `git stash --include-untracked` there, or clone it anew",
        ),
        EndpointsError::NoPython(_) => Some("install Python 3.12, or name it with --python"),
        EndpointsError::NotSetUp(_) => Some("regatta endpoints setup --client DIR"),
        EndpointsError::UnknownValue(_) => {
            Some("client-config.yaml of a run has all values, such as model_params.max_new_tokens")
        }
        EndpointsError::Server { .. } => Some(
            "a server of your own must run first, and a device's must be reachable from here (--host); --model is the name that GET /v1/models returns",
        ),
        EndpointsError::Exists(_) => Some("name a new directory with --output"),
        EndpointsError::ResultExists(_) => {
            Some("name a tree without a result of this benchmark and system with --add-to")
        }
        EndpointsError::NoSystem { .. } => {
            Some("--submitter and --system are those of the tree; --description adds a system")
        }
        EndpointsError::NotRun { .. } => {
            Some("--rehearsal stages it in a tree that is marked as a rehearsal")
        }
        _ => None,
    };
    Failure::of_kind(error.kind(), error).optional_hint(hint)
}
