//! The files of a benchmark below the scratch directory that a run needs, and the commands that get them.

use std::path::PathBuf;

use regatta_datasets::{bundled, label_files::label_files};
use regatta_types::{
    benchmark::{Benchmark, DownloadPurpose},
    samples::SampleSet,
};
use serde_json::{Value, json};

use super::place::FileState;
use crate::{
    cli::{Context, accuracy::labels},
    tables,
};
use regatta_lab_store::workspace::Workspace;

/// The files of a benchmark below the scratch directory that a run needs.
#[derive(Debug)]
pub(in crate::cli) struct LocalFiles {
    scratch: PathBuf,
    rows: Vec<LocalFile>,
    /// The number of rows, from the first, that are files of the model.
    model_files: usize,
}

#[derive(Debug)]
struct LocalFile {
    path: String,
    state: FileState,
    /// The command that gets it when it is missing.
    hint: String,
}

impl LocalFiles {
    /// Looks for a benchmark's files. `None` when no scratch directory is known.
    pub(in crate::cli) fn of(
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
    pub(in crate::cli) fn model(&self) -> FileState {
        let states = self.rows[..self.model_files].iter().map(|row| row.state);
        let mut missing = states.filter(|state| !matches!(state, FileState::Present));
        missing.next().unwrap_or(FileState::Present)
    }

    pub(in crate::cli) fn samples(&self) -> FileState {
        self.rows[self.model_files].state
    }

    pub(in crate::cli) fn documents(&self) -> Vec<Value> {
        let document =
            |row: &LocalFile| json!({ "path": row.path, "state": row.state.word(), "hint": row.hint });
        self.rows.iter().map(document).collect()
    }

    pub(in crate::cli) fn text(&self) -> String {
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
