//! `regatta asset`: the models, preprocessed data and caches that devices get from here.

use std::path::{Path, PathBuf};

use regatta_catalogue::catalogue::Catalogue;
use regatta_datasets::bundled;
use regatta_types::{
    ExitCode,
    assets::is_inner_path,
    benchmark::{Benchmark, Dtype},
    documents::{EngineKind, RunTask},
    layout::Layout,
    samples::Form,
};
use serde::Serialize;

use super::{
    Context,
    context::tell,
    data::model_problem,
    device_job::{self, JobArgs},
};
use crate::{
    exit::{CommandResult, Failure},
    tables,
};
use regatta_lab_net::assets::{AssetStore, AssetStoreError, LockedAssetStore};
use regatta_lab_runs::vocabulary;
use regatta_lab_store::{AssetRow, Store, workspace::Workspace};

/// Commands about assets.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Copy files or directories, or a benchmark's model and samples, into the store that devices download from
    #[command(after_help = "\
Examples:
  regatta asset add --benchmark resnet50
      its model, preprocessed samples and map, from the scratch directory
  regatta asset add calibration.cache --at resnet50/calibration.cache
      one file, which devices then find below their scratch directory")]
    Add {
        /// Files or directories below the scratch directory; with --at, one from anywhere
        #[arg(required_unless_present = "benchmark")]
        paths: Vec<PathBuf>,
        /// Add the model, samples and map of this benchmark from the scratch directory
        #[arg(long, conflicts_with = "paths")]
        benchmark: Option<String>,
        /// The path at which devices find it, relative to their scratch directory
        #[arg(long, value_name = "PATH", conflicts_with = "benchmark")]
        at: Option<String>,
        /// Add the benchmark's samples in this type, as made by `regatta prep --dtype`
        #[arg(long, value_name = "TYPE", requires = "benchmark")]
        dtype: Option<Dtype>,
        /// Add the benchmark's samples in this layout, as made by `regatta prep --layout`
        #[arg(long, value_name = "LAYOUT", requires = "benchmark")]
        layout: Option<Layout>,
    },
    /// List the assets
    List,
    /// Download to devices what runs of a benchmark need, before the runs are requested
    Fetch(Box<FetchArgs>),
    /// Remove an asset from the list; `gc` then frees its space
    Remove {
        /// The path at which devices find it, relative to their scratch directory
        path: String,
    },
    /// Delete the files that no asset and no open run needs
    Gc,
}

/// Flags of `asset fetch`.
#[derive(Debug, clap::Args)]
pub(super) struct FetchArgs {
    #[command(flatten)]
    job: JobArgs,
    /// The engine of the runs, which determines the type and layout of the samples [default: the best that each device has: tensorrt, else
    /// tract]
    #[arg(long, value_parser = vocabulary::engine(), ignore_case = true)]
    engine: Option<EngineKind>,
}

/// An asset as a JSON document.
#[derive(Serialize)]
struct AssetDocument<'a> {
    path: &'a str,
    kind: &'static str,
    sha256: &'a str,
    bytes: u64,
    files: u64,
    added: &'a str,
}

impl<'a> From<&'a AssetRow> for AssetDocument<'a> {
    fn from(row: &'a AssetRow) -> Self {
        Self {
            path: &row.asset.path,
            kind: row.asset.kind.as_str(),
            sha256: &row.asset.sha256,
            bytes: row.asset.bytes,
            files: row.files,
            added: &row.added,
        }
    }
}

pub(super) fn run(command: &Command, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    match command {
        Command::Fetch(args) => device_job::request(
            &args.job,
            args.job.input(RunTask::AssetFetch, args.engine)?,
            context,
        ),
        Command::Add {
            paths,
            benchmark,
            at,
            dtype,
            layout,
        } => {
            let sources = match benchmark {
                Some(name) => sources_of(name, *dtype, *layout, &workspace)?,
                None => sources(paths, at.as_deref(), &workspace)?,
            };
            print(&add(&sources, &workspace, &store)?, context)
        }
        Command::List => {
            let rows = store.assets().all()?;
            print(&rows, context)
        }
        Command::Remove { path } => {
            if !store.assets().remove(path)? {
                return Err(Failure::misuse(format!("`{path}` is not an asset"))
                    .hint("`regatta asset list` shows all assets"));
            }
            context.print(&serde_json::json!({ "removed": path }), || {
                format!("{path} is no longer an asset; `regatta asset gc` frees its space")
            })?;
            Ok(ExitCode::Success)
        }
        Command::Gc => {
            let asset_store = hold(&workspace)?;
            let mut kept: Vec<_> = store.assets().all()?.into_iter().map(|row| row.asset).collect();
            for run in store.runs().open()? {
                kept.extend(
                    run.draft
                        .spec
                        .assets
                        .map(|assets| assets.needed)
                        .unwrap_or_default(),
                );
            }
            let swept = asset_store.sweep(&kept)?;
            let document = serde_json::json!({ "files": swept.files, "bytes": swept.bytes });
            context.print(&document, || {
                format!("{} files with {} MiB removed", swept.files, swept.bytes >> 20)
            })?;
            Ok(ExitCode::Success)
        }
    }
}

/// A file to add, and its path below the scratch directory.
type AssetSource = (PathBuf, String);

/// Returns the paths of a benchmark's model, samples and map in the scratch directory, for samples in the benchmark's form.
pub(super) fn places(formed: &Benchmark) -> Vec<String> {
    let (model, dataset) = (&formed.model, &formed.dataset);
    let mut places = model.files();
    places.push(dataset.dir.clone());
    if !dataset.map.is_empty() && !Path::new(&dataset.map).starts_with(&dataset.dir) {
        places.push(dataset.map.clone());
    }
    places
}

fn sources_of(
    name: &str,
    dtype: Option<Dtype>,
    layout: Option<Layout>,
    workspace: &Workspace,
) -> Result<Vec<AssetSource>, Failure> {
    let catalogue = Catalogue::read(Some(&workspace.configs())).map_err(Failure::usage)?;
    let benchmark = catalogue.benchmark(name).map_err(Failure::usage)?;
    let form = match (dtype, layout) {
        (None, None) => benchmark.form(),
        (dtype, layout) => Form::new(
            dtype.unwrap_or(benchmark.model.input_dtype),
            layout.unwrap_or_default(),
        ),
    };
    let places = places(&benchmark.in_form(form).map_err(Failure::usage)?);
    let scratch = workspace.scratch();
    if bundled::contains(benchmark) {
        regatta_prep::install_bundled(benchmark, &scratch, &mut |_, _| {})?;
    }
    if let Some(missing) = places
        .iter()
        .map(|place| scratch.join(place))
        .find(|path| !path.exists())
    {
        let prep = if form == benchmark.form() {
            format!("regatta prep {}", benchmark.name)
        } else {
            form.prep_command(&benchmark.name)
        };
        return Err(Failure::could_not(format!(
            "{} of {} does not exist",
            missing.display(),
            benchmark.name
        ))
        .hint(format!(
            "`regatta benchmark prepare {}` gets and prepares what is missing, or step by step: `regatta data fetch {}`, `{prep}`",
            benchmark.name, benchmark.name
        )));
    }
    if let Some(problem) = model_problem(benchmark, &scratch) {
        tracing::warn!("{problem}");
    }
    Ok(places
        .into_iter()
        .map(|place| (scratch.join(&place), place))
        .collect())
}

fn sources(paths: &[PathBuf], at: Option<&str>, workspace: &Workspace) -> Result<Vec<AssetSource>, Failure> {
    if at.is_some() && paths.len() > 1 {
        return Err(Failure::misuse("--at takes one file or directory, not several"));
    }
    let scratch = workspace.scratch();
    let place = |path: &PathBuf| {
        let source = if path.exists() {
            path.clone()
        } else {
            scratch.join(path)
        };
        if let Some(at) = at {
            return Ok((source, at.trim_end_matches('/').to_owned()));
        }
        let below = std::path::absolute(&source)
            .ok()
            .and_then(|source| {
                Some(
                    source
                        .strip_prefix(std::path::absolute(&scratch).ok()?)
                        .ok()?
                        .to_owned(),
                )
            })
            .and_then(|below| Some(below.to_str()?.to_owned()));
        below.map(|below| (source, below)).ok_or_else(|| {
            Failure::misuse(format!(
                "{} is not below the scratch directory {}",
                path.display(),
                scratch.display()
            ))
            .hint("--at PATH names its path below the device's scratch directory")
        })
    };
    paths.iter().map(place).collect()
}

/// Copies files into the store. Returns the assets that were added or replaced.
///
/// # Errors
/// Returns an error when the workspace does not serve assets, or a file cannot be copied. In that case no assets are added.
pub(super) fn add(
    sources: &[AssetSource],
    workspace: &Workspace,
    store: &Store,
) -> Result<Vec<AssetRow>, Failure> {
    if workspace.config().assets_for_devices().is_none() {
        return Err(Failure::misuse("this workspace serves no assets").hint(
            "in a lab with keys (`regatta init`), set `assets_listen = \"0.0.0.0:8885\"` in regatta.toml",
        ));
    }
    let asset_store = hold(workspace)?;
    let mut added = Vec::new();
    for (source, path) in sources {
        if !is_inner_path(path) {
            return Err(Failure::misuse(format!(
                "`{path}` is not a valid path below a scratch directory"
            )));
        }
        added.push(asset_store.put(source, path)?);
    }
    store.all_or_nothing(|store| {
        added
            .iter()
            .try_for_each(|added| store.assets().put(&added.asset, added.files, &added.added))
    })?;
    drop(asset_store);
    let rows = store.assets().all()?;
    let is_new = |row: &AssetRow| added.iter().any(|added| added.asset.path == row.asset.path);
    Ok(rows.into_iter().filter(is_new).collect())
}

fn hold(workspace: &Workspace) -> Result<LockedAssetStore, AssetStoreError> {
    AssetStore::of(workspace)
        .hold(|| tell("another `regatta asset` is at work here; waiting until it is done"))
}

fn print(rows: &[AssetRow], context: &Context) -> CommandResult {
    let documents: Vec<_> = rows.iter().map(AssetDocument::from).collect();
    context.print(&serde_json::json!({ "assets": documents }), || {
        tables::assets(rows)
    })?;
    Ok(ExitCode::Success)
}
