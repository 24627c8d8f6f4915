//! Runs that `runs export` copied: `runs show DIR` shows one without a workspace, and `runs import` adds them to this workspace.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use regatta_fsutil::{
    atomic_file::{rename_flushed, sync_file_system},
    regular_file::{self, MAX_DOCUMENT},
};
use regatta_text::escape;
use regatta_types::{
    RunId,
    documents::{Document as _, Record, document_name},
};
use serde::Serialize;

use super::super::{Context, verify};
use crate::{
    exit::{CommandResult, Failure},
    tables,
};
use regatta_lab_runs::add_recorded;
use regatta_lab_store::{
    Store,
    workspace::{RunDir, Workspace},
};
use regatta_lab_views::documents::shown_run;
use regatta_types::ExitCode;

/// Flags of `runs import`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  regatta runs import exported
      add a colleague's run, after its signature and files are verified; `runs list`, `compare` and the live page then have it")]
pub(in crate::cli) struct ImportArgs {
    /// Directories that `runs export` wrote, each of one run or of several
    #[arg(value_name = "DIR", required = true)]
    directories: Vec<PathBuf>,
}

/// Returns the directory with this path, if it has a run.
pub(super) fn directory(path: &str) -> Option<&Path> {
    let path = Path::new(path);
    path.join(document_name::SPEC).is_file().then_some(path)
}

/// Shows an exported run, read into a temporary workspace.
pub(super) fn show(directory: &Path, context: &Context) -> CommandResult {
    let run = run_of(directory)?;
    let temporary = tempfile::tempdir()?;
    let workspace = Workspace::create(temporary.path(), "schema = 1\n")?;
    let target = fs::canonicalize(directory)?;
    symlink(&target, workspace.run(run).path())?;
    let store = workspace.store()?;
    for problem in add_recorded(run, &workspace, &store).with_context(|| directory.display().to_string())? {
        tracing::warn!("{}: {}", directory.display(), escape(&problem));
    }
    let row = store.runs().get(run)?.context("the store has lost the run")?;
    let streams = store.streams().of_run(run)?;
    let shown = RunDir::from(target);
    context.print(&shown_run(&row, &streams, &shown), || {
        tables::run(&row, &streams, &shown)
    })?;
    Ok(ExitCode::Success)
}

/// The imported runs as JSON.
#[derive(Serialize)]
struct ImportDocument {
    imported: Vec<RunId>,
}

/// Adds the runs of the directories.
pub(super) fn import(
    args: &ImportArgs,
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> Result<(), Failure> {
    let mut imported = Vec::new();
    for directory in &args.directories {
        let exported = exported_runs(directory)?;
        if exported.is_empty() {
            return Err(
                Failure::misuse(format!("{} has no exported run", directory.display()))
                    .hint("`regatta runs export RUN --output DIR` writes one"),
            );
        }
        for directory in exported {
            imported.push(import_one(&directory, workspace, store)?);
        }
    }
    let document = ImportDocument { imported };
    context.print(&document, || match document.imported.as_slice() {
        [run] => format!("imported run {run}; `regatta runs show {run}` shows it"),
        runs => format!("imported {} runs; `regatta runs list` shows them", runs.len()),
    })?;
    Ok(())
}

/// Returns the directory itself, or those in it, that have a run.
fn exported_runs(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let has_run = |path: &Path| path.join(document_name::SPEC).is_file();
    if has_run(directory) {
        return Ok(vec![directory.to_owned()]);
    }
    let entries = fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let mut found = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()?;
    found.retain(|path| has_run(path));
    found.sort_unstable();
    Ok(found)
}

fn import_one(directory: &Path, workspace: &Workspace, store: &Store) -> Result<RunId, Failure> {
    verify::expect_intact(directory)?;
    let run = run_of(directory)?;
    let target = workspace.run(run);
    if store.runs().get(run)?.is_some() {
        return Err(Failure::misuse(format!("the workspace has run {run} already")));
    }
    if target.path().exists() {
        let path = target.path().display();
        return Err(
            Failure::misuse(format!("{path} exists, but the database does not have the run"))
                .hint("`regatta runs rebuild` adds the runs of all directories"),
        );
    }
    // Nothing takes the directory for a run before it is complete and renamed.
    let partial = workspace.runs().join(format!(".importing-{run}"));
    let problems = copy_run(directory, &partial)
        .and_then(|()| Ok(rename_flushed(&partial, target.path())?))
        .and_then(|()| add_recorded(run, workspace, store));
    match problems {
        Ok(problems) => {
            for problem in problems {
                tracing::warn!("run {run}: {}", escape(&problem));
            }
            Ok(run)
        }
        Err(error) => {
            // Only this command made the directories.
            for made in [partial.as_path(), target.path()] {
                let _ = fs::remove_dir_all(made);
            }
            Err(Failure::from(
                error.context(format!("cannot import {}", directory.display())),
            ))
        }
    }
}

/// Copies an exported run and flushes it.
fn copy_run(directory: &Path, partial: &Path) -> anyhow::Result<()> {
    // A killed import may have left it.
    if partial.exists() {
        fs::remove_dir_all(partial)?;
    }
    let run = RunDir::from(partial.to_owned());
    run.make_files()?;
    for name in [
        document_name::SPEC,
        document_name::RECORD,
        document_name::DEVICE_KEY,
    ] {
        copy(directory, partial, name)?;
    }
    for entry in fs::read_dir(directory.join("files"))? {
        let name = entry?.file_name();
        copy(&directory.join("files"), &run.files(), &name.to_string_lossy())?;
    }
    Ok(sync_file_system(partial)?)
}

fn copy(from: &Path, to: &Path, name: &str) -> anyhow::Result<()> {
    let source = from.join(name);
    anyhow::ensure!(
        fs::symlink_metadata(&source)?.is_file(),
        "{} is not a regular file",
        source.display()
    );
    fs::copy(&source, to.join(name)).with_context(|| format!("cannot copy {}", source.display()))?;
    Ok(())
}

/// Returns the run that a directory's record is of.
fn run_of(directory: &Path) -> Result<RunId, Failure> {
    let path = directory.join(document_name::RECORD);
    let record = regular_file::read(&path, MAX_DOCUMENT)
        .with_context(|| format!("cannot read {}", path.display()))
        .and_then(|bytes| Record::from_json(&bytes).with_context(|| path.display().to_string()))?;
    Ok(record.run)
}
