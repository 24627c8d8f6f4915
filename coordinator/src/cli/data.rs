//! `regatta data`: where a benchmark's dataset, labels and model are published, and which of them are below the scratch directory.
//! Downloads nothing: what needs a registration is the user's to get.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Subcommand;
use regatta_config::catalogue::BenchmarkCatalogue;
use regatta_prep::bundled;
use regatta_types::{
    benchmark::{Benchmark, Download, DownloadPurpose},
    samples::SampleSet,
};
use serde_json::{Value, json};

use super::{Context, accuracy::labels};
use crate::{
    exit::{self, CommandResult, Failure},
    tables,
    workspace::Workspace,
};

/// `data ...`
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Shows a benchmark's downloads: address, terms, size, checksums, and where each belongs
    Show {
        /// The benchmark
        name: String,
    },
}

pub(super) fn run(command: &Command, context: &Context) -> CommandResult {
    let Command::Show { name } = command;
    let workspace = context.open_if_there()?;
    let configs = workspace.as_ref().map(Workspace::configs);
    let benchmarks = BenchmarkCatalogue::read(configs.as_deref()).map_err(Failure::usage)?;
    let benchmark = benchmarks.named(name).map_err(Failure::usage)?;
    let scratch = labels(None, workspace.as_ref()).ok();
    let downloads = &benchmark.downloads;
    let documents: Vec<Value> = downloads
        .iter()
        .map(|download| {
            let state = scratch
                .as_deref()
                .map(|scratch| state_of(download, scratch).word());
            json!({ "download": download, "state": state })
        })
        .collect();
    context.print(
        &json!({ "benchmark": benchmark.name, "scratch": scratch, "downloads": documents }),
        || {
            if downloads.is_empty() {
                return if bundled::contains(benchmark) {
                    format!(
                        "the data and the model of {} come with Regatta: `regatta prep {}`",
                        benchmark.name, benchmark.name
                    )
                } else {
                    format!("the file of benchmark {} names no downloads", benchmark.name)
                };
            }
            let described = downloads
                .iter()
                .map(|download| describe(download, scratch.as_deref()));
            let next = format!(
                "then: regatta prep {} --data DIR, where DIR has the images and the labels",
                benchmark.name
            );
            described.chain([next]).collect::<Vec<_>>().join("\n\n")
        },
    )?;
    Ok(exit::OK)
}

fn describe(download: &Download, scratch: Option<&Path>) -> String {
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
    let (place, state) = match scratch {
        Some(scratch) => (scratch.join(&download.path), state_of(download, scratch).word()),
        None => (
            Path::new("SCRATCH").join(&download.path),
            "no scratch directory known",
        ),
    };
    lines.push(format!("  place     {} ({state})", place.display()));
    lines.join("\n")
}

/// Whether a file is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileState {
    Present,
    Missing,
    /// Preparation was interrupted or still runs, or files are missing.
    Incomplete,
    /// The file comes with Regatta and is installed when it is needed.
    Bundled,
}

impl FileState {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Missing => "missing",
            Self::Incomplete => "incomplete",
            Self::Bundled => "bundled",
        }
    }
}

fn state_of(download: &Download, scratch: &Path) -> FileState {
    let path = scratch.join(&download.path);
    if !download.path.ends_with('/') {
        return if path.is_file() {
            FileState::Present
        } else {
            FileState::Missing
        };
    }
    match fs::read_dir(&path).map(|entries| entries.take(download.files).count()) {
        Err(_) => FileState::Missing,
        Ok(count) if count < download.files => FileState::Incomplete,
        Ok(_) => FileState::Present,
    }
}

/// The files of a benchmark below the scratch directory that a run needs.
#[derive(Debug)]
pub(super) struct LocalFiles {
    scratch: PathBuf,
    rows: Vec<LocalFile>,
}

#[derive(Debug)]
struct LocalFile {
    path: String,
    state: FileState,
    /// How to get it when it is missing.
    hint: String,
}

impl LocalFiles {
    /// Looks for a benchmark's files. `None` when no scratch directory is known.
    pub(super) fn of(benchmark: &Benchmark, workspace: Option<&Workspace>) -> Option<Self> {
        let scratch = labels(None, workspace).ok()?;
        let is_bundled = bundled::contains(benchmark);
        let present = |is_present: bool| match (is_present, is_bundled) {
            (true, _) => FileState::Present,
            (false, true) => FileState::Bundled,
            (false, false) => FileState::Missing,
        };
        let model = benchmark
            .downloads
            .iter()
            .find(|download| download.purpose == DownloadPurpose::Model);
        let prep = match (is_bundled, benchmark.prep.is_some()) {
            (true, _) => format!("regatta prep {}", benchmark.name),
            (false, true) => format!("regatta prep {} --data DIR", benchmark.name),
            (false, false) => "the benchmark's file has no [prep]: put samples there".to_owned(),
        };
        let dir = scratch.join(&benchmark.dataset.dir);
        let samples = if SampleSet::check_whole(&dir).is_err() {
            FileState::Incomplete
        } else {
            present(dir.is_dir())
        };
        let mut rows = vec![
            LocalFile {
                path: benchmark.model.file.clone(),
                state: present(scratch.join(&benchmark.model.file).is_file()),
                hint: model.map_or_else(
                    || "the model is yours to bring".to_owned(),
                    |download| download.url.clone(),
                ),
            },
            LocalFile {
                path: benchmark.dataset.dir.clone(),
                state: samples,
                hint: prep.clone(),
            },
        ];
        if !benchmark.dataset.map.is_empty() {
            rows.push(LocalFile {
                path: benchmark.dataset.map.clone(),
                state: present(scratch.join(&benchmark.dataset.map).is_file()),
                hint: prep,
            });
        }
        Some(Self { scratch, rows })
    }

    pub(super) fn model(&self) -> FileState {
        self.rows[0].state
    }

    pub(super) fn samples(&self) -> FileState {
        self.rows[1].state
    }

    pub(super) fn documents(&self) -> Vec<Value> {
        let document =
            |row: &LocalFile| json!({ "path": row.path, "state": row.state.word(), "hint": row.hint });
        self.rows.iter().map(document).collect()
    }

    pub(super) fn text(&self) -> String {
        let rows = self.rows.iter().map(|row| {
            let hint = match row.state {
                FileState::Present => String::new(),
                _ => row.hint.clone(),
            };
            [row.path.clone(), row.state.word().to_owned(), hint]
        });
        format!(
            "files below {}\n{}",
            self.scratch.display(),
            tables::plain(["file", "state", "how to get it"], rows)
        )
    }
}
