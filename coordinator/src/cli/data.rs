//! `regatta data`: the published places of a benchmark's dataset, labels and model, and the state of their files below the scratch
//! directory. `fetch` downloads what is free. Files that need a registration are left to the user.

mod checksum;
mod fetch;
mod local_files;
mod place;
mod transfer;

use std::path::{Path, PathBuf};

pub(super) use checksum::published_problem;
use clap::Subcommand;
pub(super) use fetch::{ARCHIVES, fetch_file, remove_abandoned_part};
pub(super) use local_files::LocalFiles;
pub(super) use place::{DownloadPlace, FileState, count_files, model_problem};
use regatta_catalogue::catalogue::Catalogue;
use regatta_datasets::bundled;
use regatta_types::{
    ExitCode,
    benchmark::{Benchmark, Download, DownloadPurpose},
};
use serde_json::{Value, json};
pub(super) use transfer::PART;

use super::{Context, accuracy::labels};
use crate::exit::{CommandResult, Failure};
use regatta_lab_store::workspace::Workspace;

/// `data ...`
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show a benchmark's downloads: address, terms, size, checksums, and where to put each
    Show {
        /// The benchmark
        name: String,
        /// Compare the files that are present with their published checksums
        #[arg(long)]
        verify: bool,
    },
    /// Download a benchmark's freely available files to the scratch directory, and verify them
    #[command(after_help = "\
Example:
  regatta data fetch resnet50

An interrupted download is continued. Files that need a registration, or that cannot be downloaded alone, are listed.
Archives are not unpacked: the commands that unpack them are printed.")]
    Fetch {
        /// The benchmark
        name: String,
        /// The scratch directory [default: the workspace's, or MLPERF_SCRATCH_PATH]
        #[arg(long, value_name = "DIR")]
        scratch: Option<PathBuf>,
    },
}

pub(super) fn run(command: &Command, context: &Context) -> CommandResult {
    let (Command::Show { name, .. } | Command::Fetch { name, .. }) = command;
    let workspace = context.open_if_there()?;
    let configs = workspace.as_ref().map(Workspace::configs);
    let catalogue = Catalogue::read(configs.as_deref()).map_err(Failure::usage)?;
    let benchmark = catalogue.benchmark(name).map_err(Failure::usage)?;
    match command {
        Command::Fetch { scratch, .. } => {
            let scratch = labels(scratch.as_deref(), workspace.as_ref())?;
            fetch::run(benchmark, &scratch, context)
        }
        Command::Show { verify, .. } => show(benchmark, *verify, workspace.as_ref(), context),
    }
}

fn show(
    benchmark: &Benchmark,
    has_verification: bool,
    workspace: Option<&Workspace>,
    context: &Context,
) -> CommandResult {
    let scratch = labels(None, workspace).ok();
    let downloads = &benchmark.downloads;
    let places: Vec<Option<DownloadPlace>> = downloads
        .iter()
        .map(|download| {
            let place = DownloadPlace::find(download, benchmark, scratch.as_deref()?);
            Some(if has_verification {
                place.verified(download)
            } else {
                place
            })
        })
        .collect();
    let documents: Vec<Value> = downloads
        .iter()
        .zip(&places)
        .map(|(download, place)| {
            let place = place.as_ref();
            json!({
                "download": download,
                "state": place.map(|place| place.state.word()),
                "path": place.map(|place| &place.path),
                "problem": place.and_then(|place| place.problem.as_ref()),
            })
        })
        .collect();
    context.print(
        &json!({ "benchmark": benchmark.name, "scratch": scratch, "downloads": documents }),
        || {
            if downloads.is_empty() {
                return if bundled::contains(benchmark) {
                    format!(
                        "the data and the model of {} are included in Regatta: {}",
                        benchmark.name,
                        context.command(&format!("prep {}", benchmark.name))
                    )
                } else {
                    format!("the file of benchmark {} names no downloads", benchmark.name)
                };
            }
            let described = downloads
                .iter()
                .zip(&places)
                .map(|(download, place)| describe(download, place.as_ref()));
            let next = format!(
                "then: {} (--data DIR for files elsewhere)",
                context.command(&format!("prep {}", benchmark.name))
            );
            described.chain([next]).collect::<Vec<_>>().join("\n\n")
        },
    )?;
    let is_other = places.iter().flatten().any(|place| place.is_other);
    Ok(if is_other {
        ExitCode::Negative
    } else {
        ExitCode::Success
    })
}

fn describe(download: &Download, place: Option<&DownloadPlace>) -> String {
    let mut lines = vec![download.title.clone(), format!("  from      {}", download.url)];
    if let Some(terms) = &download.terms {
        lines.push(format!("  terms     {terms}"));
    }
    let bytes = download.bytes.map_or_else(
        || "size not published".to_owned(),
        |bytes| format!("{bytes} bytes"),
    );
    lines.push(match download.files {
        1 => format!("  content   1 file, {bytes}"),
        files => format!("  content   {files} files, {bytes}"),
    });
    for checksum in &download.checksums {
        lines.push(format!("  checksum  {checksum}"));
    }
    if download.purpose == DownloadPurpose::Model && download.checksums.is_empty() {
        lines.push("  checksum  not published".to_owned());
    }
    match place {
        Some(place) => {
            lines.push(format!(
                "  place     {} ({})",
                place.path.display(),
                place.state.word()
            ));
            lines.extend(
                place
                    .problem
                    .iter()
                    .map(|problem| format!("  problem   {problem}")),
            );
        }
        None => lines.push(format!(
            "  place     {} (no scratch directory known)",
            Path::new("SCRATCH").join(&download.path).display()
        )),
    }
    lines.join("\n")
}
