//! `regatta store`: shows where the lab's records are, and moves them to another database.

use std::{
    fs,
    path::{Path, PathBuf},
};

use regatta_fsutil::atomic_file::AtomicFile;
use regatta_types::ExitCode;
use serde_json::json;

use super::{Context, hints::with_hint};
use crate::exit::{CommandResult, Failure};
use regatta_lab_store::{
    DatabaseAddress, ServerAddress, Store,
    workspace::{CONFIG_FILE, Config, Workspace},
};

/// Commands about the lab's database.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Show where the database is
    Show,
    /// Move the database to PostgreSQL, or back into the workspace, and compare both row by row
    #[command(after_help = "\
Examples:
  createdb lab && regatta store move 'host=/run/postgresql user=regatta dbname=lab'
      move the database to PostgreSQL on this machine
  regatta store move --to-file
      move it back into the workspace

The coordinator must be stopped. The former database stays as it is; a file is renamed to regatta.db.moved.")]
    Move {
        /// The address of an empty PostgreSQL database: postgresql://USER@HOST/DATABASE or host=... user=... dbname=...
        #[arg(value_name = "ADDRESS", required_unless_present = "to_file")]
        address: Option<String>,
        /// The certificate of the server's authority; required for a server on another machine
        #[arg(long, value_name = "FILE", conflicts_with = "to_file")]
        ca: Option<PathBuf>,
        /// Move the database into the workspace, as SQLite
        #[arg(long, conflicts_with = "address")]
        to_file: bool,
    },
}

pub(super) fn run(command: &Command, context: &Context) -> CommandResult {
    match command {
        Command::Show => show(context),
        Command::Move { address, ca, .. } => {
            let server = address
                .as_deref()
                .map(|address| ServerAddress::new(address, absolute(ca)));
            let server = server.transpose().map_err(Failure::usage)?;
            relocate(address.as_deref(), server, absolute(ca), context)
        }
    }
}

/// A path in the configuration is relative to the workspace, and that of an option to the current directory.
fn absolute(path: &Option<PathBuf>) -> Option<PathBuf> {
    let path = path.as_ref()?;
    Some(std::path::absolute(path).unwrap_or_else(|_| path.clone()))
}

fn show(context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let (address, rows) = (workspace.database().to_string(), store.count_rows()?);
    context.print(&json!({"database": address, "rows": rows}), || {
        format!("{address}\n{rows} rows")
    })?;
    Ok(ExitCode::Success)
}

fn relocate(
    address: Option<&str>,
    server: Option<ServerAddress>,
    ca: Option<PathBuf>,
    context: &Context,
) -> CommandResult {
    let workspace = context.open()?;
    let _lock = workspace
        .lock()
        .map_err(|error| with_hint(error.into(), &workspace))?;
    let from = workspace.store()?;
    let target = match server {
        Some(server) => DatabaseAddress::Server(Box::new(server)),
        None if workspace.config().database.is_none() => {
            return Err(Failure::misuse("the database is in the workspace already"));
        }
        None => DatabaseAddress::File(workspace.database_file()),
    };
    let to = Store::connect(&target)?;
    // Other commands wait for the end of the transaction.
    from.begin()?;
    let moved = from.copy_to(&to, &target)?;
    configure(&workspace, address, ca)?;
    from.commit()?;
    // SQLite completes the file when its last connection ends.
    drop(from);
    let former = set_aside(&workspace)?;
    let rows = moved.rows;
    context.print(
        &json!({"database": target.to_string(), "rows": rows, "former": former}),
        || {
            format!(
                "moved {rows} rows to {target}; both have the same contents\nthe former database is {former}"
            )
        },
    )?;
    Ok(ExitCode::Success)
}

/// Writes the database's place into the configuration. The address may contain a password, so only the owner may read it then.
fn configure(workspace: &Workspace, address: Option<&str>, ca: Option<PathBuf>) -> Result<(), Failure> {
    let path = workspace.root().join(CONFIG_FILE);
    let text = fs::read_to_string(&path)?;
    let text = Config::with_database(&text, address, ca.as_deref());
    let mut file = AtomicFile::new(&path);
    if address.is_some() {
        file = file.mode(0o600);
    }
    Ok(file.write(text.as_bytes())?)
}

/// Renames the file of a database that is not used any more, with its log if another program still has it open. Returns where the
/// former database is.
fn set_aside(workspace: &Workspace) -> Result<String, Failure> {
    let DatabaseAddress::File(file) = workspace.database() else {
        return Ok(workspace.database().to_string());
    };
    let aside = file.with_extension("db.moved");
    for log in ["-wal", "-shm"] {
        let with_log = |path: &Path| {
            let mut name = path.as_os_str().to_owned();
            name.push(log);
            PathBuf::from(name)
        };
        if with_log(&file).exists() {
            fs::rename(with_log(&file), with_log(&aside))?;
        }
    }
    fs::rename(&file, &aside)?;
    Ok(aside.display().to_string())
}
