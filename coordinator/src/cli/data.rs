//! `regatta data`: where a benchmark's dataset, labels and model are published, and which of them are below the scratch directory.
//! Downloads nothing: what needs a registration is the user's to get.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Subcommand;
use regatta_config::catalogue::BenchmarkCatalogue;
use regatta_prep::{ImageRequest, bundled, check_images, label_files, labels_among};
use regatta_text::ErrorChain;
use regatta_types::{
    benchmark::{Benchmark, Download, DownloadPurpose, Prep},
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
    let places: Vec<Option<DownloadPlace>> = downloads
        .iter()
        .map(|download| Some(DownloadPlace::find(download, benchmark, scratch.as_deref()?)))
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
                        "the data and the model of {} come with Regatta: {}",
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
    Ok(exit::OK)
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

/// Where a download is, and whether it is complete.
#[derive(Debug)]
struct DownloadPlace {
    path: PathBuf,
    state: FileState,
    /// The problem with the download.
    problem: Option<String>,
}

impl DownloadPlace {
    /// Looks for a download below the scratch directory. Images are compared with their labels by name.
    fn find(download: &Download, benchmark: &Benchmark, scratch: &Path) -> Self {
        let path = scratch.join(&download.path);
        let place = |state, problem| Self {
            path: path.clone(),
            state,
            problem,
        };
        let is_empty = || fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_none());
        let has_labels = matches!(benchmark.prep, Some(Prep::JpegImages(_)));
        let has_volumes = matches!(benchmark.prep, Some(Prep::Volumes(_) | Prep::Speech(_)));
        let has_images =
            has_labels || has_volumes || benchmark.prep.as_ref().and_then(Prep::annotations).is_some();
        match download.purpose {
            DownloadPurpose::Labels if has_labels => {
                let found = path.parent().and_then(labels_among);
                Self {
                    state: present(found.is_some()),
                    path: found.unwrap_or_else(|| path.clone()),
                    problem: None,
                }
            }
            _ if !download.path.ends_with('/') => place(present(path.is_file()), None),
            _ if !path.is_dir() || is_empty() => place(FileState::Missing, None),
            DownloadPurpose::Dataset if has_images => match images_problem(benchmark, &path) {
                None => place(FileState::Present, None),
                problem => place(FileState::Incomplete, problem),
            },
            _ => match fs::read_dir(&path).map(Iterator::count) {
                Ok(count) if count >= download.files => place(FileState::Present, None),
                Ok(count) => {
                    let problem = format!("{count} of {} files are there", download.files);
                    place(FileState::Incomplete, Some(problem))
                }
                Err(error) => place(FileState::Incomplete, Some(error.to_string())),
            },
        }
    }
}

const fn present(is_present: bool) -> FileState {
    match is_present {
        true => FileState::Present,
        false => FileState::Missing,
    }
}

/// Describes the problem with a directory of images.
fn images_problem(benchmark: &Benchmark, images: &Path) -> Option<String> {
    let request = ImageRequest {
        benchmark,
        form: benchmark.form(),
        quantised: None,
        data: images,
        labels: None,
        calibration: None,
    };
    let error = check_images(&request).err()?;
    Some(ErrorChain(&error).to_string())
}

/// The files of a benchmark below the scratch directory that a run needs.
#[derive(Debug)]
pub(super) struct LocalFiles {
    scratch: PathBuf,
    rows: Vec<LocalFile>,
    /// How many of the rows, from the first, are files of the model.
    model_files: usize,
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
    pub(super) fn of(
        benchmark: &Benchmark,
        context: &Context,
        workspace: Option<&Workspace>,
    ) -> Option<Self> {
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
            (true, _) => context.command(&format!("prep {}", benchmark.name)),
            (false, true) => context.command(&format!("prep {} --data DIR", benchmark.name)),
            (false, false) => "the benchmark's file has no [prep]: put samples there".to_owned(),
        };
        let dir = scratch.join(&benchmark.dataset.dir);
        let samples = if SampleSet::check_whole(&dir).is_err() {
            FileState::Incomplete
        } else {
            present(dir.is_dir())
        };
        let files = benchmark.model.files().into_iter();
        let mut rows: Vec<LocalFile> = files
            .map(|path| LocalFile {
                state: present(scratch.join(&path).is_file()),
                path,
                hint: model.map_or_else(
                    || "the model is yours to bring".to_owned(),
                    |download| download.url.clone(),
                ),
            })
            .collect();
        let model_files = rows.len();
        rows.push(LocalFile {
            path: benchmark.dataset.dir.clone(),
            state: samples,
            hint: prep.clone(),
        });
        let beside = label_files(benchmark).into_iter();
        let labels = beside.map(|path| path.to_string_lossy().into_owned());
        for path in labels
            .chain([benchmark.dataset.map.clone()])
            .filter(|path| !path.is_empty())
        {
            rows.push(LocalFile {
                state: present(scratch.join(&path).is_file()),
                path,
                hint: prep.clone(),
            });
        }
        Some(Self {
            scratch,
            rows,
            model_files,
        })
    }

    /// Returns the state of the model: present when all of its files are.
    pub(super) fn model(&self) -> FileState {
        let states = self.rows[..self.model_files].iter().map(|row| row.state);
        let mut missing = states.filter(|state| !matches!(state, FileState::Present));
        missing.next().unwrap_or(FileState::Present)
    }

    pub(super) fn samples(&self) -> FileState {
        self.rows[self.model_files].state
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
