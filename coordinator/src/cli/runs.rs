//! `regatta runs`: what was asked for, how it stands, what came of it. Verifying stands in [`super::verify`].

use std::{fs, path::PathBuf};

use anyhow::Context as _;
use regatta_rules::RunId;
use serde::Serialize;

use super::{Context, context::say, verify};
use crate::{
    exit::{self, Failure, Outcome},
    hex::{hex, sha256_of_file},
    runs::DEVICE_KEY,
    store::{RunRow, Store, StreamRow},
    tables,
    workspace::Workspace,
};

/// Commands about runs.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Lists runs, newest first
    List,
    /// Shows one run with its files
    Show {
        /// Its id, or the beginning or end of it
        run: String,
    },
    /// Copies a run's spec, record and files, byte for byte, with a SHA-256 manifest
    Export {
        /// Its id, or the beginning or end of it
        run: String,
        /// The directory to make
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Verifies runs: the device's signature, and the hash of every file
    Verify {
        /// Ids, or directories that `runs export` made; every recorded run when none is named
        #[arg(value_name = "RUN|DIR")]
        runs: Vec<String>,
    },
    /// Ends a run
    Abort {
        /// Its id, or the beginning or end of it
        run: String,
    },
}

/// A run as programs get it.
#[derive(Serialize)]
pub(crate) struct RunDocument<'a> {
    run: RunId,
    device: &'a str,
    benchmark: &'a str,
    scenario: &'static str,
    mode: &'static str,
    test: Option<&'a str>,
    engine: &'static str,
    loadgen: String,
    phase: &'static str,
    reason: Option<&'a str>,
    recorded: Option<&'a str>,
    #[serde(flatten)]
    outcome: Option<serde_json::Value>,
}

pub(crate) fn document(row: &RunRow) -> RunDocument<'_> {
    RunDocument {
        run: row.id,
        device: row.device.as_str(),
        benchmark: &row.benchmark,
        scenario: row.scenario.as_str(),
        mode: row.mode.as_str(),
        test: row.audit(),
        engine: row.draft.spec.engine.kind.as_str(),
        loadgen: row.draft.spec.loadgen.to_string(),
        phase: row.shown_phase().as_str(),
        reason: row.state.reason.as_deref(),
        recorded: row.recorded.as_deref(),
        outcome: row
            .outcome
            .as_ref()
            .and_then(|outcome| serde_json::to_value(outcome).ok()),
    }
}

#[derive(Serialize)]
struct StreamDocument<'a> {
    name: &'a str,
    committed: u64,
    length: Option<u64>,
    sha256: Option<&'a str>,
    whole: bool,
}

impl<'a> From<&'a StreamRow> for StreamDocument<'a> {
    fn from(row: &'a StreamRow) -> Self {
        Self {
            name: row.name.as_str(),
            committed: row.committed,
            length: row.stated_length,
            sha256: row.stated_sha256.as_deref(),
            whole: row.whole,
        }
    }
}

pub(super) fn run(command: &Command, context: &Context) -> Outcome {
    // An exported run is verified anywhere.
    if let Command::Verify { runs } = command {
        return verify::run(runs, context);
    }
    let (workspace, store) = context.open_store()?;
    match command {
        Command::Verify { .. } => {}
        Command::List => list(context, &store)?,
        Command::Show { run } => show(context, &workspace, &store, &find(&store, run)?)?,
        Command::Export { run, out } => export(&workspace, &store, &find(&store, run)?, out)?,
        Command::Abort { run } => {
            let row = find(&store, run)?;
            if !store.ask_to_abort(row.id, "aborted by the user")? {
                return Err(Failure::misuse(format!("run {} has ended already", row.id)));
            }
            say(&format!("run {} is asked to end", row.id))?;
        }
    }
    Ok(exit::OK)
}

fn list(context: &Context, store: &Store) -> Result<(), Failure> {
    let rows = store.runs()?;
    let documents: Vec<_> = rows.iter().map(document).collect();
    context.print(&serde_json::json!({ "runs": documents }), || {
        if rows.is_empty() {
            "no runs yet: ask for one with `regatta run`".to_owned()
        } else {
            tables::runs(&rows)
        }
    })?;
    Ok(())
}

fn show(context: &Context, workspace: &Workspace, store: &Store, row: &RunRow) -> Result<(), Failure> {
    let streams = store.streams(row.id)?;
    let mut value = serde_json::to_value(document(row))?;
    if let Some(fields) = value.as_object_mut() {
        let documents: Vec<StreamDocument<'_>> = streams.iter().map(Into::into).collect();
        fields.insert("streams".to_owned(), serde_json::to_value(documents)?);
        fields.insert(
            "directory".to_owned(),
            workspace.run(row.id).path().display().to_string().into(),
        );
    }
    context.print(&value, || tables::run(row, &streams, &workspace.run(row.id)))?;
    Ok(())
}

/// Exports a run that is recorded: `spec.json`, `record.json`, `files/`, the device's public key, and `SHA256SUMS` over the
/// run's own, which `sha256sum -c` reads.
fn export(workspace: &Workspace, store: &Store, row: &RunRow, out: &std::path::Path) -> Result<(), Failure> {
    if row.recorded.is_none() {
        return Err(Failure::could_not(format!(
            "run {} is {}: it has no record yet",
            row.id,
            row.shown_phase().as_str()
        ))
        .way_out("export it once it is done"));
    }
    if out.exists() {
        return Err(Failure::misuse(format!(
            "{} exists already: name a new directory",
            out.display()
        )));
    }
    let dir = workspace.run(row.id);
    let mut copies = vec![
        ("spec.json".to_owned(), dir.spec()),
        ("record.json".to_owned(), dir.record()),
    ];
    if let Some(device) = store.device(&row.device)? {
        // With it the copy can be verified by anybody: `regatta runs verify DIR`.
        let text = format!("{}\n", hex(&device.public_key));
        fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
        fs::write(out.join(DEVICE_KEY), text).context("cannot write the device's public key")?;
    }
    for stream in store.streams(row.id)?.iter().filter(|stream| stream.whole) {
        copies.push((format!("files/{}", stream.name), dir.file(&stream.name)));
    }
    fs::create_dir_all(out.join("files")).with_context(|| format!("cannot make {}", out.display()))?;
    let mut manifest = String::new();
    for (name, from) in copies.into_iter().filter(|(_, from)| from.exists()) {
        let to = out.join(&name);
        fs::copy(&from, &to).with_context(|| format!("cannot copy to {}", to.display()))?;
        let (copied, original) = (sha256_of_file(&to)?, sha256_of_file(&from)?);
        if copied != original {
            return Err(Failure::could_not(format!(
                "{} is not what was copied: the disk is at fault",
                to.display()
            )));
        }
        manifest.push_str(&format!("{}  {name}\n", hex(&copied.1)));
    }
    fs::write(out.join("SHA256SUMS"), &manifest).context("cannot write SHA256SUMS")?;
    say(&format!(
        "{} files in {}; check them there with `sha256sum -c SHA256SUMS`",
        manifest.lines().count(),
        out.display()
    ))?;
    Ok(())
}

/// The run that a user means by its id, or by enough of its beginning or end.
pub(super) fn find(store: &Store, given: &str) -> Result<RunRow, Failure> {
    if let Ok(id) = given.parse::<RunId>()
        && let Some(row) = store.run(id)?
    {
        return Ok(row);
    }
    let mut meant = store.runs()?.into_iter().filter(|row| {
        let id = row.id.to_string();
        given.len() >= 4 && (id.starts_with(given) || id.ends_with(given))
    });
    match (meant.next(), meant.next()) {
        (Some(row), None) => Ok(row),
        (Some(_), Some(_)) => Err(Failure::misuse(format!(
            "more than one run is meant by `{given}`"
        ))),
        (None, _) => Err(Failure::misuse(format!("unknown run `{given}`"))
            .way_out("`regatta runs list` shows those that there are")),
    }
}
